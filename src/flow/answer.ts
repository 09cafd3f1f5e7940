// A refusal as an HTTP answer, the same wherever this package answers for an endpoint: the client's
// `fetch` and the Fastify plugin. Plain data, so that each can write it in its own way.

import type { AdmissionError } from "./errors";

/** Response header that carries the reason of a refusal, such as `saturated`. */
export const REASON_HEADER = "x-plimsoll-reason";
/** Response header that carries what closed the gate: `resource=queue; value=7; limit=5`. */
export const GATE_HEADER = "x-plimsoll-gate";

/**
 * What a refused request is told in headers: `retry-after` in whole seconds, the reason, and what
 * closed the gate. Names are in lower case. No endpoint is named: whoever is refused need not know
 * the addresses behind the gate.
 */
export function refusalHeaders(error: AdmissionError): Record<string, string> {
  const { reason, retryAfterS, gate } = error;
  const headers: Record<string, string> = { [REASON_HEADER]: reason };
  if (retryAfterS !== undefined) headers["retry-after"] = String(Math.ceil(retryAfterS));
  if (gate !== undefined) {
    const { resource, value, limit } = gate;
    headers[GATE_HEADER] = `resource=${resource}; value=${round(value)}; limit=${round(limit)}`;
  }
  return headers;
}

/** The error of a refusal in the form of the OpenAI API, which its clients show as it is. */
export function refusalBody(error: AdmissionError): {
  readonly error: Readonly<Record<"message" | "type" | "code", string>> & { readonly param: null };
} {
  const { status, reason, message } = error;
  const type = status === 429 ? "rate_limit_exceeded" : "service_unavailable";
  return { error: { message, type, param: null, code: reason } };
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
