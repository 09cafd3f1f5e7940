// The life of a lease after the headers: it is started at the first byte of a streamed answer and
// released exactly once: when the body has ended, failed or was cancelled, when the request was
// aborted, or when the answer was garbage collected unread.
//
// The answer stays the platform's own Response, with its body methods replaced: `json()` and `text()`
// keep their native speed, and `url`, `type` and `redirected` stay true. Only `body` is a new stream.
//
//   signal ---+                            strong; must not reach the answer, or nothing is
//   registry -+--> AnswerLease --> lease   ever garbage collected
//                      ^
//   response --+       |
//   its body --+--> Holder   what the caller has; once it is gone, nobody can read on

import type { Lease, ReleaseOptions } from "../lease";

/** How a lease is released whose request was not answered. */
export const FAILED: ReleaseOptions = Object.freeze({ failed: true });

/** Media types of answers that come piece by piece. */
const STREAMED = /^(?:text\/event-stream|application\/(?:x-ndjson|jsonl|stream\+json))\b/i;
const READERS = ["arrayBuffer", "blob", "bytes", "formData", "json", "text"] as const;

/** The lease of one answer, and what is to be undone when it ends. */
class AnswerLease {
  readonly #lease: Lease;
  readonly #signal: AbortSignal | undefined;
  readonly #isAnswer: boolean;
  readonly #abort = () => this.fail();
  /** Read ends of the original body, to be cancelled when nobody can read on. */
  readonly readers: ReadableStreamDefaultReader<Uint8Array>[] = [];
  #awaitsByte: boolean;
  #hasEnded = false;

  /** @param isAnswer the endpoint did what it was asked to; errors teach nothing of its pace. */
  constructor(lease: Lease, signal: AbortSignal | undefined, isAnswer: boolean, streamed: boolean) {
    this.#lease = lease;
    this.#signal = signal;
    this.#isAnswer = isAnswer;
    this.#awaitsByte = streamed;
    signal?.addEventListener("abort", this.#abort);
  }

  /** Bytes have come. */
  noteBytes(): void {
    if (!this.#awaitsByte) return;
    this.#awaitsByte = false;
    this.#lease.started();
  }

  /** The body is over. */
  end(outputTokens?: number): void {
    this.#finish(this.#isAnswer ? { outputTokens } : FAILED);
  }

  /** The body broke off, or nobody wants the rest. */
  fail(): void {
    this.#finish(FAILED);
  }

  /** Nobody can read on: the endpoint need not go on either. */
  abandon(): void {
    this.fail();
    for (const reader of this.readers) reader.cancel().catch(ignore);
  }

  #finish(options: ReleaseOptions): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#signal?.removeEventListener("abort", this.#abort);
    COLLECTED?.unregister(this);
    this.#lease.release(options);
  }
}

/** Some hosts have no registry: there a lease whose answer is dropped unread is never released. */
const COLLECTED = /* @__PURE__ */ makeRegistry();

function makeRegistry(): FinalizationRegistry<AnswerLease> | undefined {
  if (typeof FinalizationRegistry === "undefined") return undefined;
  return new FinalizationRegistry((answer) => answer.abandon());
}

/** What an answer, its clones and their bodies have in common. */
class Holder {
  readonly answer: AnswerLease;
  /** How many bodies must be cancelled until nobody reads. */
  branches = 1;

