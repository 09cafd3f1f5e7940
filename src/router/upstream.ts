// One try at one endpoint: the request goes out, the answer comes in and is passed on byte by byte, with
// back-pressure. It stands on undici's `dispatch`, where every event of an answer can be seen.

import type { Dispatcher } from "undici";
import type { Sample } from "../sample";
import { readLoadMetrics } from "../telemetry/orca";
import type { Exchange } from "./exchange";
import { answerHeaders, headerValue, readRetryAfter } from "./headers";
import { classify, describeError, refusalOf, type TryResult } from "./try-errors";

/** A request to an endpoint. */
export interface TryRequest {
  readonly dispatcher: Dispatcher;
  readonly method: string;
  readonly path: string;
  readonly headers: string[];
  readonly body: Buffer | AsyncIterable<Buffer> | null;
  /** Why the body could not be had; undefined while it can. */
  bodyFailure(): unknown;
  readonly answerMs: number;
  readonly idleMs: number;
  readonly clientStallMs: number;
  /** An answer of 429 or 503 is no answer yet. */
  readonly mayRetry: boolean;
  /** The client has asked for a stream. */
  readonly wantsStream: boolean;
  /** The engine was asked to report its load with its answer. */
  readonly inBand: boolean;
  /** Set on the answer. */
  readonly answerHeaders: readonly string[];
}

/** Who is told what happens. */
export interface TryListener {
  /** The header of the answer has come. @param retryAfterMs what a 429 or 503 asks for; else 0. */
  onAnswer(status: number, retryAfterMs: number): void;
  /** The first byte of the body has come. @param isStreamed more will come, token by token. */
  onFirstByte(isStreamed: boolean): void;
  /** The engine has reported its load with its answer. */
  onSample(sample: Sample): void;
}

/** So much of an answer that is not wanted is read, for so long, so that its connection can be kept. */
const DUMP_BYTES = 65_536;
const DUMP_MS = 1000;
const EVENT_STREAM = /^(?:text\/event-stream|application\/(?:x-ndjson|jsonl|stream\+json))\b/i;
const EVENT_END = "\n\n";

/** Sends a request and passes the answer on. Never rejects. */
export function tryEndpoint(
  exchange: Exchange,
  request: TryRequest,
  listener: TryListener,
): Promise<TryResult> {
  return new Promise((resolve) => {
    new Attempt(exchange, request, listener, resolve).start();
  });
}

