// One request's life: its body is read, it is let through, tried at one endpoint and perhaps at others, and
// answered. Whatever happens, its lease is released once, in one place.

import type { IncomingMessage, ServerResponse } from "node:http";
import { AdmissionError } from "../flow/errors";
import type { ReleaseOptions } from "../lease";
import type { Sample } from "../sample";
import { answerOf, type OwnAnswer, type Refusal, sendAnswer } from "./answers";
import { BodyCutError, type BodyKeeper, BodyTooLargeError, type RequestBody } from "./body";
import type { RouterSettings } from "./config";
import { type EarlyEnd, Exchange } from "./exchange";
import type { Facts } from "./facts";
import type { Upstream } from "./fleet";
import type { Gate, GateRequest, Leased } from "./gates";
import { requestHeaders } from "./headers";
import type { HoldOffs } from "./hold-off";
import {
  BAD_TARGET,
  INTERNAL,
  notFound,
  SHUTTING_DOWN,
  SILENT,
  TIMED_OUT,
  TOO_LARGE,
  unreachable,
} from "./own-answers";
import { factsOf, lengthOf, readPath, requestOf, ttlOf } from "./request";
import type { RetryReason, TryResult } from "./try-errors";
import { endpointHeader, tryEndpoint } from "./upstream";

/** How a request ended. */
export type Outcome = "answered" | "upstream-cut" | Refusal | EarlyEnd;

/** Is told of every request. */
export interface ProxyObserver {
  onAdmitted(model: string, band: string, waitedMs: number): void;
  onAnswer(endpoint: string, status: number): void;
  onFirstByte(ms: number): void;
  /** A try ended, however. @param ms since it was sent. */
  onTried(ms: number): void;
  onRefused(reason: RetryReason, isRetried: boolean): void;
  onEnd(outcome: Outcome): void;
}

/** What a proxy works with. */
export interface ProxyContext {
  settings(): RouterSettings;
  /** Now, on the pool's clock, in ms. */
  now(): number;
  find(model: string | undefined): Gate | undefined;
  upstream(id: string): Upstream | undefined;
  onSample(id: string, sample: Sample): void;
  readonly holdOffs: HoldOffs;
  readonly keeper: BodyKeeper;
  readonly observer: ProxyObserver;
  /** Is told of what should never happen. */
  onFault(error: unknown): void;
}

/** A request that is being served. */
interface Job {
  readonly exchange: Exchange;
  readonly settings: RouterSettings;
  readonly path: string;
  readonly body: RequestBody;
  readonly facts: Facts;
  readonly gate: Gate;
  readonly request: GateRequest;
  readonly band: string;
  /** Endpoints that have refused it. */
  tried: ReadonlySet<string>;
  /** A long body can be read once. */
  isBodyTaken: boolean;
  bodyFailure: unknown;
}