  constructor(answer: AnswerLease) {
    this.answer = answer;
  }
}

/**
 * Hands an answer over to the caller, who ends the lease by reading it, cancelling it, aborting the
 * request, or losing it.
 *
 * @param signal that of the request.
 * @returns the same response.
 */
export function bindLease(
  response: Response,
  lease: Lease,
  signal: AbortSignal | undefined,
): Response {
  const { ok, headers, body } = response;
  if (body === null || headers.get("content-length") === "0") {
    lease.release(ok ? undefined : FAILED);
    return response;
  }
  const isStreamed = ok && STREAMED.test(headers.get("content-type") ?? "");
  const answer = new AnswerLease(lease, signal, ok, isStreamed);
  // An abort that came together with the headers will not be told again.
  if (signal?.aborted === true) {
    answer.fail();
    return response;
  }
  const holder = new Holder(answer);
  COLLECTED?.register(holder, answer, answer);
  replaceReaders(response, holder);
  return response;
}

/** Gives an answer up that nobody will see. */
export function discardBody(response: Response): void {
  response.body?.cancel().catch(ignore);
}

/** What is thrown away need not be read to its end. */
function ignore(): void {}

function replaceReaders(response: Response, holder: Holder): void {
  let stream: ReadableStream<Uint8Array> | undefined;
  const isLocked = () => stream?.locked === true && !response.bodyUsed;
  for (const name of READERS) {
    const read: unknown = response[name];
    if (typeof read !== "function") continue; // `bytes` is younger than Node 20
    define(response, name, async () => {
      // The platform rejects a second reading itself, and the first one goes on.
      if (response.bodyUsed) return read.call(response);
      if (isLocked()) throw lockedError();
      return readWhole(read.call(response), holder);
    });
  }
  const clone = response.clone;
  define(response, "clone", () => {
    if (isLocked()) throw lockedError();
    const copy = clone.call(response);
    holder.branches++;
    replaceReaders(copy, holder);
    return copy;
  });
  Object.defineProperty(response, "body", {
    configurable: true,
    get: () => {
      stream ??= watchBody(() => nativeBody(response), holder);
      return stream;
    },
  });
}

function define(response: Response, name: string, value: () => unknown): void {
  Object.defineProperty(response, name, { configurable: true, writable: true, value });
}

function lockedError(): TypeError {
  return new TypeError("the body is locked by a reader");
}

/** The body behind the property that hides it. After `clone` it is another one. */
function nativeBody(response: Response): ReadableStream<Uint8Array> {
  return Reflect.get(Object.getPrototypeOf(response), "body", response);
}

async function readWhole(reading: Promise<unknown>, holder: Holder): Promise<unknown> {
  try {
    const value = await reading;
    holder.answer.end(outputTokensOf(value));
    return value;
  } catch (error) {
    holder.answer.fail();
    throw error;
  }
}

/** What an answer of the OpenAI API says of its length, once it has been parsed anyway. */
function outputTokensOf(value: unknown): number | undefined {
  if (typeof value !== "object" || value === null || !("usage" in value)) return undefined;
  const { usage } = value;
  if (typeof usage !== "object" || usage === null) return undefined;
  const count = "completion_tokens" in usage ? usage.completion_tokens : undefined;
  return typeof count === "number" ? count : undefined;
}

/**
 * The body as a stream that tells of its bytes and its end. It takes hold of the original only when
 * it is read, so that whoever merely looks at `body` can still call `json()`; and it reads no more
 * than was asked for, so that back-pressure reaches the endpoint.
 */
function watchBody(
  original: () => ReadableStream<Uint8Array>,
  holder: Holder,
): ReadableStream<Uint8Array> {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  const source: UnderlyingDefaultSource<Uint8Array> = {
    pull: async (controller) => {
      if (reader === undefined) {
        reader = original().getReader();
        holder.answer.readers.push(reader);
      }
      try {
        const { done, value } = await reader.read();
        if (done) {
          holder.answer.end();
          controller.close();
          return;
        }
        if (value.byteLength > 0) holder.answer.noteBytes();
        controller.enqueue(value);
      } catch (error) {
        holder.answer.fail();
        throw error;
      }
    },
    cancel: (reason) => {
      const body = reader ?? original();
      // Somebody reads it whole, so that it rejects this, and goes on.
      const isTaken = "locked" in body && body.locked;
      if (!isTaken && --holder.branches === 0) holder.answer.fail();
      return body.cancel(reason);
    },
  };
  return new ReadableStream(source, { highWaterMark: 0 });
}
