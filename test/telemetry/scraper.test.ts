// The scraper against real servers on loopback, good and bad ones.

import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import {
  type Endpoint,
  pageOf,
  queryOf,
  serve,
  serveRaw,
  stateOf,
  until,
  useHarness,
} from "./servers";

const { keep, scrape, good } = useHarness();

describe("a good endpoint", () => {
  test("is added, read again and again, and its sample counts", async () => {
    const endpoint = await good(4);
    const { pool, scraper } = scrape([endpoint.url]);
    await until(() => (scraper.targets[0]?.reads ?? 0) >= 3, "three reads");
    expect(stateOf(pool, endpoint.url)).toMatchObject({ waitingQueueSize: 4, state: "ok" });
    expect(pool.saturation()).toBe(0.8);
    expect(scraper.targets[0]).toMatchObject({ engine: "vllm", failures: 0, lastError: undefined });
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
    if (endpoint === undefined) {
      console.log("IPv6 was not tested: this machine has no ::1");
      return;
    }
    keep(endpoint);
    const { pool } = scrape([endpoint.url]);
    await until(() => pool.evaluate().fresh === 1, "a sample over IPv6");
  });

  test("may say first that its answer is still to come", async () => {
    const endpoint = keep(
      await serve((_, response) => {
        response.writeProcessing();
        response.end(pageOf(3));
      }),
    );
    const { pool, scraper } = scrape([endpoint.url]);
    await until(() => pool.evaluate().fresh === 1, "a sample");
    expect(scraper.targets[0]?.failures).toBe(0);
  });

  test("may share its origin with one that hangs, and does not wait for it", async () => {
    const endpoint = keep(
      await serve((request, response) => {
        if (request.url?.startsWith("/good")) response.end(pageOf(1));
      }),
    );
    const targets = ["hung", "good"].map((id) => ({ id, url: `${endpoint.url}/${id}/metrics` }));
    const { scraper } = scrape(targets, { timeout: 60_000 });
    await until(() => (scraper.targets[1]?.reads ?? 0) >= 5, "five reads of the good one");
  });
});

describe("the short page", () => {
  test("is asked for once the names that matter are known", async () => {
    const endpoint = await good();
    scrape([`${endpoint.url}/metrics?a=b`]);
    await until(() => endpoint.asked.length >= 3, "three requests");
    expect(endpoint.asked[0]).toBe("/metrics?a=b");
    expect(endpoint.asked[2]).toContain("/metrics?a=b&name[]=vllm%3Anum_requests_waiting");
  });

  test.each([
    ["with less", 200, 1],
    ["with 400", 400, 3],
    ["with 404", 404, 3],
  ])("that is answered %s is soon not asked for, and nothing fails", async (_, status, times) => {
    const endpoint = keep(
      await serve((request, response) => {
        const isShort = queryOf(request).has("name[]");
        response.statusCode = isShort ? status : 200;
        response.end(isShort ? "a 1\n" : pageOf(3));
      }),
    );
    const { pool, scraper } = scrape([endpoint.url]);
    await until(() => (scraper.targets[0]?.reads ?? 0) >= 8, "eight reads");
    expect(scraper.targets[0]?.failures).toBe(0);
    expect(pool.saturation()).toBe(0.6);
    expect(endpoint.asked.filter((path) => path.includes("name")).length).toBe(times);
  });
});

