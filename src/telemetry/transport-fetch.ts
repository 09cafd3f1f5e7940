// Pages through a `fetch`: the transport of browsers, Bun, Deno and workerd, and the seam for tests.

import {
  checkStatus,
  closed,
  concat,
  type FetchLike,
  type PageRequest,
  type PageSource,
  startTimer,
  tooLarge,
  tooSlow,
} from "./transport";

/** One server, by `fetch`. */
export class FetchSource implements PageSource {
  readonly #origin: string;
  readonly #fetch: FetchLike;
  readonly #closing = new AbortController();

  constructor(origin: string, fetchLike: FetchLike) {
    this.#origin = origin;
    this.#fetch = fetchLike;
  }

  async get(request: PageRequest): Promise<Uint8Array> {
    const limit = new AbortController();
    const { signal } = limit;
    const timer = startTimer(() => limit.abort(tooSlow(request.timeoutMs)), request.timeoutMs);
    const stop = () => limit.abort(closed());
    const closing = this.#closing.signal;
    if (closing.aborted) stop();
    closing.addEventListener("abort", stop, { once: true });
    // An injected fetch may not listen to its signal; the reading ends in time all the same.
    const ended = new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    try {
      return await Promise.race([ended, this.#read(request, signal)]);
    } finally {
      clearTimeout(timer);
      closing.removeEventListener("abort", stop);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
  }

  async #read(request: PageRequest, signal: AbortSignal): Promise<Uint8Array> {
    const { path, headers, maxBytes } = request;
    const url = this.#origin + path;
    const response = await this.#fetch(url, { headers, signal, redirect: "manual" });
    try {
      // A browser hides where a redirect points.
      const status = response.type === "opaqueredirect" ? 302 : response.status;
      checkStatus(status, response.headers.get("location"));
      return await readBody(response, maxBytes);
    } catch (error) {
      await response.body?.cancel().catch(ignore);
      throw error;
    }
  }
}

/** The body is being thrown away, so that it cannot be read to its end is no news. */
function ignore(): void {}

/** The bytes as they come; a compressed body has been unpacked by `fetch`. */
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
