// The transport for Node. Apart, so that undici is loaded at first use and never in a browser. It
// stands on undici's `dispatch`, which costs half of what its streams do, thousands of times a second.

import type { buildConnector as BuildConnector, Dispatcher, Pool } from "undici";
import { TelemetryError } from "../errors";
import {
  checkEncoding,
  checkStatus,
  closed,
  concat,
  type OpenSource,
  type PageRequest,
  type PageSource,
  startTimer,
  tooLarge,
  tooSlow,
} from "./transport";

/** Loads undici. @throws when it is not there, or a bundler has put nothing in its place. */
export async function openUndici(timeoutMs: number): Promise<OpenSource> {
  const { Pool, buildConnector } = await import("undici");
  if (typeof Pool !== "function") throw new TelemetryError("the bundle has an empty undici");
  const connect = holdNothing(buildConnector({ timeout: timeoutMs }));
  return (origin) =>
    // A page has one time limit as a whole, so undici's own are off.
    new UndiciSource(
      new Pool(origin, { connections: 1, headersTimeout: 0, bodyTimeout: 0, connect }),
    );
}

/** Sockets that do not keep a process alive, not even while an answer is awaited. */
function holdNothing(connect: BuildConnector.connector): BuildConnector.connector {
  return (options, callback) =>
    connect(options, (...outcome) => {
      const [error, socket] = outcome;
      if (error === null) {
        socket.unref();
        // undici takes hold again with each request.
        socket.ref = () => socket;
      }
      callback(...outcome);
    });
}

/** One server: an undici pool with one connection that is kept alive. */
class UndiciSource implements PageSource {
  readonly #pool: Pool;
  /** Whether the present connection has carried an answer before. */
  #isWorn = false;

  constructor(pool: Pool) {
    this.#pool = pool;
    pool.on("disconnect", () => {
      this.#isWorn = false;
    });
  }

  async get(request: PageRequest): Promise<Uint8Array> {
    const { path, headers } = request;
    const page = await new Promise<Uint8Array>((resolve, reject) => {
      const collector = new PageCollector(request, resolve, reject, this.#isWorn, () => {
        this.#pool.dispatch({ method: "GET", path, headers }, collector);
      });
      collector.start();
    });
    this.#isWorn = true;
    return page;
  }

  async close(): Promise<void> {
    await this.#pool.destroy(closed());
  }
}

/** Collects one answer, within its limits of time and size. */
class PageCollector implements Dispatcher.DispatchHandler {
  readonly #request: PageRequest;
  readonly #resolve: (page: Uint8Array) => void;
  readonly #reject: (error: unknown) => void;
  readonly #dispatch: () => void;
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #chunks: Buffer[] = [];
  #mayAskAgain: boolean;
  #size = 0;
  #controller: Dispatcher.DispatchController | undefined;
  #failure: unknown;

  constructor(
    request: PageRequest,
    resolve: (page: Uint8Array) => void,
    reject: (error: unknown) => void,
    mayAskAgain: boolean,
    dispatch: () => void,
  ) {
    this.#request = request;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#mayAskAgain = mayAskAgain;
    this.#dispatch = dispatch;
    this.#timer = startTimer(() => this.#fail(tooSlow(request.timeoutMs)), request.timeoutMs);
  }

  start(): void {
    try {
      this.#dispatch();
    } catch (error) {
      this.#fail(error);
    }
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
    if (status < 200) return; // the answer itself is still to come
    this.#mayAskAgain = false;
    try {
      checkStatus(status, one(headers.location));
      checkEncoding(one(headers["content-encoding"]));
    } catch (error) {
      this.#fail(error);
    }
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    const { maxBytes } = this.#request;
    this.#size += chunk.length;
    if (this.#size > maxBytes) this.#fail(tooLarge(maxBytes));
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    clearTimeout(this.#timer);
    this.#resolve(concat(this.#chunks, this.#size));
  }

  /** A kept connection that the server has closed meanwhile says nothing about the server. */
  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    if (this.#mayAskAgain && this.#failure === undefined && isHangUp(error)) {
      this.#mayAskAgain = false;
      this.start();
    } else this.#fail(error);
  }

  /** The first failure counts. The answer is given at once, though the connection may take longer. */
  #fail(error: unknown): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    clearTimeout(this.#timer);
    this.#chunks.length = 0;
    this.#controller?.abort(error as Error);
    this.#reject(error);
  }
}

function isHangUp(error: Error): boolean {
  const code = "code" in error ? error.code : undefined;
  return code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE";
}

function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