describe("a bad endpoint", () => {
  const chunk = "x".repeat(65_536);
  /** More than the scraper takes, and never an end. */
  const flood = () =>
    serve((_, response) => {
      response.writeHead(200);
      let size = 0;
      const more = () => {
        while (size < 50e6 && response.write(chunk)) size += chunk.length;
      };
      response.on("drain", more);
      more();
    });
  const raw = (text: string) => () => serveRaw((socket) => void socket.end(text));
  const closing = /closed|UND_ERR|aborted/;
  const bad: [string, () => Promise<Endpoint>, RegExp][] = [
    ["404", () => serve((_, r) => r.writeHead(404).end()), /^HTTP 404: .*\/prometheus\/metrics/],
    ["500", () => serve((_, r) => r.writeHead(500).end("no")), /^HTTP 500$/],
    ["204", () => serve((_, r) => r.writeHead(204).end()), /^HTTP 204$/],
    [
      "a redirect",
      () => serve((_, r) => r.writeHead(302, { location: "http://u:geheim@x/" }).end()),
      /^HTTP 302, a redirect to "http:\/\/\*\*\*@x\/"/,
    ],
    ["silence", () => serve(() => undefined), /no whole answer within 400 ms/],
    [
      "half a page",
      () => serve((_, r) => void r.writeHead(200).write("vllm:")),
      /no whole answer within 400 ms/,
    ],
    [
      "a page that drips",
      () =>
        serve((_, r) => {
          const drip = setInterval(() => r.write("a 1\n"), 10);
          r.on("close", () => clearInterval(drip));
        }),
      /no whole answer within 400 ms/,
    ],
    [
      "a reset",
      () => serve((_, r) => void r.socket?.resetAndDestroy()),
      /ECONNRESET|other side closed|UND_ERR_SOCKET/,
    ],
    [
      "a reset amid the page",
      () =>
        serve((_, r) => {
          r.writeHead(200);
          r.write(pageOf(1), () => void r.socket?.resetAndDestroy());
        }),
      /ECONNRESET|closed|terminated|UND_ERR/,
    ],
    [
      "a compressed page",
      () => serve((_, r) => r.writeHead(200, { "content-encoding": "gzip" }).end("x")),
      /compressed \("gzip"\)/,
    ],
    ["a body without end", flood, /larger than 1000000 bytes/],
    [
      "a truncated page",
      raw(`HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n${pageOf(1)}`),
      closing,
    ],
    [
      "a content length that is no number",
      raw(`HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n${pageOf(1)}`),
      /Content-Length|HPE/i,
    ],
    ["no HTTP", raw("SSH-2.0-x\r\n"), /HTTP|HPE|Parse/i],
  ];

  test.each(bad)("%s is never fresh, and never ages another", async (_, make, reason) => {
    const endpoint = keep(await make());
    const fine = await good(1);
    const { pool, scraper } = scrape([endpoint.url, fine.url], { maxBodyBytes: 1_000_000 });
    const [first, second] = scraper.targets;
    await until(() => (first?.failures ?? 0) >= 1, "a failure");
    const readsSoFar = second?.reads ?? 0;
    expect(first?.lastError).toMatch(reason);
    await until(() => (second?.reads ?? 0) >= readsSoFar + 10, "ten more good reads");
    expect(pool.evaluate()).toMatchObject({ fresh: 1, unusable: 1 });
    expect(second?.failures).toBe(0);
    expect(first?.reads).toBe(0);
  });

  test("more than its content length is cut off, and what is left is judged", async () => {
    const text = `HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n${pageOf(1)}`;
    const endpoint = keep(await raw(text)());
    const { pool, scraper } = scrape([endpoint.url]);
    const [target] = scraper.targets;
    await until(() => (target?.failures ?? 0) + (target?.reads ?? 0) >= 2, "two readings");
    expect(pool.evaluate()).toMatchObject({ fresh: 0, unusable: 1 });
  });

  test.each([
    ["JSON", '{"a":1}', "not-an-exposition"],
    ["HTML", "<html>", "not-an-exposition"],
    ["empty", "", "not-an-exposition"],
    ["a page of somebody else", "a 1\n", "no-engine"],
  ])("%s is a finding, and an unusable report", async (_, body, code) => {
    const endpoint = keep(await serve((__, response) => response.end(body)));
    const { pool, scraper } = scrape([endpoint.url]);
    await until(() => (scraper.targets[0]?.reads ?? 0) >= 1, "a read");
    expect(scraper.targets[0]?.findings.map((finding) => finding.code)).toEqual([code]);
    expect(pool.evaluate()).toMatchObject({ fresh: 0, unusable: 1 });
    expect(stateOf(pool, endpoint.url)?.lastFault).toMatch(/waitingQueueSize/);
  });

  test("404 where another path is usual gets a finding with the right path", async () => {
    const endpoint = keep(await serve((_, response) => response.writeHead(404).end()));
    const url = `${endpoint.url}/metrics`;
    const { scraper } = scrape([{ url, engine: "trtllm-serve" }]);
    await until(() => (scraper.targets[0]?.failures ?? 0) >= 1, "a failure");
    expect(scraper.targets[0]?.findings).toEqual([
      {
        code: "wrong-path",
        message: expect.stringMatching(/at \/metrics; .*\/prometheus\/metrics/),
      },
    ]);
  });

  test("KV usage in percent is unusable", async () => {
    const endpoint = keep(await serve((_, response) => response.end(pageOf(1, 42))));
    const { pool, scraper } = scrape([endpoint.url]);
    await until(() => (scraper.targets[0]?.reads ?? 0) >= 1, "a read");
    expect(scraper.targets[0]?.findings[0]?.message).toContain("percent?");
    expect(pool.evaluate()).toMatchObject({ fresh: 0, unusable: 1 });
  });

  test("a compressed page is read where the fetch unpacks it", async () => {
    const endpoint = keep(
      await serve((_, response) => {
        response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(pageOf(3)));
      }),
    );
    const { pool } = scrape([endpoint.url], { fetch });
    await until(() => pool.evaluate().fresh === 1, "a sample");
    expect(pool.saturation()).toBe(0.6);
  });
});
