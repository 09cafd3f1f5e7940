// A refusal as an HTTP answer, the same wherever this package answers for an endpoint: the router, the
// client's `fetch` and the Fastify plugin. Plain data, so that each can write it in its own way.

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

/** An error in the form of the OpenAI API, which its clients show as it is. */
export interface ErrorBody {
  readonly error: Readonly<Record<"message" | "type" | "code", string>> & { readonly param: null };
}

/** What an answer with this status says in its body; `code` is the reason. */
export function errorBody(status: number, code: string, message: string): ErrorBody {
  return { error: { message, type: errorType(status), param: null, code } };
}

/** The body of a refusal. */
export function refusalBody({ status, reason, message }: AdmissionError): ErrorBody {
  return errorBody(status ?? 503, reason, message);
}

function errorType(status: number): string {
  if (status === 429) return "rate_limit_exceeded";
  if (status === 503) return "service_unavailable";
  return status < 500 ? "invalid_request_error" : "api_error";
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
