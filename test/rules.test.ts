// R1 to R12, one by one, with their equality edges; each on the detector and on the pool.

import { describe, expect, test, vi } from "vitest";
import {
  ConfigError,
  type DetectorConfig,
  type EndpointMetrics,
  EndpointPool,
  isGateClosed,
  type Thresholds,
  UtilizationDetector,
} from "../src/index";
import { bits } from "./oracle";

const NOW = 1_700_000_000_000;
const S = 200;

type Metrics = Partial<Record<keyof EndpointMetrics, unknown>> | null | undefined;
interface Given {
  readonly metrics?: Metrics;
  readonly own?: Thresholds;
}

const load = (waiting: unknown, kv: unknown, age = 0): Given => ({
  metrics: { waitingQueueSize: waiting, kvCacheUsagePercent: kv, updateTime: NOW - age },
});

function detector(config: DetectorConfig = {}) {
  return new UtilizationDetector<Given>(config, {
    clock: () => NOW,
    metricsOf: (given) => given.metrics as EndpointMetrics | null | undefined,
    thresholdsOf: (given) => given.own,
  });
}

const evaluate = (endpoints: Given[], config?: DetectorConfig) =>
  detector(config).evaluate(endpoints);
const scoreOf = (given: Given, config?: DetectorConfig) => evaluate([given], config).scores[0];
const isCandidate = (given: Given, config?: DetectorConfig) =>
  !evaluate([given], config).failedOpen;

describe("R1 usable", () => {
  test.each([
    ["no metrics", {}],
    ["null metrics", { metrics: null }],
    ["NaN queue", load(Number.NaN, 0.1)],
    ["infinite queue", load(Number.POSITIVE_INFINITY, 0.1)],
    ["negative queue", load(-1, 0.1)],
    ["undefined queue", load(undefined, 0.1)],
    ["null queue", load(null, 0.1)],
    ["text queue", load("5", 0.1)],
    ["bigint queue", load(5n, 0.1)],
    ["NaN KV", load(1, Number.NaN)],
    ["negative KV", load(1, -0.1)],
    ["null KV", load(1, null)],
    ["boolean KV", load(1, true)],
    ["NaN time", load(1, 0.1, Number.NaN)],
    ["infinite time", load(1, 0.1, Number.NEGATIVE_INFINITY)],
  ])("%s is unusable and scores as a stale one", (_, given) => {
    const { scores, unusable, stale, failedOpen } = evaluate([given]);
    expect([scores[0], unusable, stale, failedOpen]).toEqual([1, 1, 0, true]);
  });

  test("zero and minus zero are readings", () => {
    expect(evaluate([load(0, 0), load(-0, -0)]).fresh).toBe(2);
  });

  test("a Date is a time, and an invalid one is none", () => {
    const at = (updateTime: Date) => ({
      metrics: { waitingQueueSize: 1, kvCacheUsagePercent: 0.1, updateTime },
    });
    expect(evaluate([at(new Date(NOW)), at(new Date(Number.NaN))]).fresh).toBe(1);
  });

  test("in the pool, KV null means that the queue alone decides, and the endpoint says so", () => {
    const pool = new EndpointPool({}, { clock: () => NOW });
    const endpoint = pool.add("a");
    expect(endpoint.queueOnly).toBe(false);
    expect(pool.report("a", { waitingQueueSize: 4, kvCacheUsagePercent: null })).toBe(true);
    expect(endpoint.queueOnly).toBe(true);
    expect(pool.saturation()).toBe(4 / 5);
    expect(pool.snapshot().endpoints[0]?.reason).toContain("queue only");
  });

  test("in the pool, an unusable report is counted, and the last good sample ages on", () => {
    let now = 0;
    const pool = new EndpointPool({}, { clock: () => now });
    pool.add("a");
    pool.report("a", { waitingQueueSize: 2, kvCacheUsagePercent: 0.1 });
    now = 150;
    for (const bad of [
      { waitingQueueSize: Number.NaN, kvCacheUsagePercent: 0.1 },
      { waitingQueueSize: 1, kvCacheUsagePercent: undefined },
      { waitingQueueSize: null, kvCacheUsagePercent: 0.1 },
      undefined,
      null,
    ]) {
      expect(pool.report("a", bad)).toBe(false);
    }
    expect(pool.saturation()).toBe(2 / 5);
    expect(pool.snapshot().endpoints[0]).toMatchObject({ unusableReports: 5, ageMs: 150 });
    now = 201;
    expect(pool.evaluate()).toMatchObject({ fresh: 0, stale: 1, saturation: 1 });
  });
});

