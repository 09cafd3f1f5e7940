// When a target is read, and how a scraper ends. By a fake clock where no socket is needed.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { EndpointPool } from "../../src/index";
import { type ReadingEvent, type ScraperOptions, startScraper } from "../../src/telemetry/scraper";
import { pageOf, serve, stateOf, until, useHarness } from "./servers";

describe("by a fake clock", () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 0 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Scrapes one target, or more; notes when each reading began, from the start. */
  function watch(
    answer: (at: number, signal: AbortSignal | null | undefined) => Promise<Response>,
    options: ScraperOptions = {},
    targets = ["http://a"],
  ) {
    const pool = new EndpointPool();
    const start = performance.now();
    const begun: number[] = [];
    const scraper = startScraper(pool, targets, {
      interval: 100,
      random: () => 0.5,
      fetch: (_, init) => {
        const at = performance.now() - start;
        begun.push(at);
        return answer(at, init.signal);
      },
      ...options,
    });
    return { pool, scraper, begun, start };
  }

  const page = async (waiting = 1) => new Response(pageOf(waiting));
  const delay = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

  test("first readings are spread over the interval, at random", async () => {
    const spread = [0, 0.25, 0.5, 0.75];
    const { begun, scraper } = watch(() => page(), { random: () => spread.shift() ?? 0 }, [
      "http://a",
      "http://b",
      "http://c",
      "http://d",
    ]);
    await vi.advanceTimersByTimeAsync(99);
    expect(begun).toEqual([0, 25, 50, 75]);
    await scraper.close();
  });

  test("a reading begins one interval after the last one began, however long that took", async () => {
    const { begun, scraper } = watch(() => delay(30).then(() => page()));
    await vi.advanceTimersByTimeAsync(400);
    expect(begun).toEqual([50, 150, 250, 350]);
    await scraper.close();
  });

  test("a reading never overlaps another of its target, and the next one follows at once", async () => {
    const { begun, scraper } = watch(() => delay(250).then(() => page()));
    await vi.advanceTimersByTimeAsync(700);
    // No timer is shorter than 1 ms.
    expect(begun).toEqual([50, 301, 552]);
    expect(scraper.targets[0]?.lastDurationMs).toBe(250);
    await scraper.close();
  });

  test("after failures the pauses double, to five seconds at most", async () => {
    const { begun, scraper } = watch(() => Promise.reject(new Error("down")));
    await vi.advanceTimersByTimeAsync(30_000);
    const pauses = begun.slice(1).map((at, i) => at - (begun[i] ?? 0));
    expect(pauses).toEqual([200, 400, 800, 1600, 3200, 5000, 5000, 5000, 5000]);
    expect(scraper.targets[0]).toMatchObject({ failuresInARow: 10, lastError: "down" });
    await scraper.close();
  });

  test("pauses after failures are spread by a quarter", async () => {
    for (const [random, pause] of [
      [0, 150],
      [0.999, 249.9],
    ] as const) {
      const { scraper, begun, start } = watch(() => Promise.reject(new Error("down")), {
        random: () => random,
      });
      await vi.advanceTimersByTimeAsync(100);
      const until = scraper.targets[0]?.backingOffUntil ?? Number.NaN;
      expect(until - start - (begun[0] ?? 0)).toBeCloseTo(pause, 6);
      await scraper.close();
    }
  });

  test("a success after failures brings the interval back at once", async () => {
    const { begun, scraper } = watch((at) => {
      return at < 600 ? Promise.reject(new Error("down")) : page();
    });
    await vi.advanceTimersByTimeAsync(1000);
    expect(begun).toEqual([50, 250, 650, 750, 850, 950]);
    expect(scraper.targets[0]).toMatchObject({ failuresInARow: 0, backingOffUntil: undefined });
    await scraper.close();
  });

  test("a fetch that does not listen to its signal ends in time all the same", async () => {
    const { scraper } = watch(() => new Promise(() => undefined), { timeout: "1s" });
    await vi.advanceTimersByTimeAsync(1051);
    expect(scraper.targets[0]?.lastError).toBe("no whole answer within 1000 ms");
    await scraper.close();
  });

  test("one time limit covers the short page and the whole one after it", async () => {
    let asked = 0;
    const { scraper, begun } = watch(
      () => {
        asked++;
        if (asked === 1) return page();
        return delay(80).then(() => new Response(null, { status: 400 }));
      },
      { timeout: 100 },
    );
    await vi.advanceTimersByTimeAsync(249);
    expect(begun).toEqual([50, 150, 230]);
    expect(scraper.targets[0]?.failures).toBe(0);
    await vi.advanceTimersByTimeAsync(2);
    expect(scraper.targets[0]?.failures).toBe(1);
    await scraper.close();
  });

  test("a sample's time is when its reading began", async () => {
    const { pool, scraper } = watch(() => delay(30).then(() => page()));
    await vi.advanceTimersByTimeAsync(90);
    expect(stateOf(pool, "http://a")?.ageMs).toBe(40);
    await scraper.close();
  });

  test("an older reading never replaces a newer report", async () => {
    const events: ReadingEvent[] = [];
    const { pool, scraper } = watch(() => delay(30).then(() => page(9)), {
      onReading: (event) => events.push(event),
    });
    await vi.advanceTimersByTimeAsync(60);
    pool.report("http://a", { waitingQueueSize: 1, kvCacheUsagePercent: 0 });
    await vi.advanceTimersByTimeAsync(30);
    expect(events.map(({ accepted }) => accepted)).toEqual([false]);
    expect(stateOf(pool, "http://a")?.waitingQueueSize).toBe(1);
    await scraper.close();
  });

  test("the events say what was read, and why not", async () => {
    const events: ReadingEvent[] = [];
    const { scraper, start } = watch(
      (at) => (at < 100 ? page(2) : Promise.reject(new Error("no"))),
      {
        onReading: (event) => events.push(event),
      },
    );
    await vi.advanceTimersByTimeAsync(160);
    expect(events).toMatchObject([
      { id: "http://a", engine: "vllm", startedAt: start + 50, accepted: true, error: undefined },
      { id: "http://a", startedAt: start + 150, accepted: false, sample: undefined, error: "no" },
    ]);
    expect(events[0]?.sample).toMatchObject({ waitingQueueSize: 2, kvCacheUsagePercent: 0.25 });
    await scraper.close();
  });

  test("after close there is no timer left, and a reading under way is told to stop", async () => {
    let told: AbortSignal | null | undefined;
    const { scraper } = watch((_, signal) => {
      told = signal;
      return new Promise(() => undefined);
    });
    await vi.advanceTimersByTimeAsync(60);
    expect(told?.aborted).toBe(false);
    await scraper.close();
    expect(told?.aborted).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
    expect(scraper.targets[0]).toMatchObject({ failures: 0, reads: 0 });
  });
});

