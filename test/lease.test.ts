// Leases and the live projection: own part live, the others' part from the sample.

import { describe, expect, test } from "vitest";
import { seededRandom } from "../bench/lib";
import { type DetectorConfig, EndpointError, EndpointPool, type PoolOptions } from "../src/index";

function makePool(ids: string[], config: DetectorConfig = {}, options: PoolOptions = {}) {
  const time = { now: 1000 };
  const pool = new EndpointPool(
    { metricsStalenessThreshold: 1e6, ...config },
    { clock: () => time.now, random: seededRandom(1), ...options },
  );
  for (const id of ids) pool.add(id);
  return { pool, time };
}

const sample = (waiting: number, running = 0, kv: number | null = 0, capacity = 100_000) => ({
  waitingQueueSize: waiting,
  runningRequests: running,
  kvCacheUsagePercent: kv,
  kvCapacityTokens: capacity,
});

const stateOf = (pool: EndpointPool, id: string) => {
  const state = pool.snapshot().endpoints.find((endpoint) => endpoint.id === id);
  if (state === undefined) throw new Error(`no ${id}`);
  return state;
};

describe("a lease", () => {
  test("counts from acquire to release, and every verb may be repeated in any order", () => {
    const { pool } = makePool(["a"]);
    pool.report("a", sample(0));
    const lease = pool.acquire("a", { tokens: 500 });
    expect(stateOf(pool, "a")).toMatchObject({
      leases: 1,
      unstartedLeases: 1,
      projectedWaiting: 1,
    });
    lease.started();
    lease.started();
    expect(stateOf(pool, "a")).toMatchObject({
      leases: 1,
      unstartedLeases: 0,
      projectedWaiting: 0,
    });
    lease.release();
    lease.release();
    lease[Symbol.dispose]();
    lease.started();
    expect(stateOf(pool, "a")).toMatchObject({
      leases: 0,
      unstartedLeases: 0,
      projectedWaiting: 0,
      projectedKv: 0,
    });
    expect(() => pool.acquire("x")).toThrow(EndpointError);
  });

  test("moves the queue and the KV cache of its endpoint at once", () => {
    const { pool } = makePool(["a"]);
    pool.report("a", sample(2, 10, 0.5));
    const leases = [pool.acquire("a", { tokens: 1000 }), pool.acquire("a", { tokens: 3000 })];
    expect(stateOf(pool, "a")).toMatchObject({ projectedWaiting: 4, projectedKv: 0.54 });
    expect(pool.saturation()).toBe(4 / 5);
    for (const lease of leases) lease.release();
    expect(stateOf(pool, "a")).toMatchObject({ projectedWaiting: 2, projectedKv: 0.5 });
  });

  test("of a removed endpoint lands nowhere, also when the id is back", () => {
    const { pool } = makePool(["a"]);
    pool.report("a", sample(0));
    const old = pool.acquire("a", { tokens: 100 });
    pool.remove("a");
    expect(pool.snapshot().oldestUnstartedMs).toBeNull();
    pool.add("a");
    pool.report("a", sample(0));
    const fresh = pool.acquire("a", { tokens: 100 });
    expect(pool.snapshot().oldestUnstartedMs).toBe(0); // of the fresh one
    old.started();
    old.release();
    expect(stateOf(pool, "a")).toMatchObject({ leases: 1, unstartedLeases: 1 });
    fresh.release();
    expect(stateOf(pool, "a")).toMatchObject({ leases: 0, projectedWaiting: 0 });
  });

  test("held for an hour is still there", () => {
    const { pool, time } = makePool(["a"]);
    pool.report("a", sample(0));
    const lease = pool.acquire("a");
    time.now += 3_600_000;
    pool.report("a", sample(0));
    expect(stateOf(pool, "a").leases).toBe(1);
    expect(pool.snapshot().oldestUnstartedMs).toBeNull(); // presumed started long ago
    lease.release();
    expect(stateOf(pool, "a").leases).toBe(0);
  });

  test("without an estimate counts as the mean of those that had one", () => {
    const { pool } = makePool(["a"]);
    pool.report("a", sample(0));
    pool.acquire("a", { tokens: 2000 });
    expect(pool.snapshot().meanPromptTokens).toBe(2000);
    pool.acquire("a");
    expect(stateOf(pool, "a").projectedKv).toBeCloseTo(0.04, 12);
    for (const tokens of [Number.NaN, -5, Number.POSITIVE_INFINITY]) pool.acquire("a", { tokens });
    expect(stateOf(pool, "a").projectedKv).toBeCloseTo(0.1, 12);
  });
});