describe("R2 fresh", () => {
  test.each([
    [0, true],
    [S, true],
    [S + 0.001, false],
    [-S, true],
    [-S - 0.001, false],
  ])("age %d ms: fresh is %s", (age, fresh) => {
    // A small clock, so that 0.001 ms is not lost to rounding.
    const clock = new UtilizationDetector<Given>(
      {},
      { clock: () => 1000, metricsOf: (given) => given.metrics as EndpointMetrics },
    );
    const metrics = { waitingQueueSize: 1, kvCacheUsagePercent: 0.1, updateTime: 1000 - age };
    const { fresh: count, stale } = clock.evaluate([{ metrics }]);
    expect([count, stale]).toEqual(fresh ? [1, 0] : [0, 1]);
  });
});

describe("R3 score", () => {
  test("a queue exactly at Q gives exactly 1, for every Q to 1,000", () => {
    for (let q = 1; q <= 1000; q++) {
      expect(scoreOf(load(q, 0), { queueDepthThreshold: q })).toBe(1);
    }
  });

  test("is the larger of the two ratios, by division, without a clamp", () => {
    expect(scoreOf(load(3, 0.1))).toBe(3 / 5);
    expect(scoreOf(load(1, 0.7))).toBe(0.7 / 0.8);
    expect(scoreOf(load(2826, 0.28))).toBe(2826 / 5);
    expect(scoreOf(load(0, 0))).toBe(0);
    expect(scoreOf(load(0, 0.3), { kvCacheUtilThreshold: 0.1 })).toBe(0.3 / 0.1);
  });

  test("an endpoint that is not fresh scores exactly 1", () => {
    expect(scoreOf(load(50, 0.9, S + 1))).toBe(1);
    expect(scoreOf(load(0, 0, -S - 1))).toBe(1);
  });
});

describe("R4 saturation", () => {
  test("is the mean, added in the order of the contract", () => {
    const kv = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7];
    const s = kv.map((v) => v / 0.8) as [number, number, number, number, number, number, number];
    const [s0, s1, s2, s3] = [s[0], s[1], s[2], s[3]];
    const expected = (s0 + s2 + (s1 + s3) + s[4] + s[5] + s[6]) / 7;
    expect(bits(evaluate(kv.map((v) => load(0, v))).saturation)).toBe(bits(expected));
  });

  test("of an empty pool is 1", () => {
    expect(evaluate([])).toMatchObject({ saturation: 1, mean: 1, capped: 1, weighted: 1, max: 1 });
    expect(new EndpointPool().saturation()).toBe(1);
  });
});

describe("R5 staleness policy", () => {
  const pool = [load(2, 0.1), load(40, 0.1, S + 300)];

  test("saturated counts a stale endpoint as 1", () => {
    expect(evaluate(pool).saturation).toBe((2 / 5 + 1) / 2);
  });

  test("ignore leaves it out of sum and divisor", () => {
    const ignore = { stalenessPolicy: "ignore" } as const;
    expect(evaluate(pool, ignore).saturation).toBe(2 / 5);
    expect(evaluate([load(9, 0.1, S + 1)], ignore)).toMatchObject({ saturation: 0, max: 0 });
    expect(evaluate([], ignore).saturation).toBe(1);
  });

  test("hold scores it as if fresh until S + holdFor, inclusive, then as 1", () => {
    const hold = { stalenessPolicy: "hold", holdFor: "300ms" } as const;
    expect(evaluate(pool, hold).saturation).toBe((2 / 5 + 8) / 2);
    expect(scoreOf(load(40, 0.1, S + 301), hold)).toBe(1);
    expect(scoreOf(load(40, 0.1, -S - 1), hold)).toBe(1);
  });

  test.each(["saturated", "ignore", "hold"] as const)("%s filters the same", (stalenessPolicy) => {
    const { candidates, stale } = evaluate(pool, { stalenessPolicy });
    expect([candidates, stale]).toEqual([[pool[0]], 1]);
  });
});

