// How a page comes over the wire: undici in Node (keep-alive, one socket per target), a `fetch`
// elsewhere or where one is injected.

import { describeValue } from "../errors";
import type { Logger } from "../logger";
import type { FetchLike, OpenSource } from "./transport";
import { FetchSource } from "./transport-fetch";

/**
 * undici in Node, else the runtime's `fetch`. Never rejects: where undici is missing, the logger is
 * told and `fetch` does.
 */
export async function chooseTransport(
  fetchLike: FetchLike | undefined,
  timeoutMs: number,
  logger: Logger | undefined,
): Promise<OpenSource> {
  if (fetchLike !== undefined) return (origin) => new FetchSource(origin, fetchLike);
  const isNode = typeof process === "object" && process.versions?.node !== undefined;
  if (isNode && !isOtherRuntime()) {
    try {
      const { openUndici } = await import("./transport-undici");
      return await openUndici(timeoutMs);
    } catch (error) {
      logger?.warn(
        `undici cannot be loaded (${error instanceof Error ? error.message : describeValue(error)}): ` +
          "pages are read with the runtime's fetch, which takes more CPU",
      );
    }
  }
  return (origin) => new FetchSource(origin, (url, init) => globalThis.fetch(url, init));
}

/** Bun, Deno and workerd can look like Node, and have a `fetch` of their own that is better there. */
function isOtherRuntime(): boolean {
  return "Bun" in globalThis || "Deno" in globalThis || "WebSocketPair" in globalThis;
}
