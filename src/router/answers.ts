// The router's own answers: refusals and failures, in the form that OpenAI's clients read, with the reason
// in a header for everybody else.

import { type ServerResponse, STATUS_CODES } from "node:http";
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
  | "headers-too-large"
  | "request-timeout"
  | "unknown-coding"
  | "unreadable-body"
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

/**
 * Answers, if nothing was said yet and somebody listens. The answer is whole, but not ended: `end` of its
 * exchange does that.
 */
export function writeAnswer(
  response: ServerResponse,
  answer: OwnAnswer,
  closesClient: boolean,
): void {
  if (response.headersSent || response.destroyed) return;
  const body = bodyOf(answer);
  if (closesClient) response.shouldKeepAlive = false;
  response.writeHead(answer.status, headersOf(answer, body));
  response.write(body);
}

/** An answer to what is no request, as the bytes of a connection that ends with it. */
export function rawAnswer(answer: OwnAnswer): string {
  const body = bodyOf(answer);
  const headers = Object.entries({ ...headersOf(answer, body), connection: "close" });
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n${lines}\r\n${body}`;
}

function bodyOf({ status, reason, message, code = reason }: OwnAnswer): Buffer {
  return Buffer.from(JSON.stringify(errorBody(status, code, message)));
}

function headersOf({ reason, headers }: OwnAnswer, body: Buffer): Record<string, string> {
  return {
    "content-type": "application/json",
    "content-length": String(body.length),
    "cache-control": "no-store",
    [REASON_HEADER]: reason,
    ...headers,
  };
}
