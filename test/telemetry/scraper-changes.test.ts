// The scraper while things change behind an address: restarts, other engines, values that go away.

import { describe, expect, test } from "vitest";
import { pageOf, queryOf, serve, serveRaw, stateOf, until, useHarness } from "./servers";

const { keep, scrape, good } = useHarness();

/** What the Python client answers to `?name[]=...`: the metrics of these names alone. */
function select(page: string, names: readonly string[]): string {
  if (names.length === 0) return page;
  const lines = page.split("\n");
  return lines.filter((line) => names.includes(line.split(/[{ ]/)[0] ?? "")).join("\n");
}

describe("connections", () => {
  test("a server that is restarted on its port is read on without a failure", async () => {
    const first = await good(1);
    const { pool, scraper } = scrape([first.url], { interval: 200, random: () => 0 });
    await until(() => scraper.targets[0]?.reads === 1, "a read");
    await first.close();
    keep(await serve((_, response) => response.end(pageOf(4)), "127.0.0.1", first.port));
    await until(() => stateOf(pool, first.url)?.waitingQueueSize === 4, "the new server's queue");
    expect(scraper.targets[0]?.failures).toBe(0);
  });

  test("a kept connection that ends just as it is used is no failure", async () => {
    const answered = new WeakSet<object>();
    const endpoint = keep(
      await serveRaw((socket) => {
        if (answered.has(socket)) return socket.resetAndDestroy();
        answered.add(socket);
        const page = pageOf(2);
        return socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${page.length}\r\n\r\n${page}`);
      }),
    );
    const { scraper } = scrape([endpoint.url]);
    await until(() => (scraper.targets[0]?.reads ?? 0) >= 4, "four reads");
    expect(scraper.targets[0]?.failures).toBe(0);
    expect(endpoint.asked.length).toBeGreaterThan(4);
  });

  test("a new connection that ends at once is a failure, and is not tried twice", async () => {
    const endpoint = keep(await serveRaw((socket) => socket.resetAndDestroy()));
    const { scraper } = scrape([endpoint.url], { interval: 40 });
    await until(() => scraper.targets[0]?.failures === 1, "a failure");
    expect(endpoint.asked.length).toBe(1);
  });

  test("an endpoint that refuses connections is read as soon as it is back", async () => {
    const first = await good(1);
    const { port, url } = first;
    await first.close();
    const { scraper, pool } = scrape([url]);
    await until(() => (scraper.targets[0]?.failures ?? 0) >= 3, "three failures");
    expect(scraper.targets[0]?.lastError).toMatch(/ECONNREFUSED/);
    keep(await serve((_, response) => response.end(pageOf(1)), "127.0.0.1", port));
    await until(() => pool.evaluate().fresh === 1, "back again");
    expect(scraper.targets[0]).toMatchObject({
      failuresInARow: 0,
      lastError: undefined,
      backingOffUntil: undefined,
    });
  });
});

describe("pages", () => {
  test("KV usage that was reported and is no more makes the sample unusable", async () => {
    let kv: number | null = null;
    const endpoint = keep(await serve((_, response) => response.end(pageOf(1, kv))));
    const { pool, scraper } = scrape([endpoint.url]);
    await until(() => (scraper.targets[0]?.reads ?? 0) >= 2, "reads without KV");
    expect(stateOf(pool, endpoint.url)?.queueOnly).toBe(true);
    kv = 0.5;
    await until(() => stateOf(pool, endpoint.url)?.kvCacheUsagePercent === 0.5, "KV seen");
    kv = null;
    await until(() => (stateOf(pool, endpoint.url)?.unusableReports ?? 0) > 0, "KV missed");
    expect(stateOf(pool, endpoint.url)?.kvCacheUsagePercent).toBe(0.5);
    expect(scraper.targets[0]?.findings.map(({ code }) => code)).toEqual(["kv-gone"]);
  });

  test.each(["whole", "short"])("another engine is recognised, by %s pages", async (how) => {
    let page = pageOf(2);
    const endpoint = keep(
      await serve((request, response) => {
        const names = how === "short" ? queryOf(request).getAll("name[]") : [];
        response.end(select(page, names));
      }),
    );
    const { scraper, pool } = scrape([endpoint.url]);
    await until(() => scraper.targets[0]?.engine === "vllm", "vLLM");
    await until(() => (scraper.targets[0]?.reads ?? 0) >= 3, "three reads");
    page = "sglang:num_queue_reqs 5\nsglang:num_running_reqs 1\nsglang:token_usage 0.1\n";
    await until(() => scraper.targets[0]?.engine === "sglang", "SGLang");
    await until(() => stateOf(pool, endpoint.url)?.waitingQueueSize === 5, "its queue");
    const before = endpoint.asked.length;
    await until(() => endpoint.asked.length >= before + 3, "three more requests");
    expect(endpoint.asked.at(-1)).toContain("name[]=sglang%3Anum_queue_reqs");
  });

  test("an engine without KV usage may take over from one with it", async () => {
    let page = pageOf(2);
    const endpoint = keep(await serve((_, response) => response.end(page)));
    const { pool } = scrape([endpoint.url]);
    await until(() => stateOf(pool, endpoint.url)?.waitingQueueSize === 2, "vLLM");
    page = "llamacpp:requests_deferred 1\nllamacpp:requests_processing 1\n";
    await until(() => stateOf(pool, endpoint.url)?.waitingQueueSize === 1, "llama.cpp");
    expect(stateOf(pool, endpoint.url)?.queueOnly).toBe(true);
  });

  test("an engine that was given is not guessed again", async () => {
    const endpoint = keep(await serve((_, response) => response.end(pageOf(2))));
    const { scraper } = scrape([{ url: endpoint.url, engine: "sglang" }]);
    await until(() => (scraper.targets[0]?.reads ?? 0) >= 2, "two reads");
    expect(scraper.targets[0]?.engine).toBe("sglang");
    expect(scraper.targets[0]?.findings.map(({ code }) => code)).toEqual(["no-samples"]);
  });

  test("the page of an engine that begins as JSON is read once it is one", async () => {
    let page = "[]";
    const endpoint = keep(
      await serve((request, response) => {
        response.end(page === "[]" ? page : select(page, queryOf(request).getAll("name[]")));
      }),
    );
    const { scraper, pool } = scrape([endpoint.url]);
    await until(() => (scraper.targets[0]?.reads ?? 0) >= 2, "two reads");
    page = pageOf(3);
    await until(() => stateOf(pool, endpoint.url)?.waitingQueueSize === 3, "vLLM");
  });
});

describe("the pool", () => {
  test("an endpoint that left the pool is not read until it is back", async () => {
    const endpoint = await good();
    const { pool } = scrape([endpoint.url]);
    await until(() => pool.evaluate().fresh === 1, "a sample");
    pool.remove(endpoint.url);
    const before = endpoint.asked.length;
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(endpoint.asked.length).toBeLessThanOrEqual(before + 1);
    pool.add(endpoint.url);
    await until(() => pool.evaluate().fresh === 1, "a sample again");
  });

  test("an endpoint that the pool knows keeps its own settings", async () => {
    const endpoint = await good(4);
    const { pool } = scrape([{ url: endpoint.url, id: "a", queueDepthThreshold: 8, weight: 3 }]);
    expect(stateOf(pool, "a")).toMatchObject({ weight: 3, queueLimit: 8 });
    const known = scrape([{ url: endpoint.url, id: "a", weight: 9 }], {}, pool);
    expect(known.pool.get("a")?.weight).toBe(3);
  });
});
