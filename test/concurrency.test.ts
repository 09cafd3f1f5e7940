import { describe, expect, test, vi } from "vitest";
import {
  type ConcurrencyConfig,
  ConcurrencyDetector,
  ConfigError,
  EndpointPool,
  maxOf,
  UtilizationDetector,
} from "../src/index";

function make(n: number, config: ConcurrencyConfig = {}) {
  const pool = new EndpointPool({ metricsStalenessThreshold: 1e6 }, { clock: () => 1000 });
  for (let i = 0; i < n; i++) {
    pool.add(`e${i}`);
    pool.report(`e${i}`, { waitingQueueSize: 0, kvCacheUsagePercent: 0 });
  }
  return { pool, detector: new ConcurrencyDetector(pool, config) };
}

describe("ConcurrencyDetector", () => {
  test("has its defaults and its type, and refuses what is out of range", () => {
    const { detector } = make(1);
    expect(detector.config).toEqual({
      mode: "requests",
      maxConcurrency: 100,
      maxTokenConcurrency: 1_000_000,
      headroom: 0,
    });
    expect(detector.typedName.type).toBe("concurrency-detector");
    const wrong = { mode: "x", maxConcurrency: 0, maxTokenConcurrency: -1, headroom: -1, more: 1 };
    try {
      make(1, wrong as never);
      expect.unreachable();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      expect(error.faults.length).toBe(5);
    }
  });

  test("requests and tokens are one fraction of the whole pool", () => {
    const { pool, detector } = make(2, { maxConcurrency: 10 });
    for (let i = 0; i < 15; i++) pool.acquire("e0", { tokens: 100 });
    expect(detector.saturation()).toBe(15 / 20);
    expect(detector.evaluate()).toMatchObject({ mean: 0.75, capped: 0.5, max: 1.5, stale: 0 });
    const tokens = new ConcurrencyDetector(pool, { mode: "tokens", maxTokenConcurrency: 3000 });
    expect(tokens.saturation()).toBe(1500 / 6000);
  });

  test("hybrid is the mean of the larger ratios", () => {
    const { pool, detector } = make(2, {
      mode: "hybrid",
      maxConcurrency: 10,
      maxTokenConcurrency: 1000,
    });
    for (let i = 0; i < 5; i++) pool.acquire("e0", { tokens: 10 });
    pool.acquire("e1", { tokens: 800 });
    expect(detector.saturation()).toBeCloseTo((0.5 + 0.8) / 2, 12);
  });

  test("an empty pool is saturated", () => {
    expect(make(0).detector.saturation()).toBe(1);
  });

  test("an endpoint is full from floor(capacity * (1 + headroom)) on, and all full fail open", () => {
    const { pool, detector } = make(2, { maxConcurrency: 3, headroom: 0.5 });
    for (let i = 0; i < 3; i++) pool.acquire("e0");
    expect(detector.filter().length).toBe(2);
    pool.acquire("e0");
    expect(detector.filter().map(({ id }) => id)).toEqual(["e1"]);
    for (let i = 0; i < 6; i++) expect(detector.lease({ prefer: "e0" })).toBeDefined();
    expect(pool.get("e1")?.leases).toBeGreaterThanOrEqual(4);
    expect(detector.evaluate().failedOpen).toBe(true);
    expect(detector.closedBy()).toMatchObject({ resource: "requests", limit: 3 });
  });

  test("leases keep to the wanted endpoints", () => {
    const { pool, detector } = make(3, { maxConcurrency: 1 });
    pool.acquire("e0");
    expect(detector.lease({ among: ["e0", "e1"] })?.endpoint.id).toBe("e1");
    expect(detector.lease({ among: ["e0", "e1"] })).toBeUndefined();
  });

  test("drives subscribers by the pool's changes", async () => {
    const { pool, detector } = make(1);
    const listener = vi.fn();
    detector.subscribe(listener);
    pool.acquire("e0").release();
    await new Promise(setImmediate);
    expect(listener).toHaveBeenCalled();
  });
});

describe("affinity", () => {
  test("needs no telemetry, and never wins for a full endpoint, behind maxOf too", () => {
    const pool = new EndpointPool({}, { clock: () => 1000 });
    for (let i = 0; i < 5; i++) pool.add(`e${i}`);
    const detector = new ConcurrencyDetector(pool, { maxConcurrency: 1 });
    const both = maxOf(pool, detector);
    expect(both.lease?.({ prefer: "e3" })?.endpoint.id).toBe("e3");
    expect(both.lease?.({ prefer: "e3" })?.endpoint.id).not.toBe("e3");
    expect(detector.lease({ prefer: "e4", exclude: ["e4"] })?.endpoint.id).not.toBe("e4");
    expect(both.evaluate().capped).toBe(both.saturation("capped"));
  });
});

describe("maxOf", () => {
  test("is as saturated as the worst, leases from the first that can, and says what closes it", () => {
    const { pool, detector } = make(1, { maxConcurrency: 2 });
    const both = maxOf(pool, detector);
    expect([both.size, both.saturation()]).toEqual([1, 0]);
    const leases = [both.lease?.({ tokens: 1 }), both.lease?.({ tokens: 1 })];
    for (const lease of leases) lease?.started();
    expect(pool.saturation()).toBe(0);
    expect(both.saturation("capped")).toBe(1);
    expect(both.evaluate().saturation).toBe(1);
    expect(both.closedBy?.()).toMatchObject({ resource: "requests" });
    expect(both.evaluate().validUntil).toBe(pool.evaluate().validUntil);
  });

  test("of sources without leases has none", async () => {
    const list = [{ metrics: { waitingQueueSize: 5, kvCacheUsagePercent: 0, updateTime: 0 } }];
    const source = new UtilizationDetector({}, { clock: () => 0 }).over(() => list);
    const both = maxOf(source, source);
    expect([both.lease, both.size, both.saturation()]).toEqual([undefined, 1, 1]);
    const listener = vi.fn();
    const stop = both.subscribe(listener);
    source.notify();
    await new Promise(setImmediate);
    expect(listener).toHaveBeenCalled();
    stop();
  });
});
