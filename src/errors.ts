// Every error of the package: a stable code, and a message that says what was wrong and what would
// be right. Apart, so that a caller can test `error.code` without loading anything else.

/** The codes, one per kind of fault. They are part of the API; the README explains each. */
export type PlimsollErrorCode =
  | "PLIMSOLL_ADMISSION"
  | "PLIMSOLL_CONFIG"
  | "PLIMSOLL_DURATION"
  | "PLIMSOLL_ENDPOINT"
  | "PLIMSOLL_KERNEL"
  | "PLIMSOLL_TELEMETRY"
  | "PLIMSOLL_TRACE";

/** Base of every error that this package throws. */
export class PlimsollError extends Error {
  override readonly name: string = "PlimsollError";
  readonly code: PlimsollErrorCode;

  constructor(code: PlimsollErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** One fault of a configuration. */
export interface ConfigFault {
  /** Where: keys joined by dots, such as `headroom` or `endpoints.2.weight`; empty for the root. */
  readonly path: string;
  /** What stood there. */
  readonly value: unknown;
  /** What would be right. */
  readonly rule: string;
}

/** `PLIMSOLL_CONFIG`: one or more options are wrong. All faults are reported together. */
export class ConfigError extends PlimsollError {
  override readonly name = "ConfigError";
  readonly faults: readonly ConfigFault[];

  constructor(faults: readonly ConfigFault[]) {
    super("PLIMSOLL_CONFIG", faults.map(describeFault).join("\n"));
    this.faults = faults;
  }
}

/** `PLIMSOLL_DURATION`: a text that is not a duration in Go notation. */
export class DurationError extends PlimsollError {
  override readonly name = "DurationError";

  constructor(message: string) {
    super("PLIMSOLL_DURATION", message);
  }
}

/** `PLIMSOLL_ENDPOINT`: an endpoint id that is taken, unknown, or not a text. */
export class EndpointError extends PlimsollError {
  override readonly name = "EndpointError";

  constructor(message: string) {
    super("PLIMSOLL_ENDPOINT", message);
  }
}

/** `PLIMSOLL_KERNEL`: the WebAssembly kernel cannot run here, or cannot have more memory. */
export class KernelError extends PlimsollError {
  override readonly name = "KernelError";

  constructor(message: string, options?: ErrorOptions) {
    super("PLIMSOLL_KERNEL", message, options);
  }
}

/** `PLIMSOLL_TELEMETRY`: a metrics page, header or scrape target that cannot be read. */
export class TelemetryError extends PlimsollError {
  override readonly name = "TelemetryError";

  constructor(message: string, options?: ErrorOptions) {
    super("PLIMSOLL_TELEMETRY", message, options);
  }
}

/** `PLIMSOLL_TRACE`: a recorded request trace that cannot be read. */
export class TraceError extends PlimsollError {
  override readonly name = "TraceError";
  /** Line of the file, from 1. */
  readonly line: number;

  /** @param fault what is wrong there, and what would be right. */
  constructor(file: string, line: number, fault: string) {
    super("PLIMSOLL_TRACE", `${file}:${line}: ${fault}`);
    this.line = line;
  }
}

/** One fault as a line of text: place, rule, value. */
export function describeFault(fault: ConfigFault): string {
  const place = fault.path === "" ? "config" : fault.path;
  return `${place}: ${fault.rule}, got ${describeValue(fault.value)}`;
}

/** A value as a reader would write it, cut to 80 characters. Never throws. */
export function describeValue(value: unknown): string {
  if (typeof value === "string") return cut(JSON.stringify(value));
  if (typeof value === "number" || value === null || value === undefined) {
    return Object.is(value, -0) ? "-0" : String(value);
  }
  if (typeof value === "function") return "a function";
  if (typeof value !== "object") return cut(String(value));
  try {
    return cut(JSON.stringify(value) ?? "an object");
  } catch {
    return "an object that JSON cannot print";
  }
}

function cut(text: string): string {
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}
