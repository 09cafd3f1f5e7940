// How a page comes over the wire: undici's pool in Node (keep-alive, one socket per endpoint), a
// `fetch` elsewhere or where one is injected. Both give bytes or a TelemetryError that says why not.

import { TelemetryError } from "../errors";

/** One GET. */
export interface PageRequest {
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The whole answer must be there within this time. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

/** Gets pages; `close` ends what is under way, and its connections, at once. */
export interface Transport {
  /** @throws TelemetryError when the answer is no page; other errors come from the network. */
  get(request: PageRequest): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** What `fetch` must look like to be injected. */
export type FetchLike = (url: string, init: RequestInit) => Promise<Response>;

/** undici in Node, else the runtime's `fetch`. */
export async function openTransport(fetchLike: FetchLike | undefined): Promise<Transport> {
  if (fetchLike !== undefined) return new FetchTransport(fetchLike);
  if (typeof process === "object" && process.versions?.node !== undefined && !isOtherRuntime()) {
    const { UndiciTransport } = await import("./transport-undici");
    return new UndiciTransport();
  }
  return new FetchTransport((url, init) => globalThis.fetch(url, init));
}

/** Bun and Deno look like Node, and have a `fetch` of their own that is better there. */
function isOtherRuntime(): boolean {
  return "Bun" in globalThis || "Deno" in globalThis;
}

/**
 * Refuses an answer that is not a page.
 *
 * @param location where a redirect pointed.
 */
export function checkAnswer(
  status: number,
  location: string | null | undefined,
  encoding: string | null | undefined,
): void {
  if (status >= 300 && status < 400) {
    throw new TelemetryError(
      `HTTP ${status}, a redirect to ${location ?? "nowhere"}: give the final address`,
    );
  }
  if (status !== 200) {
    const why = status === 404 ? ": wrong path, or metrics are not enabled" : "";
    throw new TelemetryError(`HTTP ${status}${why}`);
  }
  if (encoding != null && encoding !== "" && encoding.toLowerCase() !== "identity") {
    throw new TelemetryError(`the page is compressed (${encoding}), though identity was asked for`);
  }
}

/** What to say of an answer that does not come, or not to an end. */
export function tooSlow(timeoutMs: number): TelemetryError {
  return new TelemetryError(`no whole answer within ${timeoutMs} ms`);
}

/** What to say of a body that goes on and on. */
export function tooLarge(maxBytes: number): TelemetryError {
  return new TelemetryError(`the page is larger than ${maxBytes} bytes: is this a metrics page?`);
}

class FetchTransport implements Transport {
  readonly #fetch: FetchLike;
  readonly #closed = new AbortController();

  constructor(fetchLike: FetchLike) {
    this.#fetch = fetchLike;
  }

  async get(request: PageRequest): Promise<Uint8Array> {
    const { origin, path, headers, timeoutMs, maxBytes } = request;
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(tooSlow(timeoutMs)), timeoutMs);
    const stop = () => limit.abort(this.#closed.signal.reason);
    this.#closed.signal.addEventListener("abort", stop, { once: true });
    const { signal } = limit;
    try {
      const response = await this.#fetch(origin + path, { headers, signal, redirect: "manual" });
      return await readAnswer(response, maxBytes);
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      clearTimeout(timer);
      this.#closed.signal.removeEventListener("abort", stop);
    }
  }

  async close(): Promise<void> {
    this.#closed.abort(new TelemetryError("the scraper was closed"));
  }
}

async function readAnswer(response: Response, maxBytes: number): Promise<Uint8Array> {
  try {
    checkAnswer(
      // A browser hides what a redirect said.
      response.type === "opaqueredirect" ? 302 : response.status,
      response.headers.get("location"),
      response.headers.get("content-encoding"),
    );
    return await readBody(response, maxBytes);
  } catch (error) {
    await response.body?.cancel().catch(ignore);
    throw error;
  }
}

/** The body is being thrown away, so that it cannot be read to its end is no news. */
function ignore(): void {}

async function readBody(response: Response, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > maxBytes) {
      await reader.cancel().catch(ignore);
      throw tooLarge(maxBytes);
    }
    chunks.push(value);
  }
  return concat(chunks, size);
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
