// The client's side of one request: who may still be answered, and why it ended early. It knows nothing of
// endpoints.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { WaitSignal } from "../flow/controller";
import type { OwnAnswer } from "./answers";

/**
 * Why a request ended before its answer was complete:
 * - `client-gone`: nobody is there to answer;
 * - `client-stalled`: it reads nothing of its answer;
 * - `bad-request`: what it has sent of its body is no HTTP;
 * - `request-timeout`: it took too long to send its body;
 * - `timed-out`: it took longer than a request may take;
 * - `shutting-down`: the router stops, and waits no longer.
 */
export type EarlyEnd =
  | "client-gone"
  | "client-stalled"
  | "bad-request"
  | "request-timeout"
  | "timed-out"
  | "shutting-down";

/** A client that still sends is listened to until it has been silent for so long, in ms. */
const LINGER_MS = 500;

/** One request and its answer. */
export class Exchange implements WaitSignal {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** When it came, on the pool's clock. */
  readonly startedAt: number;
  /** What the router has answered itself, if it has. */
  ownAnswer: OwnAnswer | undefined;
  /** The gate it has asked, and in which band, once it has. */
  asked: { readonly gate: { readonly model: string }; readonly band: string } | undefined;
  /** Its connection shall not be kept. */
  isLastOfClient = false;
  #earlyEnd: EarlyEnd | undefined;
  #onEarlyEnd: (() => void) | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #onClose = () => {
    if (!this.response.writableFinished) this.end("client-gone");
  };

  /** @param totalMs how long it may take as a whole. */
  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    startedAt: number,
    totalMs: number,
  ) {
    this.request = request;
    this.response = response;
    this.startedAt = startedAt;
    response.on("close", this.#onClose);
    if (response.destroyed || request.socket.destroyed) this.end("client-gone");
    this.#timer = setTimeout(() => this.end("timed-out"), totalMs);
  }

  /** Why it ended early; undefined while it goes on. */
  get earlyEnd(): EarlyEnd | undefined {
    return this.#earlyEnd;
  }

  /** Whether its connection ends with it: what is left of a body would be taken for the next request. */
  get closesClient(): boolean {
    return this.isLastOfClient || !this.request.complete;
  }

  /** True at an early end: as a signal, an exchange ends waiting. */
  get aborted(): boolean {
    return this.#earlyEnd !== undefined;
  }

  /** Why, for whoever waited. */
  get reason(): EarlyEnd | undefined {
    return this.#earlyEnd;
  }

  addEventListener(_: "abort", listener: () => void): void {
    this.#onEarlyEnd = listener;
  }

  removeEventListener(_: "abort", listener: () => void): void {
    if (this.#onEarlyEnd === listener) this.#onEarlyEnd = undefined;
  }

  /** It ends early, once. Whoever works for it is told at once. */
  end(reason: EarlyEnd): void {
    if (this.#earlyEnd !== undefined) return;
    this.#earlyEnd = reason;
    this.#onEarlyEnd?.();
  }

  /**
   * Who works for it now; undefined: nobody. There is one at a time.
   *
   * Assign what is kept under a name, not a function literal: V8 puts a literal that is assigned to a
   * property among its old objects, and all that it refers to follows, for each request, until a full
   * collection.
   */
  set onEarlyEnd(listener: (() => void) | undefined) {
    this.#onEarlyEnd = listener;
  }

  /**
   * The answer is written, and ends. A client that still sends is listened to for a while: to close on it
   * would take the answer away before it has been read.
   */
  finish(): void {
    const { request, response } = this;
    if (request.complete || response.destroyed) {
      response.end();
      return;
    }
    const timer = setTimeout(end, LINGER_MS);
    const onData = () => void timer.refresh();
    function end() {
      clearTimeout(timer);
      request.off("data", onData).off("end", end).off("close", end);
      response.end();
    }
    request.on("data", onData).on("end", end).on("close", end).resume();
  }

  /**
   * Resolves when the answer has left the router, or nobody is there any more.
   *
   * @param stallMs a client that has not read the rest by then is given up.
   */
  async flushed(stallMs: number): Promise<void> {
    const { response } = this;
    if (response.writableFinished || response.destroyed) return;
    await new Promise<void>((resolve) => {
      const stall = setTimeout(() => this.end("client-stalled"), stallMs);
      const settle = () => {
        clearTimeout(stall);
        response.off("finish", settle).off("close", settle);
        this.#onEarlyEnd = undefined;
        resolve();
      };
      response.on("finish", settle).on("close", settle);
      const giveUp = () => {
        response.destroy();
        settle();
      };
      this.#onEarlyEnd = giveUp;
    });
  }

  /** Lets go of everything. */
  close(): void {
    clearTimeout(this.#timer);
    this.#onEarlyEnd = undefined;
    this.response.off("close", this.#onClose);
  }
}
