// One request's way through the endpoints: it is let through, tried at one and perhaps at others. Whatever
// happens, its lease is released once, in one place.

import type { IncomingMessage } from "node:http";
import type { ReleaseOptions } from "../lease";
import type { Sample } from "../sample";
import type { BodyKeeper, RequestBody } from "./body";
import type { RouterSettings } from "./config";
import type { Exchange } from "./exchange";
import type { Upstream } from "./fleet";
import type { Gate, GateRequest, Leased } from "./gates";
import { requestHeaders } from "./headers";
import type { HoldOffs } from "./hold-off";
import { lengthOf, ttlOf } from "./request";
import { isRefusal, type RetryReason, refusalOf, type TryResult } from "./try-errors";
import { endpointHeader, tryEndpoint } from "./upstream";

/** Is told of tries. */
export interface TryObserver {
  onAdmitted(model: string, band: string, waitedMs: number): void;
  onAnswer(endpoint: string, status: number): void;
  onFirstByte(ms: number): void;
  /** A try ended, however. @param ms since it was sent. */
  onTried(ms: number): void;
  onRefused(reason: RetryReason, isRetried: boolean): void;
}

/** What tries work with. */
export interface TryContext {
  settings(): RouterSettings;
  /** Now, on the pool's clock, in ms. */
  now(): number;
  /** Undefined when it has been removed. */
  upstream(id: string): Upstream | undefined;
  onSample(id: string, sample: Sample): void;
  readonly holdOffs: HoldOffs;
  readonly keeper: BodyKeeper;
  readonly observer: TryObserver;
}

/** A request that wants to go to an endpoint. */
export interface Job {
  readonly exchange: Exchange;
  readonly settings: RouterSettings;
  readonly path: string;
  readonly body: RequestBody;
  readonly wantsStream: boolean;
  readonly gate: Gate;
  readonly request: GateRequest;
  readonly band: string;
}

/** A request that was cut off so often is at fault itself, and would harm the next endpoint too. */
const POISON = 2;
const NOBODY: ReadonlySet<string> = new Set();

/** The tries of one request. */
export class Tries {
  readonly #context: TryContext;
  readonly #job: Job;
  /** Endpoints that have refused it. */
  #tried: ReadonlySet<string> = NOBODY;
  /** Those of them that have cut it off, and how often that was. */
  #cutOffBy: ReadonlySet<string> = NOBODY;
  #cutOffs = 0;
  /** A long body can be read once. */
  #isBodyTaken = false;
  #bodyFailure: unknown;

  constructor(context: TryContext, job: Job) {
    this.#context = context;
    this.#job = job;
  }

  /** Tries one endpoint after another. Rejects with AdmissionError when it is not let through. */
  async run(): Promise<{ readonly tries: number; readonly result: TryResult }> {
    const { attempts } = this.#job.settings.retry;
    for (let tries = 1; ; tries++) {
      const isLast = tries >= attempts;
      const result = await this.#try(tries, isLast);
      if (result.kind !== "refused") {
        // The last one's refusal is the client's to see.
        const refusal = result.kind === "answered" ? refusalOf(result.status) : undefined;
        if (refusal !== undefined) this.#context.observer.onRefused(refusal, false);
        return { tries, result };
      }
      const isRetried = !isLast && !this.#isBodyTaken && this.#cutOffs < POISON;
      this.#context.observer.onRefused(result.reason, isRetried);
      if (!isRetried) return { tries, result };
    }
  }

  /** One try. The lease is taken before it, and released after it, however it ends. */
  async #try(attempt: number, isLast: boolean): Promise<TryResult> {
    const { now, observer } = this.#context;
    const lease = await this.#lease(attempt);
    const { id } = lease.endpoint;
    const sentAt = now();
    let ending: ReleaseOptions = { failed: true };
    try {
      const result = await this.#send(lease, isLast, sentAt);
      if (result.kind === "answered" && result.status < 400) {
        ending = { outputTokens: result.outputTokens };
      }
      if (result.kind === "refused") this.#noteRefusal(id, result.reason);
      return result;
    } finally {
      lease.release(ending);
      observer.onTried(now() - sentAt);
    }
  }

  /** An endpoint has not taken a request. */
  #noteRefusal(id: string, reason: RetryReason): void {
    const { now, holdOffs, upstream } = this.#context;
    this.#tried = new Set(this.#tried).add(id);
    // One that has been removed meanwhile has nothing to be held off from.
    const isThere = upstream(id) !== undefined;
    if (isRefusal(reason)) {
      // A 429 or 503 was noted when it came.
      if (reason === "connect" && isThere) holdOffs.note(id, now());
      return;
    }
    if (isThere && !this.#cutOffBy.has(id)) holdOffs.suspect(id, now());
    this.#cutOffBy = new Set(this.#cutOffBy).add(id);
    if (++this.#cutOffs >= POISON) for (const one of this.#cutOffBy) holdOffs.acquit(one);
  }

  /** An endpoint has begun to answer. */
  #noteAnswer(id: string, status: number, retryAfterMs: number, sentAt: number): void {
    const { now, observer, holdOffs, upstream } = this.#context;
    if (upstream(id) === undefined) return; // its series and its hold-off have ended with it
    observer.onAnswer(id, status);
    if (refusalOf(status) !== undefined) {
      holdOffs.note(id, now(), retryAfterMs);
      return;
    }
    holdOffs.clear(id, sentAt);
    // It was not the request, then.
    for (const one of this.#cutOffBy) {
      if (one !== id && upstream(one) !== undefined) holdOffs.note(one, now());
    }
  }

  /** The first time it waits for its turn; later it goes on at once, or waits again if nobody is left. */
  async #lease(attempt: number): Promise<Leased> {
    const { gate, request, band, exchange, settings } = this.#job;
    if (attempt > 1) {
      const lease = gate.again(request, this.#tried);
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

  #send(lease: Leased, isLast: boolean, sentAt: number): Promise<TryResult> | TryResult {
    const { exchange, settings, body, path } = this.#job;
    const { id } = lease.endpoint;
    const { now, observer, onSample } = this.#context;
    const upstream = this.#context.upstream(id);
    if (upstream === undefined) {
      return { kind: "refused", reason: "connect", detail: "it is gone" };
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
        body: this.#bodyOf(),
        bodyFailure: () => this.#bodyFailure,
        answerMs: timeouts.answer,
        idleMs: timeouts.idle,
        clientStallMs: timeouts.clientStall,
        mayRetry: !isLast && body.kind !== "long",
        wantsStream: this.#job.wantsStream,
        inBand,
        answerHeaders: endpointHeader(settings.headers.endpoint, id),
      },
      {
        onAnswer: (status, retryAfterMs) => {
          this.#noteAnswer(id, status, retryAfterMs, sentAt);
        },
        onFirstByte: (isStreamed) => {
          if (isStreamed) lease.started();
          observer.onFirstByte(now() - sentAt);
        },
        onSample: (sample) => onSample(id, sample),
      },
    );
  }

  #bodyOf(): Buffer | AsyncIterable<Buffer> | null {
    const { body, exchange } = this.#job;
    if (body.kind === "none") return null;
    if (body.kind === "kept") return body.bytes;
    return this.#longBody(exchange.request, body.head);
  }

  async *#longBody(request: IncomingMessage, head: Buffer): AsyncGenerator<Buffer> {
    this.#isBodyTaken = true;
    try {
      yield* this.#context.keeper.stream(request, head);
    } catch (error) {
      this.#bodyFailure = error;
      throw error;
    }
  }
}
