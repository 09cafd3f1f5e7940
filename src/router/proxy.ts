// One request's life: its body is read, it goes where it may go, and it is answered, whatever happens.

import type { IncomingMessage, ServerResponse } from "node:http";
import { AdmissionError } from "../flow/errors";
import { answerOf, type OwnAnswer, type Refusal, writeAnswer } from "./answers";
import {
  BodyCutError,
  BodyTooLargeError,
  ModelTooLateError,
  type RequestBody,
  UnknownCodingError,
} from "./body";
import { type EarlyEnd, Exchange } from "./exchange";
import { type Facts, NO_FACTS } from "./facts";
import type { Gate } from "./gates";
import {
  BAD_REQUEST,
  BAD_TARGET,
  INTERNAL,
  MODEL_TOO_LATE,
  notFound,
  REQUEST_TIMEOUT,
  SHUTTING_DOWN,
  SILENT,
  TIMED_OUT,
  TOO_LARGE,
  UNKNOWN_CODING,
  UNREADABLE,
  unreachable,
} from "./own-answers";
import { readerOf, readPath, requestOf } from "./request";
import { Tries, type TryContext, type TryObserver } from "./tries";

/** How a request ended. */
export type Outcome = "answered" | "upstream-cut" | Refusal | EarlyEnd;

/** Is told of every request. */
export interface ProxyObserver extends TryObserver {
  onEnd(outcome: Outcome, request: Ended): void;
}

/** What is known of a request that has ended. */
export type Ended = Pick<Exchange, "startedAt" | "ownAnswer" | "asked">;

/** What a proxy works with. */
export interface ProxyContext extends TryContext {
  find(model: string | undefined): Gate | undefined;
  /** Whether endpoints differ in the models they serve. */
  needsModel(): boolean;
  readonly observer: ProxyObserver;
  /** Is told of what should never happen. */
  onFault(error: unknown): void;
}

const NO_BODY: RequestBody = { kind: "none" };
const BODY_ERRORS: readonly (readonly [new () => Error, OwnAnswer])[] = [
  [BodyTooLargeError, TOO_LARGE],
  [ModelTooLateError, MODEL_TOO_LATE],
  [UnknownCodingError, UNKNOWN_CODING],
];
/** Early ends of which the client can still be told. */
const EARLY_ANSWERS: Partial<Record<EarlyEnd, OwnAnswer>> = {
  "bad-request": BAD_REQUEST,
  "request-timeout": REQUEST_TIMEOUT,
  "timed-out": TIMED_OUT,
  "shutting-down": SHUTTING_DOWN,
};

/** Passes requests on to endpoints. */
export class RequestProxy {
  readonly #context: ProxyContext;
  readonly #live = new Set<Exchange>();
  #isClosing = false;
  #whenIdle: (() => void) | undefined;

  constructor(context: ProxyContext) {
    this.#context = context;
  }

  /** Requests that are being served. */
  get live(): number {
    return this.#live.size;
  }

