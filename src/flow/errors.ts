// What a caller is told when its request was not admitted.

import { PlimsollError } from "../errors";
import type { GateReason } from "../evaluation";
import type { Refusal, RefusalReason } from "./ticket";

/** `PLIMSOLL_ADMISSION`: the request may not go to an endpoint now. */
export class AdmissionError extends PlimsollError {
  override readonly name = "AdmissionError";
  readonly reason: RefusalReason;
  /** HTTP status to answer with; undefined when the caller is gone. */
  readonly status: 429 | 503 | undefined;
  /** For the header `Retry-After`, in s, 1 to 30; undefined when the caller is gone. */
  readonly retryAfterS: number | undefined;
  /** What keeps the gate shut, where it can be told. */
  readonly gate: GateReason | undefined;
  /** How long the request waited, in ms. */
  readonly waitedMs: number;

  constructor(refusal: Refusal, options?: ErrorOptions) {
    super("PLIMSOLL_ADMISSION", describeRefusal(refusal), options);
    this.reason = refusal.reason;
    this.status = refusal.status;
    this.retryAfterS = refusal.retryAfterS;
    this.gate = refusal.gate;
    this.waitedMs = refusal.waitedMs;
  }
}

const MEANING: Readonly<Record<RefusalReason, string>> = {
  saturated: "the pool is saturated and there is no room to wait in",
  "ttl-expired": "the pool stayed saturated for as long as the request may wait",
  "no-endpoints": "there is no endpoint that the request could go to",
  "shutting-down": "the controller is closing",
  cancelled: "the caller is gone",
};

function describeRefusal({ reason, gate, waitedMs, retryAfterS }: Refusal): string {
  const waited = waitedMs > 0 ? ` after ${Math.round(waitedMs)} ms` : "";
  const short =
    gate === undefined ? "" : `; ${gate.resource} ${round(gate.value)} of ${round(gate.limit)}`;
  const retry = retryAfterS === undefined ? "" : `; try again in ${retryAfterS} s`;
  return `${MEANING[reason]}${waited}${short}${retry}`;
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
