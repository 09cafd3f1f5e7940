// What every transport has in common: the shape of a page source, what counts as a page, and what to
// say of an answer that is none.

import { describeValue, TelemetryError } from "../errors";
import { hideCredentials } from "./targets";

/** One GET. */
export interface PageRequest {
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The whole answer must be there within this time. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

/** One server's pages. */
export interface PageSource {
  /** @throws AnswerError when the answer is no page; other errors come from the network. */
  get(request: PageRequest): Promise<Uint8Array>;
  /** Ends what is under way, and the connection, at once. */
  close(): Promise<void>;
}

/** Makes the source of an origin. Each has a connection of its own, so that none waits for another. */
export type OpenSource = (origin: string) => PageSource;

/** What `fetch` must look like to be injected. */
export type FetchLike = (url: string, init: RequestInit) => Promise<Response>;

/** A server answered, but not with a page. */
export class AnswerError extends TelemetryError {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Refuses an answer that is not 200.
 *
 * @param location where a redirect pointed.
 */
export function checkStatus(status: number, location: string | null | undefined): void {
  if (status === 200) return;
  if (status >= 300 && status < 400 && status !== 304) {
    const to = location == null ? "an address it hides" : describeValue(hideCredentials(location));
    throw new AnswerError(status, `HTTP ${status}, a redirect to ${to}: give the final address`);
  }
  throw new AnswerError(status, `HTTP ${status}`);
}

/** Refuses bytes that are still compressed. */
export function checkEncoding(encoding: string | undefined): void {
  if (encoding === undefined || encoding === "" || encoding.toLowerCase() === "identity") return;
  const what = describeValue(encoding);
  throw new AnswerError(200, `the page is compressed (${what}), though identity was asked for`);
}

/** What to say of an answer that does not come, or not to an end. */
export function tooSlow(timeoutMs: number): TelemetryError {
  return new TelemetryError(`no whole answer within ${Math.round(timeoutMs)} ms`);
}

/** What to say of a body that goes on and on. */
export function tooLarge(maxBytes: number): TelemetryError {
  return new TelemetryError(`the page is larger than ${maxBytes} bytes: is this a metrics page?`);
}

/** What readings end with when the scraper is closed. */
export function closed(): TelemetryError {
  return new TelemetryError("the scraper was closed");
}

/** Chunks as one array; one chunk as it is. */
export function concat(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const [first] = chunks;
  if (first !== undefined && chunks.length === 1) return first;
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

/** A timer that holds no process open. Browsers' timers are numbers and hold none anyway. */
export function startTimer(run: () => void, delayMs: number): ReturnType<typeof setTimeout> {
  const timer = setTimeout(run, delayMs);
  if (typeof timer === "object") timer.unref?.();
  return timer;
}
