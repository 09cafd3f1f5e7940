// What the router says when it answers itself, and no flow controller has found the words.

import type { OwnAnswer } from "./answers";
import type { RetryReason } from "./try-errors";

/** The target is no path. */
export const BAD_TARGET: OwnAnswer = {
  status: 400,
  reason: "bad-request",
  message: "the request's target must be a path, such as /v1/models",
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
