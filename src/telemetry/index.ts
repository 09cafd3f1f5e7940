// plimsoll/telemetry: reading what model servers say of themselves.
export {};
