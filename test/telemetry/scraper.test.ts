// The scraper against real servers on loopback, good and bad ones.

import { afterEach, describe, expect, test, vi } from "vitest";
import { ConfigError, EndpointPool } from "../../src/index";
import { type Scraper, type ScraperOptions, startScraper } from "../../src/telemetry/scraper";
import type { TargetOptions } from "../../src/telemetry/targets";
import { type Endpoint, pageOf, queryOf, serve, serveRaw, until } from "./servers";

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

function keep<T extends { close(): Promise<void> }>(one: T): T {
  open.push(one);
  return one;
}

function scrape(
  targets: (string | TargetOptions)[],
  options: ScraperOptions = {},
  pool = new EndpointPool(),
): { pool: EndpointPool; scraper: Scraper } {
  const quick = { interval: 5, timeout: 150, ...options };
  return { pool, scraper: keep(startScraper(pool, targets, quick)) };
}

const good = (waiting = 2) =>
  serve((_, response) => {
    response.end(pageOf(waiting));
  }).then(keep);

const stateOf = (pool: EndpointPool, url: string) =>
  pool.snapshot().endpoints.find(({ id }) => id === url);

describe("a good endpoint", () => {
  test("is added, read again and again, and its sample counts", async () => {
    const endpoint = await good(4);
    const { pool, scraper } = scrape([endpoint.url]);
    await until(() => (scraper.targets[0]?.reads ?? 0) >= 3, "three reads");
    expect(stateOf(pool, endpoint.url)).toMatchObject({ waitingQueueSize: 4, state: "ok" });
    expect(pool.saturation()).toBe(0.8);
    expect(scraper.targets[0]).toMatchObject({ engine: "vllm", failures: 0, lastError: undefined });
  });

  test("is asked for the names that matter once they are known", async () => {
    const endpoint = await good();
    scrape([`${endpoint.url}/metrics?a=b`]);
    await until(() => endpoint.asked.length >= 3, "three requests");
    expect(endpoint.asked[0]).toBe("/metrics?a=b");
    expect(endpoint.asked[2]).toContain("/metrics?a=b&name[]=vllm%3Anum_requests_waiting");
  });

  test("that answers the short question with less is asked for the whole page again", async () => {
    const endpoint = keep(
      await serve((request, response) => {
        response.end(queryOf(request).has("name[]") ? "a 1\n" : pageOf(3));
      }),
    );
    const { pool, scraper } = scrape([endpoint.url]);
    await until(() => (scraper.targets[0]?.reads ?? 0) >= 4, "four reads");
    expect(scraper.targets[0]?.failures).toBe(0);
    expect(pool.saturation()).toBe(0.6);
    expect(endpoint.asked.filter((path) => path.includes("name")).length).toBe(1);
  });

  test("keeps one connection", async () => {
    const sockets = new Set<unknown>();
    const endpoint = keep(
      await serve((request, response) => {
        sockets.add(request.socket);
        response.end(pageOf(1));
      }),
    );
    scrape([endpoint.url]);
    await until(() => endpoint.asked.length >= 6, "six requests");
    expect(sockets.size).toBe(1);
  });

  test("is read at the path of its engine", async () => {
    const endpoint = await good();
    scrape([{ url: endpoint.url, engine: "trtllm-serve" }]);
    await until(() => endpoint.asked.length >= 1, "a request");
    expect(endpoint.asked[0]).toBe("/prometheus/metrics");
  });

  test("may be reached over IPv6, where this machine has it", async () => {
    const endpoint = await serve((_, response) => response.end(pageOf(1)), "::1").catch((error) => {
      expect(["EADDRNOTAVAIL", "EAFNOSUPPORT"]).toContain(error.code);
      return undefined;
    });
    if (endpoint === undefined) return;
    keep(endpoint);
    const { pool } = scrape([endpoint.url]);
    await until(() => pool.evaluate().fresh === 1, "a sample over IPv6");
  });

  test("gets the credentials of its address, and nobody else sees them", async () => {
    let authorization: string | undefined;
    const endpoint = keep(
      await serve((request, response) => {
        ({ authorization } = request.headers);
        response.end(pageOf(1));
      }),
    );
    const { pool, scraper } = scrape([endpoint.url.replace("//", "//me:s%C3%A9cret@")]);
    await until(() => authorization !== undefined, "a request");
    expect(Buffer.from(authorization?.slice(6) ?? "", "base64").toString()).toBe("me:sécret");
    expect(JSON.stringify([pool.snapshot(), scraper.targets])).not.toContain("cret");
  });
});