describe("R6 aggregation", () => {
  const weighted: Given[] = [
    { ...load(5, 0), own: { weight: 3 } },
    { ...load(10, 0), own: { weight: 1 } },
  ];

  test("every evaluation carries all four, and the configured one is the saturation", () => {
    const four = { mean: 1.5, weighted: 1.25, max: 2, capped: 1 };
    for (const aggregation of ["mean", "weighted", "max", "capped"] as const) {
      const saturation = four[aggregation];
      expect(evaluate(weighted, { aggregation })).toMatchObject({ ...four, saturation });
    }
  });

  test("capped: one endpoint with a queue of 2,826 does not close a pool of nine idle ones", () => {
    const pool = [load(2826, 0.28), ...Array.from({ length: 9 }, () => load(0, 0))];
    const { mean, capped, candidates } = evaluate(pool);
    expect([mean > 50, capped, candidates.length]).toEqual([true, 0.1, 9]);
  });
});

describe("R7 limits", () => {
  test("at the limit an endpoint is full, below it passes", () => {
    expect(isCandidate(load(5, 0))).toBe(false);
    expect(isCandidate(load(4, 0))).toBe(true);
    expect(isCandidate(load(0, 0.8))).toBe(false);
    expect(isCandidate(load(0, 0.799))).toBe(true);
  });

  test("headroom raises both, KV to 1 at most", () => {
    expect(isCandidate(load(7, 0.8), { headroom: 0.5 })).toBe(true);
    expect(isCandidate(load(7.5, 0.8), { headroom: 0.5 })).toBe(false);
    expect(isCandidate(load(0, 1), { headroom: 0.5 })).toBe(false);
    expect(isCandidate(load(0, 0.999), { headroom: 0.5 })).toBe(true);
  });

  test("only a fresh endpoint passes", () => {
    expect(isCandidate(load(0, 0, S + 1))).toBe(false);
  });

  test("thresholds that are no numbers are not used", () => {
    const own = { headroom: "0.2" } as never;
    expect(isCandidate({ ...load(50, 0), own })).toBe(false);
  });

  test("every endpoint may have its own", () => {
    const own = { queueDepthThreshold: 2, kvCacheUtilThreshold: 0.5, headroom: 1 };
    expect(isCandidate({ ...load(3, 0.1), own })).toBe(true);
    expect(isCandidate({ ...load(4, 0.1), own })).toBe(false);
    expect(scoreOf({ ...load(0, 0.25), own })).toBe(0.5);
  });
});

describe("R8 fail-open", () => {
  test("the very array comes back when none passes, and the evaluation says so", () => {
    const full = [load(9, 0), load(0, 0.9)];
    expect(detector().filter(full)).toBe(full);
    expect(evaluate(full)).toMatchObject({ failedOpen: true, candidates: full });
  });

  test("else order and identity are kept", () => {
    const [a, b, c] = [load(1, 0), load(9, 0), load(2, 0)];
    const passed = detector().filter([a, b, c]);
    expect(passed[0]).toBe(a);
    expect(passed[1]).toBe(c);
    expect(passed.length).toBe(2);
  });
});

describe("R9 gate", () => {
  test("is closed at the ceiling and open below it", () => {
    expect(isGateClosed(1, 1)).toBe(true);
    expect(isGateClosed(0.999, 1)).toBe(false);
    expect(isGateClosed(Number.POSITIVE_INFINITY, 1)).toBe(true);
  });

  test("saturation is never NaN, even from the largest doubles", () => {
    const huge = Number.MAX_VALUE;
    const given = Array.from({ length: 6 }, () => ({ ...load(huge, huge), own: { weight: huge } }));
    const { mean, capped, weighted, max } = evaluate(given, { kvCacheUtilThreshold: 1e-300 });
    for (const value of [mean, capped, weighted, max]) expect(value).not.toBeNaN();
    expect([mean, capped, weighted]).toEqual([
      Number.POSITIVE_INFINITY,
      1,
      Number.POSITIVE_INFINITY,
    ]);
  });
});