describe("the end", () => {
  const { keep, scrape, good } = useHarness();

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

  /** Runs a script with a scraper in a process of its own; gives what it prints at its end. */
  async function run(url: string, options: string): Promise<string> {
    // The kernel needs a bundler here; a scraper is content with any pool.
    const script = `
      import { startScraper } from "./src/telemetry/scraper.ts";
      const pool = {
        config: { metricsStalenessThreshold: 200 },
        get: () => true,
        setDefaultStaleness: (ms) => ms,
        beginReading: () => ({ startedAt: 0, report: () => true }),
      };
      let thrown = 0;
      process.on("uncaughtException", () => thrown++);
      const scraper = startScraper(pool, ["${url}"], { interval: 5, ${options} });
      setTimeout(() => {}, 300);
      process.on("exit", () => {
        const handles = process.getActiveResourcesInfo().filter((name) => /TCP|Timeout/.test(name));
        const { reads, failures } = scraper.targets[0];
        console.log(JSON.stringify({ reads: reads > 1, failures, thrown: thrown > 1, handles }));
      });`;
    const args = ["--import", "tsx", "--input-type=module", "-e", script];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 20_000 });
    return stdout.trim();
  }

  test("a process with a running scraper ends by itself", async () => {
    const endpoint = await good();
    const { reads, failures } = JSON.parse(await run(endpoint.url, "timeout: 60_000"));
    expect({ reads, failures }).toEqual({ reads: true, failures: 0 });
  });

  test("a process ends by itself while an answer is awaited", async () => {
    const endpoint = keep(await serve(() => undefined));
    const { reads, failures } = JSON.parse(await run(endpoint.url, "timeout: 60_000"));
    expect(endpoint.asked.length).toBe(1);
    expect({ reads, failures }).toEqual({ reads: false, failures: 0 });
  });

  test("close leaves no socket and no timer", async () => {
    const endpoint = await good();
    const closing = "onReading: () => { if (scraper.targets[0].reads > 1) scraper.close(); }";
    expect(JSON.parse(await run(endpoint.url, closing))).toMatchObject({
      reads: true,
      handles: [],
    });
  });

  test("a listener that throws is an uncaught error, and the readings go on", async () => {
    const endpoint = await good();
    const throwing = 'onReading: () => { throw new Error("mine"); }';
    expect(JSON.parse(await run(endpoint.url, throwing))).toMatchObject({
      reads: true,
      thrown: true,
    });
  });
});
