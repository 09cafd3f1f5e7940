// The router's own answers: refusals and failures, in the form that OpenAI's clients read, with the reason
// in a header for everybody else.

import type { ServerResponse } from "node:http";
import type { GateReason } from "../evaluation";
import type { AdmissionError } from "../flow/errors";
import { GATE_HEADER, headerValue, REASON_HEADER } from "./headers";

/** Why the router answers itself. */
export type Refusal =
  | "saturated"
  | "ttl-expired"
  | "no-endpoints"
  | "shutting-down"
  | "bad-request"
  | "body-too-large"
  | "model-not-found"
  | "upstream-unreachable"
  | "upstream-silent"
  | "timed-out"
  | "internal-error";

/** An answer of the router's own. */
export interface OwnAnswer {
  readonly status: number;
  readonly reason: Refusal;
  readonly message: string;
  readonly retryAfterS?: number | undefined;
  readonly gate?: GateReason | undefined;
  /** The endpoint that failed, where there is one and it may be named. */
  readonly headers?: readonly string[] | undefined;
}

/** What a refused admission is answered with. */
export function answerOf(error: AdmissionError): OwnAnswer | undefined {
  const { status, reason, retryAfterS, gate, message } = error;
  if (status === undefined || reason === "cancelled") return undefined;
  return { status, reason, message, retryAfterS, gate };
}

/** Answers, if nothing was said yet and somebody listens. */
export function sendAnswer(
  response: ServerResponse,
  answer: OwnAnswer,
  closesClient: boolean,
): void {
  if (response.headersSent || response.destroyed) return;
  const { status, reason, message, retryAfterS, gate, headers = [] } = answer;
  const body = Buffer.from(JSON.stringify({ error: errorObject(status, reason, message) }));
  const all = ["content-type", "application/json", "content-length", String(body.length)];
  all.push("cache-control", "no-store", REASON_HEADER, reason, ...headers);
  if (retryAfterS !== undefined) all.push("retry-after", String(retryAfterS));
  if (gate !== undefined) {
    const { resource, value, limit } = gate;
    all.push(GATE_HEADER, headerValue(`${resource}=${round(value)}; limit=${round(limit)}`));
  }
  if (closesClient) response.shouldKeepAlive = false;
  response.writeHead(status, all);
  response.end(body);
}

function errorObject(status: number, reason: Refusal, message: string): object {
  const type =
    status === 429
      ? "rate_limit_error"
      : status < 500
        ? "invalid_request_error"
        : status === 503
          ? "overloaded_error"
          : "api_error";
  return { message, type, param: null, code: reason.replaceAll("-", "_") };
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
