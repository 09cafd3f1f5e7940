// How a try can end, and what the errors of a connection mean for it.

import type { EarlyEnd } from "./exchange";

/** Why a request is sent to another endpoint. */
export type RetryReason = "connect" | "reset" | "bad-answer" | "429" | "503";

/** Whether a try says for sure that its endpoint takes nothing now; else the request may be at fault. */
export function isRefusal(reason: RetryReason): boolean {
  return reason !== "reset" && reason !== "bad-answer";
}

/** What a status says of its endpoint; undefined: it has taken the request. */
export function refusalOf(status: number): RetryReason | undefined {
  if (status === 429) return "429";
  return status === 503 ? "503" : undefined;
}

/** How a try ended. */
export type TryResult =
  /** The whole answer was passed on. */
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly outputTokens: number | undefined;
    }
  /** Nothing was passed on, and another endpoint may do better. */
  | {
      readonly kind: "refused";
      readonly reason: RetryReason;
      readonly detail: string;
    }
  /** Nothing was passed on, and trying again makes no sense. */
  | { readonly kind: "silent"; readonly detail: string }
  /** The request itself cannot be sent: its body could not be had, or it is no HTTP. */
  | { readonly kind: "unsendable"; readonly error: unknown }
  /** Part of the answer was passed on; the client's connection is cut, so that it can tell. */
  | { readonly kind: "cut"; readonly detail: string }
  | { readonly kind: "ended-early"; readonly reason: EarlyEnd };

const UNSENDABLE = new Set([
  "UND_ERR_INVALID_ARG",
  "UND_ERR_NOT_SUPPORTED",
  "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH",
]);

/** What an error before any answer means. */
export function classify(error: unknown, detail: string): TryResult {
  const refused = (reason: RetryReason): TryResult => ({
    kind: "refused",
    reason,
    detail,
  });
  const code = codeOf(error);
  // The endpoint has no part in it.
  if (UNSENDABLE.has(code)) return { kind: "unsendable", error };
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT") {
    return { kind: "silent", detail };
  }
  if (code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE") {
    return refused("reset");
  }
  if (
    code.startsWith("HPE_") ||
    code === "UND_ERR_HEADERS_OVERFLOW" ||
    code === "ERR_INVALID_CHAR" ||
    (error instanceof Error && error.name === "HTTPParserError")
  ) {
    return refused("bad-answer");
  }
  return refused("connect");
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}

/** An error for people. Several addresses may have been tried, each with an error of its own. */
export function describeError(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0)
    return describeError(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  const code = codeOf(error);
  const message = error.message === "" ? error.name : error.message;
  return code === "" || message.includes(code) ? message : `${message} (${code})`;
}