class Attempt implements Dispatcher.DispatchHandler {
  readonly #exchange: Exchange;
  readonly #request: TryRequest;
  readonly #listener: TryListener;
  readonly #resolve: (result: TryResult) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #isSettled = false;
  #status = 0;
  #isStreamed = false;
  #hasBytes = false;
  #events = 0;
  #dumped = 0;
  #dumpTimer: ReturnType<typeof setTimeout> | undefined;
  #stall: ReturnType<typeof setTimeout> | undefined;
  /** The client of a stream wants to know that it has begun, though no byte may have come yet. */
  readonly #flush = () => {
    if (!this.#hasBytes && !this.#isSettled) this.#exchange.response.flushHeaders();
  };
  readonly #onDrain = () => {
    clearTimeout(this.#stall);
    this.#controller?.resume();
  };
  readonly #onEarlyEnd = () => {
    const reason = this.#exchange.earlyEnd ?? "client-gone";
    this.#settle({ kind: "ended-early", reason });
    this.#controller?.abort(new Error(`the request has ended: ${reason}`));
  };

  constructor(
    exchange: Exchange,
    request: TryRequest,
    listener: TryListener,
    resolve: (result: TryResult) => void,
  ) {
    this.#exchange = exchange;
    this.#request = request;
    this.#listener = listener;
    this.#resolve = resolve;
  }

  start(): void {
    const { dispatcher, method, path, headers, body, answerMs, idleMs } = this.#request;
    this.#exchange.onEarlyEnd = this.#onEarlyEnd;
    if (this.#exchange.earlyEnd !== undefined) {
      this.#onEarlyEnd();
      return;
    }
    const options = {
      method: method as Dispatcher.HttpMethod, // any token is one
      path,
      headers,
      body: body as Buffer | null, // undici takes iterables, its types do not say so
      headersTimeout: answerMs,
      bodyTimeout: idleMs,
    };
    try {
      dispatcher.dispatch(options, this);
    } catch (error) {
      this.#fail(error);
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isSettled) controller.abort(new Error("the request has ended"));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200 || this.#isSettled) return; // the answer itself is still to come
    const raw = (controller.rawHeaders ?? []) as Buffer[]; // HTTP/1 has no other form
    const headers = answerHeaders(raw, this.#request.answerHeaders);
    const sample = this.#request.inBand ? readLoadMetrics(headers.loadMetrics) : undefined;
    if (sample !== undefined) this.#listener.onSample(sample);
    const refusal = refusalOf(status);
    const retryAfterMs = refusal === undefined ? 0 : readRetryAfter(headers.retryAfter, Date.now());
    this.#listener.onAnswer(status, retryAfterMs);
    if (this.#request.mayRetry && refusal !== undefined) {
      const detail = `answered ${status}`;
      this.#dumpTimer = setTimeout(() => controller.abort(new Error("not wanted")), DUMP_MS);
      this.#dumpTimer.unref();
      this.#settle({ kind: "refused", reason: refusal, detail });
      return;
    }
    this.#status = status;
    const isEvents = EVENT_STREAM.test(headers.contentType);
    const mayStream = this.#request.wantsStream && !headers.hasLength && status < 300;
    this.#isStreamed = isEvents || mayStream;
    const { response, closesClient } = this.#exchange;
    if (closesClient) response.shouldKeepAlive = false;
    response.writeHead(status, headers.forward);
    if (this.#isStreamed) queueMicrotask(this.#flush);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isSettled) {
      this.#dumped += chunk.length;
      if (this.#dumped > DUMP_BYTES) controller.abort(new Error("more than is wanted"));
      return;
    }
    if (!this.#hasBytes) {
      this.#hasBytes = true;
      this.#listener.onFirstByte(this.#isStreamed);
    }
    if (this.#isStreamed) this.#events += countEvents(chunk);
    const { response } = this.#exchange;
    if (response.write(chunk)) return;
    controller.pause();
    response.once("drain", this.#onDrain);
    const { clientStallMs } = this.#request;
    this.#stall = setTimeout(() => this.#exchange.end("client-stalled"), clientStallMs);
  }

  onResponseEnd(): void {
    clearTimeout(this.#dumpTimer);
    if (this.#isSettled) return;
    this.#exchange.finish();
    const outputTokens = this.#events > 1 ? this.#events : undefined;
    this.#settle({ kind: "answered", status: this.#status, outputTokens });
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    clearTimeout(this.#dumpTimer);
    this.#fail(error);
  }

  #fail(error: unknown): void {
    if (this.#isSettled) return;
    const detail = describeError(error);
    if (this.#exchange.response.headersSent) {
      this.#exchange.response.destroy();
      this.#settle({ kind: "cut", detail });
      return;
    }
    const bodyFailure = this.#request.bodyFailure();
    if (bodyFailure !== undefined) this.#settle({ kind: "unsendable", error: bodyFailure });
    else this.#settle(classify(error, detail));
  }

  #settle(result: TryResult): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    clearTimeout(this.#stall);
    this.#exchange.onEarlyEnd = undefined;
    this.#exchange.response.off("drain", this.#onDrain);
    this.#resolve(result);
  }
}

/** The answer's header that names its endpoint. */
export function endpointHeader(name: string | false, id: string): readonly string[] {
  return name === false ? [] : [name, headerValue(id)];
}

/** One event of a stream is about one token. */
function countEvents(chunk: Buffer): number {
  let events = 0;
  for (let at = chunk.indexOf(EVENT_END); at >= 0; at = chunk.indexOf(EVENT_END, at + 2)) events++;
  return events;
}
