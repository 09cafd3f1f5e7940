// The router's own answers: refusals and failures, in the form that OpenAI's clients read, with the reason
// in a header for everybody else.

import type { ServerResponse } from "node:http";
import { errorBody, REASON_HEADER, refusalHeaders } from "../flow/answer";
import type { AdmissionError } from "../flow/errors";

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
  /** As OpenAI calls it, where it has a name for it; default: the reason. */
  readonly code?: string | undefined;
  /** Beside the reason, in lower case: when to try again, and what closed the gate. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** What a refused admission is answered with. */
export function answerOf(error: AdmissionError): OwnAnswer | undefined {
  const { status, reason, message } = error;
  if (status === undefined || reason === "cancelled") return undefined;
  return { status, reason, message, headers: refusalHeaders(error) };
}

/** Answers, if nothing was said yet and somebody listens. */
export function sendAnswer(
  response: ServerResponse,
  answer: OwnAnswer,
  closesClient: boolean,
): void {
  if (response.headersSent || response.destroyed) return;
  const { status, reason, message, code = reason, headers } = answer;
  const body = Buffer.from(JSON.stringify(errorBody(status, code, message)));
  if (closesClient) response.shouldKeepAlive = false;
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": body.length,
    "cache-control": "no-store",
    [REASON_HEADER]: reason,
    ...headers,
  });
  response.end(body);
}
