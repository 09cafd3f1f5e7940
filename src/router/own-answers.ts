// What the router says when it answers itself, and no flow controller has found the words.

import type { OwnAnswer } from "./answers";
import type { RetryReason } from "./try-errors";

/** The target is no path. */
export const BAD_TARGET: OwnAnswer = {
  status: 400,
  reason: "bad-request",
  message: "the request's target must be a path, such as /v1/models",
};
/** What was sent is no HTTP. */
export const BAD_REQUEST: OwnAnswer = {
  status: 400,
  reason: "bad-request",
  message: "what was sent is not HTTP/1.1",
};
/** The headers are larger than they may be. */
export const HEADERS_TOO_LARGE: OwnAnswer = {
  status: 431,
  reason: "headers-too-large",
  message: "the request's headers are larger than this router takes",
};
/** The client was too slow in sending its request. */
export const REQUEST_TIMEOUT: OwnAnswer = {
  status: 408,
  reason: "request-timeout",
  message: "the request did not arrive in time",
};
/** The body comes in a form that the router does not pass on. */
export const UNKNOWN_CODING: OwnAnswer = {
  status: 501,
  reason: "unknown-coding",
  message: 'the only transfer-encoding that this router takes is "chunked"',
};
/** Which model is asked for cannot be read. */
export const UNREADABLE: OwnAnswer = {
  status: 415,
  reason: "unreadable-body",
  message: "the request's `model` cannot be read: its body must not be compressed",
};
/** Which model is asked for stands behind more than can be kept. */
export const MODEL_TOO_LATE: OwnAnswer = {
  status: 413,
  reason: "body-too-large",
  message: "the request's `model` stands behind more than this router keeps: put it first",
};
/** The body is larger than it may be. */
export const TOO_LARGE: OwnAnswer = {
  status: 413,
  reason: "body-too-large",
  message: "the request's body is larger than this router takes",
};
/** No answer in time, at one try. */
export const SILENT: OwnAnswer = {
  status: 504,
  reason: "upstream-silent",
  message: "the endpoint did not answer in time",
};
/** No answer in time, as a whole. */
export const TIMED_OUT: OwnAnswer = {
  status: 504,
  reason: "timed-out",
  message: "the request took longer than a request may take",
};
/** It was cut off by the end of the router. */
export const SHUTTING_DOWN: OwnAnswer = {
  status: 503,
  reason: "shutting-down",
  message: "the router is shutting down",
  headers: { "retry-after": "1" },
};
/** A fault of the router. */
export const INTERNAL: OwnAnswer = {
  status: 500,
  reason: "internal-error",
  message: "the router has failed; its log says more",
};

/** Nobody serves the model. */
export function notFound(model: string | undefined): OwnAnswer {
  const name = JSON.stringify((model ?? "").slice(0, 128));
  const message = `no endpoint serves the model ${name}`;
  return { status: 404, reason: "model-not-found", code: "model_not_found", message };
}

/** Every try was refused. */
export function unreachable(tries: number, reason: RetryReason): OwnAnswer {
  const times = tries === 1 ? "1 try" : `${tries} tries`;
  const message = `no endpoint took the request: ${times}, the last one ended with "${reason}"`;
  return { status: 502, reason: "upstream-unreachable", message };
}
