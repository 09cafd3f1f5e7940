// The transport for Node. Apart, so that undici is loaded at first use and never in a browser.

import { Pool } from "undici";
import { checkAnswer, concat, type PageRequest, type Transport, tooLarge } from "./transport";

/** One pool per origin, with one connection that is kept alive. */
export class UndiciTransport implements Transport {
  readonly #pools = new Map<string, Pool>();

  async get(request: PageRequest): Promise<Uint8Array> {
    const { path, headers, signal, maxBytes } = request;
    const answer = await this.#pool(request.origin).request({
      method: "GET",
      path,
      headers,
      signal,
    });
    const { body } = answer;
    try {
      const { location, "content-encoding": encoding } = answer.headers;
      checkAnswer(answer.statusCode, one(location), one(encoding));
      const chunks: Buffer[] = [];
      let size = 0;
      for await (const chunk of body) {
        size += chunk.length;
        if (size > maxBytes) throw tooLarge(maxBytes);
        chunks.push(chunk);
      }
      return concat(chunks, size);
    } catch (error) {
      // Without a listener, the body's own error would be an uncaught one.
      body.on("error", () => undefined).destroy();
      throw error;
    }
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  #pool(origin: string): Pool {
    const known = this.#pools.get(origin);
    if (known !== undefined) return known;
    // The scraper has one time limit for the whole reading, so undici's own are off.
    const pool = new Pool(origin, { connections: 1, headersTimeout: 0, bodyTimeout: 0 });
    this.#pools.set(origin, pool);
    return pool;
  }
}

function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