describe("a sample that comes while requests are on their way", () => {
  test("does not count what it has seen twice", () => {
    const { pool, time } = makePool(["a"]);
    pool.report("a", sample(0));
    pool.acquire("a", { tokens: 0 });
    pool.acquire("a", { tokens: 0 });
    time.now += 10;
    // Both are in its queue now, and one of somebody else's.
    pool.report("a", sample(3));
    expect(stateOf(pool, "a").projectedWaiting).toBe(2 + 1);
  });

  test("does not take what is on the wire or in prefill for a queue", () => {
    const { pool, time } = makePool(["a"]);
    pool.report("a", sample(0));
    for (let i = 0; i < 4; i++) pool.acquire("a", { tokens: 0 });
    time.now += 10;
    pool.report("a", sample(0, 4)); // all four run
    expect(stateOf(pool, "a").projectedWaiting).toBe(0);
  });

  test("with an older time counts what was sent since then beside it", () => {
    const { pool, time } = makePool(["a"]);
    pool.report("a", sample(0));
    pool.acquire("a", { tokens: 0 });
    time.now += 50;
    for (let i = 0; i < 10; i++) pool.acquire("a", { tokens: 1000 });
    time.now += 50;
    pool.report("a", { ...sample(0, 1, 0.1), updateTime: time.now - 75 });
    expect(stateOf(pool, "a").projectedWaiting).toBe(10);
    expect(stateOf(pool, "a").projectedKv).toBeCloseTo(0.2, 12);
  });

  test("counts what was sent since its reading began beside it", () => {
    const { pool, time } = makePool(["a"]);
    const reading = pool.beginReading("a");
    time.now += 5;
    for (let i = 0; i < 3; i++) pool.acquire("a", { tokens: 1000 });
    time.now += 5;
    reading.report(sample(1, 0, 0.1));
    expect(stateOf(pool, "a").projectedWaiting).toBe(3 + 1);
    expect(stateOf(pool, "a").projectedKv).toBeCloseTo(0.13, 12);
  });

  test("gauges that read 0 for 18 s after a cold start do not hide what this router sent", () => {
    const { pool, time } = makePool(["cold", "warm"], { queueDepthThreshold: 2 });
    for (let second = 0; second < 18; second++) {
      pool.report("cold", sample(0));
      pool.report("warm", sample(0));
      for (const lease of [pool.lease({ tokens: 100 }), pool.lease({ tokens: 100 })]) {
        expect(lease).toBeDefined();
      }
      time.now += 1000;
    }
    const [cold, warm] = [stateOf(pool, "cold"), stateOf(pool, "warm")];
    expect(cold.leases + warm.leases).toBe(36);
    expect(Math.abs(cold.leases - warm.leases)).toBeLessThanOrEqual(1);
    expect(cold.rank).toBeGreaterThan(1);
  });

  test("KV grows with the tokens that are being generated", () => {
    const { pool, time } = makePool(["a"]);
    pool.report("a", sample(0, 0, 0));
    for (let i = 0; i < 20; i++) {
      const lease = pool.acquire("a", { tokens: 0 });
      lease.started();
      time.now += 1000;
      lease.release({ outputTokens: 100 }); // 10 ms per token
    }
    pool.report("a", sample(0, 0, 0.5));
    const lease = pool.acquire("a", { tokens: 0 });
    lease.started();
    time.now += 10_000;
    const other = pool.acquire("a", { tokens: 0 });
    expect(stateOf(pool, "a").projectedKv).toBeCloseTo(0.5 + 1000 / 100_000, 3);
    other.release();
    lease.release();
    expect(stateOf(pool, "a").projectedKv).toBeCloseTo(0.5, 6);
  });
});