describe("a bad endpoint", () => {
  const chunk = "x".repeat(65_536);
  const bad: [string, () => Promise<Endpoint>, RegExp][] = [
    ["404", () => serve((_, r) => r.writeHead(404).end()), /HTTP 404: wrong path/],
    ["500", () => serve((_, r) => r.writeHead(500).end("no")), /HTTP 500/],
    [
      "a redirect",
      () => serve((_, r) => r.writeHead(302, { location: "/x" }).end()),
      /redirect to \/x/,
    ],
    ["silence", () => serve(() => undefined), /no whole answer within 150 ms/],
    ["half a page", () => serve((_, r) => void r.writeHead(200).write("vllm:")), /no whole answer/],
    [
      "a reset",
      () => serve((_, r) => void r.socket?.resetAndDestroy()),
      /ECONNRESET|other side closed|UND_ERR_SOCKET/,
    ],
    [
      "a compressed page",
      () => serve((_, r) => r.writeHead(200, { "content-encoding": "gzip" }).end("x")),
      /compressed \(gzip\)/,
    ],
    [
      "a body without end",
      () =>
        serve((_, r) => {
          r.writeHead(200);
          let size = 0;
          const more = () => {
            while (size < 50e6 && r.write(chunk)) size += chunk.length;
          };
          r.on("drain", more);
          more();
        }),
      /larger than 1000000 bytes/,
    ],
    [
      "a truncated page",
      () =>
        serveRaw((socket) =>
          socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n${pageOf(1)}`),
        ),
      /closed|UND_ERR/,
    ],
    [
      "more than its content length",
      () =>
        serveRaw((socket) =>
          socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n${pageOf(1)}`),
        ),
      /.*/,
    ],
    ["no HTTP", () => serveRaw((socket) => socket.end("SSH-2.0-x\r\n")), /HTTP|HPE|Parse/i],
  ];

  test.each(bad)("%s is never fresh, and never ages another", async (_, make, reason) => {
    const endpoint = keep(await make());
    const fine = await good(1);
    const { pool, scraper } = scrape([endpoint.url, fine.url], {
      timeout: 150,
      maxBodyBytes: 1_000_000,
    });
    const [first, second] = scraper.targets;
    await until(() => (first?.failures ?? 0) + (first?.findings.length ?? 0) >= 1, "a failure");
    if (first?.failures) expect(first.lastError).toMatch(reason);
    await until(() => (second?.reads ?? 0) >= 10, "ten good reads");
    expect(pool.evaluate()).toMatchObject({ fresh: 1, unusable: 1 });
    expect(second?.failures).toBe(0);
  });

  test("JSON, HTML and a page of somebody else are findings, and unusable", async () => {
    for (const body of ['{"a":1}', "<html>", "a 1\n"]) {
      const endpoint = keep(await serve((_, response) => response.end(body)));
      const { pool, scraper } = scrape([endpoint.url]);
      await until(() => (scraper.targets[0]?.reads ?? 0) >= 1, "a read");
      expect(scraper.targets[0]?.findings.length).toBe(1);
      expect(pool.evaluate()).toMatchObject({ fresh: 0, unusable: 1 });
    }
  });

  test("that refuses connections is asked less and less often, and again when it is back", async () => {
    const first = await good(1);
    const { port, url } = first;
    await first.close();
    const { scraper, pool } = scrape([url], { random: () => 0.5 });
    await until(() => (scraper.targets[0]?.failures ?? 0) >= 3, "three failures");
    expect(scraper.targets[0]?.lastError).toMatch(/ECONNREFUSED/);
    keep(await serve((_, response) => response.end(pageOf(1)), "127.0.0.1", port));
    await until(() => pool.evaluate().fresh === 1, "back again");
    expect(scraper.targets[0]).toMatchObject({ failuresInARow: 0, lastError: undefined });
  });
});

describe("what changes behind an address", () => {
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
  });

  test("another engine is recognised", async () => {
    let page = pageOf(2);
    const endpoint = keep(await serve((_, response) => response.end(page)));
    const { scraper, pool } = scrape([endpoint.url]);
    await until(() => scraper.targets[0]?.engine === "vllm", "vLLM");
    page = "sglang:num_queue_reqs 5\nsglang:num_running_reqs 1\nsglang:token_usage 0.1\n";
    await until(() => scraper.targets[0]?.engine === "sglang", "SGLang");
    await until(() => stateOf(pool, endpoint.url)?.waitingQueueSize === 5, "its queue");
  });

  test("an endpoint that left the pool is not read until it is back", async () => {
    const endpoint = await good();
    const { pool } = scrape([endpoint.url]);
    await until(() => pool.evaluate().fresh === 1, "a sample");
    pool.remove(endpoint.url);
    await until(() => pool.size === 0, "gone");
    pool.add(endpoint.url);
    await until(() => pool.evaluate().fresh === 1, "a sample again");
  });
});

