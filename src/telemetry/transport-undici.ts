// The transport for Node. Apart, so that undici is loaded at first use and never in a browser. It
// stands on undici's `dispatch`, which costs half of what its streams do, thousands of times a second.

import { type Dispatcher, Pool } from "undici";
import { TelemetryError } from "../errors";
import {
  checkAnswer,
  concat,
  type PageRequest,
  type Transport,
  tooLarge,
  tooSlow,
} from "./transport";

/** One pool per origin, with one connection that is kept alive. */
export class UndiciTransport implements Transport {
  readonly #pools = new Map<string, Pool>();

  get(request: PageRequest): Promise<Uint8Array> {
    const { path, headers } = request;
    return new Promise((resolve, reject) => {
      const collector = new PageCollector(request, resolve, reject);
      this.#pool(request.origin).dispatch({ method: "GET", path, headers }, collector);
    });
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    const reason = new TelemetryError("the scraper was closed");
    await Promise.all(pools.map((pool) => pool.destroy(reason)));
  }

  #pool(origin: string): Pool {
    const known = this.#pools.get(origin);
    if (known !== undefined) return known;
    // A page has one time limit as a whole, so undici's own are off.
    const pool = new Pool(origin, { connections: 1, headersTimeout: 0, bodyTimeout: 0 });
    this.#pools.set(origin, pool);
    return pool;
  }
}

/** Collects one answer, within its limits of time and size. */
class PageCollector implements Dispatcher.DispatchHandler {
  readonly #maxBytes: number;
  readonly #resolve: (page: Uint8Array) => void;
  readonly #reject: (error: unknown) => void;
  readonly #chunks: Buffer[] = [];
  readonly #timer: NodeJS.Timeout;
  #size = 0;
  #controller: Dispatcher.DispatchController | undefined;
  #failure: unknown;

  constructor(
    request: PageRequest,
    resolve: (page: Uint8Array) => void,
    reject: (error: unknown) => void,
  ) {
    this.#maxBytes = request.maxBytes;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = setTimeout(() => this.#fail(tooSlow(request.timeoutMs)), request.timeoutMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#failure !== undefined) controller.abort(this.#failure as Error);
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    try {
      checkAnswer(status, one(headers.location), one(headers["content-encoding"]));
    } catch (error) {
      this.#fail(error);
    }
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > this.#maxBytes) this.#fail(tooLarge(this.#maxBytes));
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    clearTimeout(this.#timer);
    this.#resolve(concat(this.#chunks, this.#size));
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    clearTimeout(this.#timer);
    this.#reject(this.#failure ?? error);
  }

  /** The first failure counts. The answer is given at once, though the connection may take longer. */
  #fail(error: unknown): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    clearTimeout(this.#timer);
    this.#controller?.abort(error as Error);
    this.#reject(error);
  }
}

function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
