// What a scraper is told: options, targets, credentials, and which transport it takes.

import { afterEach, describe, expect, test, vi } from "vitest";
import { ConfigError, EndpointPool } from "../../src/index";
import { startScraper } from "../../src/telemetry/scraper";
import { pageOf, serve, until, useHarness } from "./servers";

const { keep, scrape, good } = useHarness();
const NOBODY = "http://127.0.0.1:1";

/** The faults that a scraper is refused with, as `path: rule`. */
function faultsOf(targets: unknown, options: unknown): { paths: string[]; message: string } {
  const pool = new EndpointPool();
  try {
    // What JavaScript callers write has no types.
    startScraper(pool, targets as string[], options as object);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    expect(pool.size).toBe(0);
    return { paths: error.faults.map(({ path }) => path), message: error.message };
  }
  return expect.unreachable();
}

describe("R10: a scrape interval and S", () => {
  test("S becomes three times the interval, at least 200 ms, where it was not given", () => {
    const { pool } = scrape([NOBODY], { interval: "1s" });
    expect(pool.config.metricsStalenessThreshold).toBe(3000);
    expect(scrape([NOBODY]).pool.config.metricsStalenessThreshold).toBe(200);
  });

  test("S fits the longest interval where two scrapers feed one pool", () => {
    const { pool } = scrape([NOBODY], { interval: "1s" });
    scrape(["http://127.0.0.1:2"], { interval: "50ms" }, pool);
    expect(pool.config.metricsStalenessThreshold).toBe(3000);
  });

  test("S that was given stays", () => {
    const pool = new EndpointPool({ metricsStalenessThreshold: "5s" });
    scrape([NOBODY], { interval: "4s" }, pool);
    expect(pool.config.metricsStalenessThreshold).toBe(5000);
  });

  test.each([
    ["199ms", 0],
    ["200ms", 1],
    ["1s", 1],
  ])("an interval of %s where S is 200ms warns %i times, with both numbers", (interval, times) => {
    const warn = vi.fn();
    const pool = new EndpointPool({ metricsStalenessThreshold: "200ms" });
    scrape([NOBODY], { interval, logger: { warn } }, pool);
    expect(warn).toHaveBeenCalledTimes(times);
    if (times > 0) expect(warn.mock.calls[0]?.[0]).toMatch(new RegExp(`${interval}.*200ms`));
  });
});

describe("faults", () => {
  test("of targets and options are reported together, and nothing is added to the pool", () => {
    const targets = [
      "ftp://x",
      "no",
      { url: "http://a", engine: "x", weigth: 1 },
      { url: "http://b:1", id: "" },
      "http://c:1",
      "http://c:1/other",
      null,
      7,
      { url: "http://d:1", weight: -1 },
      {},
    ];
    const options = {
      interval: 0,
      timeout: "25h",
      maxBodyBytes: 0.5,
      engine: "y",
      fetch: 1,
      sgnal: 1,
    };
    const { paths, message } = faultsOf(targets, options);
    expect(paths).toEqual([
      ...["interval", "timeout", "maxBodyBytes", "engine", "fetch", "sgnal"],
      ...["targets.0", "targets.1", "targets.2.engine", "targets.2.weigth", "targets.3.id"],
      ...["targets.5", "targets.6", "targets.7", "targets.8.weight", "targets.9.url"],
    ]);
    expect(message).toContain('did you mean "signal"?');
    expect(message).toContain('did you mean "weight"?');
  });

  test("of a list that is none are said, and options that are none", () => {
    expect(faultsOf(NOBODY, undefined).paths).toEqual(["targets"]);
    expect(faultsOf([], null).paths).toEqual([""]);
  });

  test.each([
    "http://u:geheim@:80",
    "u:geheim@host",
    "http://u:gehe/geheim@host:x",
    "ftp://u:geheim@host",
  ])("of %s do not show the password", (url) => {
    const { paths, message } = faultsOf([url], {});
    expect(paths).toEqual(["targets.0"]);
    expect(message).not.toContain("geheim");
  });

  test("of headers name the header and never its value", () => {
    const headers = { "bad name": "geheim", ok: "geheim", line: "geheim\r\nx: y", number: 1 };
    const { paths, message } = faultsOf([{ url: NOBODY, headers }], {});
    expect(paths).toEqual(
      ["bad name", "line", "number"].map((name) => `targets.0.headers.${name}`),
    );
    expect(message).not.toContain("geheim");
  });
});

describe("credentials", () => {
  test("of an address are sent as a header, and nobody else sees them", async () => {
    let authorization: string | undefined;
    const endpoint = keep(
      await serve((request, response) => {
        ({ authorization } = request.headers);
        response.end(pageOf(1));
      }),
    );
    const events: unknown[] = [];
    const { pool, scraper } = scrape([endpoint.url.replace("//", "//me%:s%C3%A9cret@")], {
      onReading: (event) => events.push(event),
    });
    await until(() => events.length > 0, "a reading");
    expect(Buffer.from(authorization?.slice(6) ?? "", "base64").toString()).toBe("me%:sécret");
    expect(JSON.stringify([pool.snapshot(), scraper.targets, events])).not.toContain("cret");
  });

  test("of a header replace those of the address, however they are spelt", async () => {
    let authorization: string | undefined;
    const endpoint = keep(
      await serve((request, response) => {
        ({ authorization } = request.headers);
        response.end(pageOf(1));
      }),
    );
    const url = endpoint.url.replace("//", "//a:b@");
    scrape([{ url, headers: { Authorization: "Bearer x" } }]);
    await until(() => authorization !== undefined, "a request");
    expect(authorization).toBe("Bearer x");
  });
});

describe("the transport", () => {
  afterEach(() => {
    vi.doUnmock("../../src/telemetry/transport-undici");
  });

  test("is the fetch that was injected, with the same limits", async () => {
    const seen: string[] = [];
    const targets = ["a", "b"].map((id) => ({ id, url: `http://${id}` }));
    const { pool, scraper } = scrape(targets, {
      maxBodyBytes: 100_000,
      fetch: async (url, init) => {
        seen.push(url);
        expect(init.redirect).toBe("manual");
        return new Response(url.startsWith("http://a/") ? pageOf(3) : "x".repeat(100_001));
      },
    });
    await until(() => pool.evaluate().fresh === 1, "a sample");
    await until(() => (scraper.targets[1]?.failures ?? 0) >= 1, "the large one to fail");
    expect(scraper.targets[1]?.lastError).toContain("larger than 100000 bytes");
    expect(seen).toContain("http://a/metrics");
  });

  test.each([
    [302, /redirect to "\/x"/],
    [503, /^HTTP 503$/],
  ])("by fetch refuses %i", async (status, reason) => {
    const { scraper } = scrape(["http://a"], {
      fetch: async () => new Response(null, { status, headers: { location: "/x" } }),
    });
    await until(() => (scraper.targets[0]?.failures ?? 0) >= 1, "a failure");
    expect(scraper.targets[0]?.lastError).toMatch(reason);
  });

  test("is the runtime's fetch where undici cannot be loaded, and the logger is told", async () => {
    vi.doMock("../../src/telemetry/transport-undici", () => ({
      openUndici: () => Promise.reject(new Error("not here")),
    }));
    const endpoint = await good(1);
    const warn = vi.fn();
    const { pool } = scrape([endpoint.url], { logger: { warn } });
    await until(() => pool.evaluate().fresh === 1, "a sample");
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]?.[0]).toMatch(/undici cannot be loaded \(not here\)/);
  });
});