describe("settings", () => {
  test("S becomes three times the interval, at least 200 ms, unless it was given", async () => {
    const { pool } = scrape(["http://127.0.0.1:1"], { interval: "1s" });
    expect(pool.config.metricsStalenessThreshold).toBe(3000);
    expect(scrape(["http://127.0.0.1:1"]).pool.config.metricsStalenessThreshold).toBe(200);
  });

  test("an interval that is not shorter than S warns once with both numbers", () => {
    const warn = vi.fn();
    const pool = new EndpointPool({ metricsStalenessThreshold: "200ms" });
    scrape(["http://127.0.0.1:1"], { interval: "200ms", logger: { warn } }, pool);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]?.[0]).toMatch(/200ms.*200ms/);
  });

  test("all faults of the targets are reported together, without credentials", () => {
    const targets = ["ftp://x", "no", "http://u:geheim@:80", { url: "http://a", engine: "x" }];
    const twice = ["http://b:1", "http://b:1/other"];
    try {
      startScraper(new EndpointPool(), [...targets, ...twice] as string[]);
      expect.unreachable();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      expect(error.faults.map(({ path }) => path)).toEqual([
        "targets.0",
        "targets.1",
        "targets.2",
        "targets.3.engine",
        "targets.5",
      ]);
      expect(error.message).not.toContain("geheim");
    }
    expect(() => startScraper(new EndpointPool(), [], { interval: 0, timeout: "x" })).toThrow(
      /interval.*\ntimeout/,
    );
  });

  test("an injected fetch is used, with the same limits", async () => {
    const endpoint = await good(3);
    const seen: string[] = [];
    const { pool, scraper } = scrape(
      [endpoint.url, `${endpoint.url}/slow`].map((url, i) => ({ url, id: `${i}` })),
      {
        fetch: (url, init) => {
          seen.push(url);
          return url.includes("slow")
            ? new Promise((_, reject) => {
                init.signal?.addEventListener("abort", () => reject(init.signal?.reason));
              })
            : fetch(url, init);
        },
      },
    );
    await until(() => pool.evaluate().fresh === 1, "a sample");
    await until(() => (scraper.targets[1]?.failures ?? 0) >= 1, "the slow one to fail");
    expect(scraper.targets[1]?.lastError).toContain("150 ms");
    expect(seen[0]).toContain("/");
  });

  test("readings are spread over the interval, at random", () => {
    vi.useFakeTimers();
    try {
      const random = vi.fn(() => 0.25);
      const scraper = startScraper(new EndpointPool(), ["http://127.0.0.1:1"], {
        interval: 1000,
        random,
        fetch: () => Promise.resolve(new Response(pageOf(1))),
      });
      expect(vi.getTimerCount()).toBe(1);
      vi.advanceTimersByTime(249);
      expect(scraper.targets[0]?.reads).toBe(0);
      vi.advanceTimersByTime(1);
      expect(vi.getTimerCount()).toBeLessThanOrEqual(1);
      void scraper.close();
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("the end", () => {
  test("an abort ends everything, and close may be called again", async () => {
    const endpoint = await good();
    const hung = keep(await serve(() => undefined));
    const stop = new AbortController();
    const { scraper } = scrape([endpoint.url, hung.url], { signal: stop.signal, timeout: 60_000 });
    await until(() => hung.asked.length > 0 && endpoint.asked.length > 1, "requests");
    stop.abort();
    await scraper.close();
    const asked = endpoint.asked.length;
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(endpoint.asked.length).toBe(asked);
    expect(scraper.targets[1]?.failures).toBe(0);
  });

  test("a scraper that was aborted before it began does nothing", async () => {
    const endpoint = await good();
    const { scraper } = scrape([endpoint.url], { signal: AbortSignal.abort() });
    await scraper.close();
    expect(endpoint.asked).toEqual([]);
  });

  test.each(["close", "nothing"])("a process ends by itself after %s", async (how) => {
    const endpoint = await good();
    const script = `
      import { EndpointPool } from "./dist/index.js";
      import { startScraper } from "./dist/telemetry.js";
      const pool = new EndpointPool();
      const scraper = startScraper(pool, ["${endpoint.url}"], { interval: 5, timeout: 500,
        onReading: () => { if ("${how}" === "close") scraper.close(); } });
      setTimeout(() => {}, 100);
      process.on("exit", () => console.log("reads", scraper.targets[0].reads > 0));`;
    const output = await new Promise<string>((resolve, reject) => {
      import("node:child_process").then(({ execFile }) =>
        execFile(
          process.execPath,
          ["--input-type=module", "-e", script],
          { timeout: 10_000 },
          (error, stdout) => (error ? reject(error) : resolve(stdout)),
        ),
      );
    });
    expect(output.trim()).toBe("reads true");
  });
});
