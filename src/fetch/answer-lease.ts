// The lease of one answer, apart from the answer: what ends it, exactly once. An answer that is never
// read must not count for ever, so nothing here may reach the answer.
//
//   signal ---+                            strong; must not reach the answer, or nothing is
//   registry -+--> AnswerLease --> lease   ever garbage collected
//                      ^
//   response --+       |
//   its body --+--> Holder   what the caller has; once it is gone, nobody can read on

import type { Lease, ReleaseOptions } from "../lease";

/** How a lease is released whose request was not answered. */
export const FAILED: ReleaseOptions = Object.freeze({ failed: true });

/** The lease of one answer, and what is to be undone when it ends. */
export class AnswerLease {
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
export class Holder {
  readonly answer: AnswerLease;
  /** How many bodies must be cancelled until nobody reads. */
  branches = 1;

  constructor(answer: AnswerLease) {
    this.answer = answer;
    COLLECTED?.register(this, answer, answer);
  }
}

/** What is thrown away need not be read to its end. */
export function ignore(): void {}