  /** Serves a request. Never throws. @param onEnd called when it has ended, never before this returns. */
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    url: string,
    onEnd: () => void,
  ): Exchange {
    const { settings, now } = this.#context;
    const exchange = new Exchange(request, response, now(), settings().timeouts.total);
    exchange.isLastOfClient = this.#isClosing;
    this.#live.add(exchange);
    void this.#serve(exchange, url).then(onEnd);
    return exchange;
  }

  /** Something was answered before it was a request. */
  refused(ownAnswer: OwnAnswer): void {
    const request = { startedAt: this.#context.now(), ownAnswer, asked: undefined };
    this.#context.observer.onEnd(ownAnswer.reason, request);
  }

  /** From now on, connections of clients are not kept. */
  stopKeeping(): void {
    this.#isClosing = true;
    for (const exchange of this.#live) exchange.isLastOfClient = true;
  }

  /** Resolves when no request is being served. */
  async idle(): Promise<void> {
    if (this.#live.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
    });
  }

  /** Ends what is still being served. */
  endAll(): void {
    for (const exchange of [...this.#live]) exchange.end("shutting-down");
  }

  async #serve(exchange: Exchange, url: string): Promise<void> {
    const { keeper, observer } = this.#context;
    let body = NO_BODY;
    let outcome: Outcome = "internal-error";
    try {
      const needsModel = this.#context.needsModel();
      const reader = readerOf(exchange.request);
      body = await keeper.read(exchange.request, exchange, reader, needsModel);
      const isUnreadable = reader === undefined && needsModel && body.kind !== "none";
      outcome = isUnreadable
        ? this.#answer(exchange, UNREADABLE)
        : await this.#forward(exchange, url, body, reader?.facts ?? NO_FACTS);
    } catch (error) {
      outcome = this.#explain(exchange, error);
    } finally {
      await exchange.flushed(this.#context.settings().timeouts.clientStall);
      keeper.release(body);
      exchange.close();
      this.#live.delete(exchange);
      // An answer counts when it has left; its client may be gone by then.
      const { earlyEnd } = exchange;
      const isCut = outcome === "answered" && earlyEnd !== undefined;
      observer.onEnd(isCut ? earlyEnd : outcome, exchange);
      if (this.#live.size === 0) this.#whenIdle?.();
    }
  }

  /** Finds out where it may go, and sends it there. */
  async #forward(
    exchange: Exchange,
    url: string,
    body: RequestBody,
    facts: Facts,
  ): Promise<Outcome> {
    const settings = this.#context.settings();
    const path = readPath(url);
    if (path === undefined) return this.#answer(exchange, BAD_TARGET);
    const gate = this.#context.find(facts.model);
    if (gate === undefined) return this.#answer(exchange, notFound(facts.model));
    const asked = requestOf(exchange, facts, settings);
    const { stream: wantsStream } = facts;
    const job = { exchange, settings, path, body, wantsStream, gate, ...asked };
    exchange.asked = job;
    const { tries, result } = await new Tries(this.#context, job).run();
    switch (result.kind) {
      case "answered":
        return "answered";
      case "refused":
        return this.#answer(exchange, unreachable(tries, result.reason));
      case "cut":
        return "upstream-cut";
      case "silent":
        return this.#answer(exchange, SILENT);
      case "unsendable":
        return this.#explain(exchange, result.error);
      case "ended-early":
        return this.#explainEarlyEnd(exchange, result.reason);
    }
  }

  /** What came in the way, as an answer. */
  #explain(exchange: Exchange, error: unknown): Outcome {
    if (exchange.earlyEnd !== undefined) {
      return this.#explainEarlyEnd(exchange, exchange.earlyEnd);
    }
    if (error instanceof BodyCutError) return "client-gone";
    const body = BODY_ERRORS.find(([kind]) => error instanceof kind);
    if (body !== undefined) return this.#answer(exchange, body[1]);
    const answer = error instanceof AdmissionError ? answerOf(error) : undefined;
    if (answer !== undefined) return this.#answer(exchange, answer);
    this.#context.onFault(error);
    return this.#answer(exchange, INTERNAL);
  }

  #explainEarlyEnd(exchange: Exchange, reason: EarlyEnd): Outcome {
    const answer = EARLY_ANSWERS[reason];
    if (answer !== undefined) this.#answer(exchange, answer);
    else if (exchange.response.headersSent && !exchange.response.writableEnded) {
      exchange.response.destroy(); // part of an answer was sent: the client must see that it is cut
    }
    return reason;
  }

  #answer(exchange: Exchange, answer: OwnAnswer): Outcome {
    const { response } = exchange;
    if (response.headersSent) {
      // Part of another answer was sent: the client must see that it is cut.
      if (!response.writableEnded) response.destroy();
      return answer.reason;
    }
    exchange.ownAnswer = answer;
    writeAnswer(response, answer, exchange.closesClient);
    exchange.finish();
    return answer.reason;
  }
}