const NOBODY: ReadonlySet<string> = new Set();
const NO_BODY: RequestBody = { kind: "none" };

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

  /** Serves a request. Never throws. */
  handle(request: IncomingMessage, response: ServerResponse, url: string): void {
    const { settings, now } = this.#context;
    const exchange = new Exchange(request, response, now(), settings().timeouts.total);
    this.#live.add(exchange);
    void this.#serve(exchange, url);
  }

  /** From now on, connections of clients are not kept. */
  stopKeeping(): void {
    this.#isClosing = true;
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
      exchange.onEarlyEnd = () => exchange.request.destroy();
      body = await keeper.read(exchange.request);
      exchange.onEarlyEnd = undefined;
      outcome = await this.#forward(exchange, url, body);
    } catch (error) {
      outcome = this.#explain(exchange, error);
    } finally {
      await exchange.flushed(this.#context.settings().timeouts.clientStall);
      keeper.release(body);
      exchange.close();
      this.#live.delete(exchange);
      // An answer counts when it has left; its client may be gone by then.
      const { earlyEnd } = exchange;
      observer.onEnd(outcome === "answered" && earlyEnd !== undefined ? earlyEnd : outcome);
      if (this.#live.size === 0) this.#whenIdle?.();
    }
  }

  /** Tries one endpoint after another. */
  async #forward(exchange: Exchange, url: string, body: RequestBody): Promise<Outcome> {
    const settings = this.#context.settings();
    const path = readPath(url);
    if (path === undefined) return this.#answer(exchange, BAD_TARGET);
    const facts = factsOf(exchange.request, body);
    const gate = this.#context.find(facts.model);
    if (gate === undefined) return this.#answer(exchange, notFound(facts.model));
    const { request, band } = requestOf(exchange, facts, settings);
    const job: Job = {
      exchange,
      settings,
      path,
      body,
      facts,
      gate,
      request,
      band,
      tried: NOBODY,
      isBodyTaken: false,
      bodyFailure: undefined,
    };
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt >= settings.retry.attempts;
      const result = await this.#try(job, attempt, isLast);
      if (result.kind !== "refused") return this.#finish(job, result);
      const isRetried = !isLast && !job.isBodyTaken;
      this.#context.observer.onRefused(result.reason, isRetried);
      if (!isRetried) return this.#answer(exchange, unreachable(attempt, result.reason));
    }
  }

  /** One try. The lease is taken before it, and released after it, however it ends. */
  async #try(job: Job, attempt: number, isLast: boolean): Promise<TryResult> {
    const { now, observer, holdOffs } = this.#context;
    const lease = await this.#lease(job, attempt);
    const { id } = lease.endpoint;
    const sentAt = now();
    let ending: ReleaseOptions = { failed: true };
    try {
      const result = await this.#send(job, lease, isLast, sentAt);
      if (result.kind === "answered" && result.status < 400) {
        ending = { outputTokens: result.outputTokens };
      }
      if (result.kind === "refused") {
        job.tried = new Set(job.tried).add(id);
        // One that has been removed meanwhile has nothing to be held off from.
        if (this.#context.upstream(id) !== undefined) holdOffs.note(id, now(), result.retryAfterMs);
      }
      return result;
    } finally {
      lease.release(ending);
      observer.onTried(now() - sentAt);
    }
  }

  /** The first time it waits for its turn; later it goes on at once, or waits again if nobody is left. */
  async #lease(job: Job, attempt: number): Promise<Leased> {
    const { gate, request, tried, band, exchange, settings } = job;
    if (attempt > 1) {
      const lease = gate.again(request, tried);
      if (lease !== undefined) return lease;
    }
    const waited = (ms: number) => this.#context.observer.onAdmitted(gate.model, band, ms);
    if (attempt === 1) {
      const lease = gate.tryAdmit(request);
      if (lease === undefined) return gate.admit({ ...request, signal: exchange }, waited);
      waited(0);
      return lease;
    }
    const ttl = Math.max(0, ttlOf(settings) - (this.#context.now() - exchange.startedAt));
    return gate.admit({ ...request, signal: exchange, ttl }, waited);
  }

  #send(job: Job, lease: Leased, isLast: boolean, sentAt: number): Promise<TryResult> | TryResult {
    const { exchange, settings, body, path } = job;
    const { id } = lease.endpoint;
    const { now, observer, holdOffs, onSample } = this.#context;
    const upstream = this.#context.upstream(id);
    if (upstream === undefined) {
      return { kind: "refused", reason: "connect", retryAfterMs: 0, detail: "it is gone" };
    }
    const { timeouts, inBand } = settings;
    const length = lengthOf(body);
    const { rawHeaders, method = "GET" } = exchange.request;
    return tryEndpoint(
      exchange,
      {
        dispatcher: upstream.dispatcher,
        method,
        path,
        headers: requestHeaders(rawHeaders, upstream.requestHeaders, length, inBand),
        body: this.#bodyOf(job),
        bodyFailure: () => job.bodyFailure,
        answerMs: timeouts.answer,
        idleMs: timeouts.idle,
        clientStallMs: timeouts.clientStall,
        mayRetry: !isLast && body.kind !== "long",
        wantsStream: job.facts.stream,
        answerHeaders: endpointHeader(settings.headers.endpoint, id),
        closesClient: () => this.#closesClient(exchange),
      },
      {
        onAnswer: (status) => {
          observer.onAnswer(id, status);
          if (status !== 429 && status !== 503) holdOffs.clear(id, sentAt);
        },
        onFirstByte: (isStreamed) => {
          if (isStreamed) lease.started();
          observer.onFirstByte(now() - sentAt);
        },
        onSample: (sample) => onSample(id, sample),
      },
    );
  }

  #bodyOf(job: Job): Buffer | AsyncIterable<Buffer> | null {
    const { body, exchange } = job;
    if (body.kind === "none") return null;
    if (body.kind === "kept") return body.bytes;
    return this.#longBody(job, exchange.request, body.head);
  }

  async *#longBody(job: Job, request: IncomingMessage, head: Buffer): AsyncGenerator<Buffer> {
    job.isBodyTaken = true;
    try {
      yield* this.#context.keeper.stream(request, head);
    } catch (error) {
      job.bodyFailure = error;
      throw error;
    }
  }

  #finish(job: Job, result: Exclude<TryResult, { kind: "refused" }>): Outcome {
    const { exchange } = job;
    switch (result.kind) {
      case "answered":
        return "answered";
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
    if (error instanceof BodyTooLargeError) return this.#answer(exchange, TOO_LARGE);
    if (error instanceof BodyCutError) return "client-gone";
    const answer = error instanceof AdmissionError ? answerOf(error) : undefined;
    if (answer !== undefined) return this.#answer(exchange, answer);
    this.#context.onFault(error);
    return this.#answer(exchange, INTERNAL);
  }

  #explainEarlyEnd(exchange: Exchange, reason: EarlyEnd): Outcome {
    if (reason === "timed-out") this.#answer(exchange, TIMED_OUT);
    else if (reason === "shutting-down") this.#answer(exchange, SHUTTING_DOWN);
    if (exchange.response.headersSent && !exchange.response.writableEnded) {
      exchange.response.destroy(); // part of an answer was sent: the client must see that it is cut
    }
    return reason;
  }

  #answer(exchange: Exchange, answer: OwnAnswer): Outcome {
    sendAnswer(exchange.response, answer, this.#closesClient(exchange));
    return answer.reason;
  }

  /** What is left of a body would be taken for the next request. */
  #closesClient(exchange: Exchange): boolean {
    return this.#isClosing || !exchange.request.complete;
  }
}