describe("R10 config", () => {
  test("has its defaults, resolved, readable and frozen", () => {
    const { config } = new UtilizationDetector();
    expect(config).toEqual({
      queueDepthThreshold: 5,
      kvCacheUtilThreshold: 0.8,
      metricsStalenessThreshold: 200,
      headroom: 0,
      stalenessPolicy: "saturated",
      holdFor: 2000,
      aggregation: "mean",
    });
    expect(Object.isFrozen(config)).toBe(true);
  });

  test("reports all faults together, each with path, value and rule", () => {
    const wrong = { queueDepthThreshold: 0, kvCacheUtilThreshold: 1.5, headroom: -1, kvCache: 3 };
    try {
      new UtilizationDetector(wrong as DetectorConfig);
      expect.unreachable();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      expect(error.code).toBe("PLIMSOLL_CONFIG");
      expect(error.faults.map(({ path, value }) => [path, value])).toEqual(Object.entries(wrong));
      expect(error.message.split("\n").length).toBe(4);
    }
  });

  test("warns once that a headroom above 1 is a fraction", () => {
    const warn = vi.fn();
    new UtilizationDetector({ headroom: 20 }, { logger: { warn } });
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]?.[0]).toContain("fraction");
  });
});

describe("R11 clock", () => {
  test("one reading of the clock per decision", () => {
    const clock = vi.fn(() => NOW);
    const one = new UtilizationDetector<Given>({}, { clock, metricsOf: () => null });
    one.evaluate([{}, {}]);
    expect(clock).toHaveBeenCalledTimes(1);
    const pool = new EndpointPool({}, { clock });
    pool.add("a");
    clock.mockClear();
    pool.candidates();
    pool.saturation();
    expect(clock).toHaveBeenCalledTimes(2);
  });

  test("a time more than an hour off is reported as one from the other clock", () => {
    const warn = vi.fn();
    const monotonic = new UtilizationDetector<Given>(
      {},
      { clock: () => 5000, logger: { warn }, metricsOf: (g) => g.metrics as EndpointMetrics },
    );
    monotonic.evaluate([load(1, 0.1)]);
    expect(warn.mock.calls.flat().join()).toContain("other clock");
    const pool = new EndpointPool({}, { clock: () => 5000, logger: { warn } });
    pool.add("a");
    warn.mockClear();
    pool.report("a", { waitingQueueSize: 1, kvCacheUsagePercent: 0.1, updateTime: NOW });
    expect(warn.mock.calls.flat().join()).toContain("other clock");
    expect(pool.evaluate()).toMatchObject({ fresh: 0, stale: 1 });
  });
});

describe("R12 silence is visible", () => {
  test("a pool that is dead and changes no more is still spoken of", () => {
    let now = 0;
    const warn = vi.fn();
    const pool = new EndpointPool({}, { clock: () => now, logger: { warn } });
    pool.add("a");
    pool.saturation();
    pool.report("a", { waitingQueueSize: 1, kvCacheUsagePercent: 0.1 });
    for (; now < 600_000; now += 1000) pool.saturation();
    expect(warn.mock.calls.length).toBeGreaterThanOrEqual(19);
    expect(warn.mock.calls.length).toBeLessThanOrEqual(21);
  });

  test("counts are in every evaluation, and the logger hears of them once per 30 s", () => {
    let now = NOW;
    const warn = vi.fn();
    const watched = new UtilizationDetector<Given>(
      {},
      { clock: () => now, logger: { warn }, metricsOf: (g) => g.metrics as EndpointMetrics },
    );
    const pool = [load(1, 0.1), load(1, 0.1, 500), load(Number.NaN, 0.1)];
    expect(watched.evaluate(pool)).toMatchObject({ fresh: 1, stale: 1, unusable: 1 });
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]?.[0]).toMatch(/2 of 3 endpoints.*check/);
    now += 29_999;
    watched.evaluate(pool);
    expect(warn).toHaveBeenCalledTimes(1);
    now += 1;
    watched.evaluate(pool);
    expect(warn).toHaveBeenCalledTimes(2);
  });
});