describe("requests whose start is not reported", () => {
  test("count as started when a younger one of their endpoint has ended", () => {
    const { pool } = makePool(["a"]);
    pool.report("a", sample(0));
    pool.acquire("a");
    const younger = pool.acquire("a");
    pool.acquire("a");
    younger.release();
    expect(stateOf(pool, "a")).toMatchObject({ leases: 2, unstartedLeases: 1 });
  });

  test("are not taken for started because a request failed unanswered", () => {
    const { pool, time } = makePool(["a"]);
    pool.report("a", sample(0));
    for (let i = 0; i < 20; i++) pool.acquire("a", { tokens: 0 });
    time.now += 1;
    pool.acquire("a").release({ failed: true });
    time.now += 25;
    expect(pool.saturation()).toBe(4);
    // Where starts are reported, an end without one says nothing either.
    const told = makePool(["a"]);
    told.pool.report("a", sample(0));
    const first = told.pool.acquire("a");
    first.started();
    first.release();
    told.pool.acquire("a");
    told.pool.acquire("a").release();
    expect(stateOf(told.pool, "a").unstartedLeases).toBe(1);
  });

  test("count as started once they are older than requests usually are", () => {
    const { pool, time } = makePool(["a"]);
    pool.report("a", sample(0));
    for (let i = 0; i < 50; i++) {
      const lease = pool.acquire("a");
      time.now += 100;
      lease.started();
      lease.release();
    }
    pool.acquire("a");
    time.now += 299;
    expect(stateOf(pool, "a").unstartedLeases).toBe(1);
    time.now += 1;
    pool.saturation();
    expect(stateOf(pool, "a").unstartedLeases).toBe(0);
  });

  test("and the pool says when that will be", () => {
    const { pool } = makePool(["a"]);
    pool.report("a", sample(0));
    pool.acquire("a");
    expect(pool.evaluate().validUntil).toBe(1000 + 150);
  });
});

describe("what telemetry cannot lower or raise", () => {
  test("a stale sample makes the endpoint stale, and under hold its own part stays live", () => {
    for (const stalenessPolicy of ["saturated", "ignore", "hold"] as const) {
      const { pool, time } = makePool(["a"], {
        metricsStalenessThreshold: 200,
        stalenessPolicy,
        holdFor: 1000,
      });
      pool.report("a", sample(1));
      time.now += 500;
      for (let i = 0; i < 3; i++) pool.acquire("a", { tokens: 0 });
      const expected = { saturated: 1, ignore: 0, hold: 4 / 5 };
      expect(pool.saturation()).toBe(expected[stalenessPolicy]);
      // A pool of one fails open: there is nowhere else to go.
      expect(pool.pick()).toMatchObject({ failedOpen: true, reason: "failed-open" });
    }
  });

  test("a KV gauge that is stuck with nothing running is tried again, one request at a time", () => {
    const { pool, time } = makePool(["a"]);
    const stuck = () => {
      time.now += 50;
      pool.report("a", sample(0, 0, 0.95));
      return stateOf(pool, "a").state;
    };
    expect([stuck(), stuck()]).toEqual(["kv-full", "kv-full"]);
    expect(stuck()).toBe("ok");
    const probe = pool.lease();
    expect(stateOf(pool, "a").state).toBe("kv-full");
    expect([stuck(), stuck(), stuck(), stuck()]).toEqual(Array(4).fill("kv-full"));
    probe?.release();
    expect([stuck(), stuck(), stuck()]).toEqual(["kv-full", "kv-full", "ok"]);
  });

  test("a gauge that is stuck between the ideal and the limit is tried again too", () => {
    const { pool } = makePool(["a"], { headroom: 0.2 });
    for (let i = 0; i < 3; i++) pool.report("a", sample(0, 0, 0.9));
    expect(pool.saturation("capped")).toBe(0);
  });

  test("a full cache with requests running is full, however often it says so", () => {
    const { pool } = makePool(["a"]);
    for (let i = 0; i < 10; i++) pool.report("a", sample(0, 3, 0.95));
    expect(stateOf(pool, "a").state).toBe("kv-full");
  });

  test("queue 2,826 with KV 0.28 is saturated, and so is KV 0.99 with queue 0", () => {
    const { pool } = makePool(["a"]);
    pool.report("a", sample(2826, 162, 0.28));
    expect(pool.saturation("capped")).toBe(1);
    pool.report("a", sample(0, 3, 0.99));
    expect(pool.saturation("capped")).toBe(1);
  });

  test('projection "off" gives the samples as they are', () => {
    const { pool } = makePool(["a", "b"], {}, { projection: "off" });
    pool.report("a", sample(1));
    pool.report("b", sample(2));
    for (let i = 0; i < 50; i++) expect(pool.lease()?.endpoint.id).toBe("a");
    expect(stateOf(pool, "a").projectedWaiting).toBe(1);
    expect(pool.saturation()).toBeCloseTo(0.3, 12);
  });
});
