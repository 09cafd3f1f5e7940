import { describe, expect, test, vi } from "vitest";
import { ConfigError, EndpointError, EndpointPool, UtilizationDetector } from "../src/index";

const sample = (waiting: number, kv: number | null = 0.1) => ({
  waitingQueueSize: waiting,
  kvCacheUsagePercent: kv,
});

function makePool(config = {}) {
  const time = { now: 1000 };
  const pool = new EndpointPool(config, { clock: () => time.now });
  return { pool, time };
}

describe("membership", () => {
  test("iterates in order of insertion, also after a removal", () => {
    const { pool } = makePool();
    for (const id of ["a", "b", "c", "d"]) pool.add(id);
    expect(pool.remove("b")).toBe(true);
    expect(pool.remove("b")).toBe(false);
    pool.add("b");
    expect([...pool].map(({ id }) => id)).toEqual(["a", "c", "d", "b"]);
    expect([pool.size, pool.get("c")?.id, pool.get("x")]).toEqual([4, "c", undefined]);
  });

  test("a known id is an error, and so is one that is no text", () => {
    const { pool } = makePool();
    pool.add("a");
    expect(() => pool.add("a")).toThrow(EndpointError);
    expect(() => pool.add("")).toThrow(EndpointError);
    expect(() => pool.add(5 as never)).toThrow(EndpointError);
    expect(() => pool.report("z", sample(1))).toThrow(/no endpoint "z"/);
    expect(() => pool.beginReading("z")).toThrow(EndpointError);
    expect(pool.size).toBe(1);
  });

  test("an endpoint that is removed and added again starts clean", () => {
    const { pool } = makePool();
    pool.add("a");
    pool.report("a", sample(5));
    const late = pool.beginReading("a");
    pool.remove("a");
    pool.add("a");
    expect(late.report(sample(1))).toBe(false);
    expect(pool.evaluate()).toMatchObject({ fresh: 0, unusable: 1, saturation: 1 });
  });

  test("bad endpoint options are reported together and add nothing", () => {
    const { pool } = makePool();
    expect(() => pool.add("a", { weight: 0, headroom: -1, colour: 1 } as never)).toThrow(
      /headroom.*\n.*weight|weight.*\n.*headroom/,
    );
    expect(pool.size).toBe(0);
  });
});

describe("update", () => {
  test("changes thresholds and keeps the sample", () => {
    const { pool } = makePool();
    const endpoint = pool.add("a", { queueDepthThreshold: 10, labels: { gpu: "L4" } });
    pool.report("a", sample(4));
    expect(pool.saturation()).toBe(0.4);
    endpoint.update({ queueDepthThreshold: 4 });
    expect(pool.saturation()).toBe(1);
    expect(endpoint.labels).toEqual({ gpu: "L4" });
    endpoint.update({ queueDepthThreshold: undefined });
    expect(pool.saturation()).toBe(0.8);
  });

  test("a faulty patch changes nothing", () => {
    const { pool } = makePool();
    const endpoint = pool.add("a");
    pool.report("a", sample(4));
    for (const patch of [{ weight: Number.NaN }, { headroom: 0.5, weight: -1 }, { queue: 5 }]) {
      expect(() => endpoint.update(patch as never)).toThrow(ConfigError);
    }
    expect(endpoint).toMatchObject({ weight: 1, headroom: 0 });
    expect(pool.saturation()).toBe(0.8);
  });

  test("of a removed endpoint touches no other's row", () => {
    const { pool } = makePool();
    const gone = pool.add("a");
    pool.add("b");
    pool.report("b", sample(1));
    pool.remove("a");
    gone.update({ queueDepthThreshold: 1 });
    expect(pool.saturation()).toBe(0.2);
  });
});

describe("readings", () => {
  test("count from when they were begun", () => {
    const { pool, time } = makePool();
    pool.add("a");
    const reading = pool.beginReading("a");
    time.now += 150;
    expect(reading.report(sample(1))).toBe(true);
    expect(pool.snapshot().endpoints[0]?.ageMs).toBe(150);
    time.now += 51;
    expect(pool.evaluate().stale).toBe(1);
  });

  test("an older one never replaces a younger one", () => {
    const { pool, time } = makePool();
    pool.add("a");
    const slow = pool.beginReading("a");
    time.now += 10;
    pool.report("a", sample(2));
    expect(slow.report(sample(5))).toBe(false);
    expect(pool.report("a", { ...sample(5), updateTime: time.now - 1 })).toBe(false);
    expect(pool.saturation()).toBe(0.4);
  });

  test("after the clock was set back, new ones count again", () => {
    const { pool, time } = makePool();
    pool.add("a");
    pool.report("a", sample(2));
    time.now -= 900;
    expect(pool.evaluate().stale).toBe(1);
    expect(pool.report("a", sample(1))).toBe(true);
    expect(pool.saturation()).toBe(0.2);
  });

  test("one that stands for several engines has several times the queue threshold", () => {
    const { pool } = makePool();
    pool.add("a");
    pool.report("a", { ...sample(10, 0), engines: 4, worstEngineQueueSize: 7 });
    expect(pool.saturation()).toBe(10 / 20);
    expect(pool.snapshot().endpoints[0]).toMatchObject({ queueLimit: 20, worstEngineQueueSize: 7 });
    pool.report("a", { ...sample(10, 0), engines: Number.NaN });
    expect(pool.saturation()).toBe(2);
  });

  test("optional fields out of range are unknown, not a lost reading", () => {
    const { pool } = makePool();
    pool.add("a");
    const odd = { runningRequests: -1, kvCapacityTokens: Number.NaN, engines: -3 };
    expect(pool.report("a", { ...sample(1), ...odd })).toBe(true);
    expect(pool.snapshot().endpoints[0]).toMatchObject({
      runningRequests: null,
      kvCapacityTokens: null,
      engines: 1,
    });
  });

  test("a time that is not finite is refused", () => {
    const { pool } = makePool();
    pool.add("a");
    expect(pool.report("a", { ...sample(1), updateTime: Number.NaN })).toBe(false);
    expect(pool.snapshot().endpoints[0]?.lastFault).toContain("updateTime");
  });
});

describe("decisions", () => {
  test("candidates is one array until the pool changes, and everybody when none passes", () => {
    const { pool } = makePool();
    pool.add("a");
    pool.add("b");
    pool.report("a", sample(9));
    pool.report("b", sample(1));
    const first = pool.candidates();
    expect(first.map(({ id }) => id)).toEqual(["b"]);
    expect(pool.candidates()).toBe(first);
    pool.report("b", sample(9));
    expect(pool.candidates().map(({ id }) => id)).toEqual(["a", "b"]);
    expect(pool.evaluate().failedOpen).toBe(true);
  });

  test("the pool stays whole when a caller changes the array, or removes while it iterates", () => {
    const { pool } = makePool();
    for (const id of ["a", "b", "c", "d"]) {
      pool.add(id);
      pool.report(id, sample(9));
    }
    (pool.candidates() as unknown[]).reverse();
    pool.report("c", sample(1));
    expect(pool.candidates().map(({ id }) => id)).toEqual(["c"]);
    for (const { id } of pool) pool.remove(id);
    expect(pool.size).toBe(0);
  });

  test("an S or an age beyond any duration is refused, or printed all the same", () => {
    expect(() => new EndpointPool({ metricsStalenessThreshold: 1e15 })).toThrow(ConfigError);
    const { pool, time } = makePool();
    pool.add("a");
    pool.report("a", sample(1));
    for (const age of [1e12, 1e13, 1e14, 1e300]) {
      time.now = 1000 + age;
      expect(pool.snapshot().endpoints[0]?.state).toBe("stale");
    }
  });

  test("agree bit for bit with the detector over the same data", () => {
    const { pool, time } = makePool({ aggregation: "weighted" });
    const detector = new UtilizationDetector<{ weight: number; metrics: never }>(
      { aggregation: "weighted" },
      { clock: () => time.now, thresholdsOf: ({ weight }) => ({ weight }) },
    );
    const objects = Array.from({ length: 133 }, (_, i) => {
      const metrics = { ...sample((i * 7) % 11, ((i * 13) % 100) / 97), updateTime: 1000 - i * 3 };
      pool.add(`e${i}`, { weight: 1 + i / 7 });
      pool.report(`e${i}`, metrics);
      return { weight: 1 + i / 7, metrics: metrics as never };
    });
    const [ours, theirs] = [pool.evaluate(), detector.evaluate(objects)];
    expect(ours.candidates.map(({ id }) => id)).toEqual(
      theirs.candidates.map((object) => `e${objects.indexOf(object)}`),
    );
    expect({ ...ours, candidates: [] }).toEqual({ ...theirs, candidates: [] });
  });

  test("setDefaultStaleness gives way to a configured S", () => {
    const { pool, time } = makePool();
    pool.add("a");
    pool.report("a", sample(1));
    expect(pool.setDefaultStaleness(3000)).toBe(3000);
    time.now += 2500;
    expect(pool.evaluate().fresh).toBe(1);
    expect(Object.isFrozen(pool.config)).toBe(true);
    const strict = new EndpointPool({ metricsStalenessThreshold: "1s" });
    expect(strict.setDefaultStaleness(3000)).toBe(1000);
  });

  test("a snapshot says of each endpoint why it is or is not a candidate", () => {
    const { pool, time } = makePool();
    for (const id of ["ok", "queue", "kv", "stale", "future", "new"]) pool.add(id);
    pool.report("stale", sample(1));
    time.now += 5000;
    pool.report("ok", sample(1));
    pool.report("queue", sample(7));
    pool.report("kv", sample(0, 0.95));
    pool.report("future", { ...sample(1), updateTime: time.now + 300 });
    const { endpoints, candidates } = pool.snapshot();
    expect(candidates).toBe(1);
    expect(endpoints.map(({ state }) => state)).toEqual([
      "ok",
      "queue-full",
      "kv-full",
      "stale",
      "future",
      "unusable",
    ]);
    expect(endpoints.map(({ reason }) => reason)).toEqual([
      "ok",
      "queue 7 >= 5",
      "KV 0.95 >= 0.8",
      "read 5s ago > 200ms",
      "reading 300ms in the future",
      "no reading yet",
    ]);
    expect(JSON.parse(JSON.stringify(pool.snapshot()))).toEqual(pool.snapshot());
  });
});

describe("subscribe", () => {
  test("many changes in one turn are one call; after unsubscribing there is none", async () => {
    const { pool } = makePool();
    const listener = vi.fn();
    const stop = pool.subscribe(listener);
    pool.add("a");
    pool.report("a", sample(1));
    expect(listener).not.toHaveBeenCalled();
    await new Promise(setImmediate);
    expect(listener).toHaveBeenCalledTimes(1);
    stop();
    stop();
    pool.report("a", sample(2));
    await new Promise(setImmediate);
    expect(listener).toHaveBeenCalledTimes(1);
  });

  test("an answer from the cache, an unusable and an old report are no change", async () => {
    const { pool } = makePool();
    pool.add("a");
    const old = pool.beginReading("a");
    pool.report("a", { ...sample(1), updateTime: 1001 });
    await new Promise(setImmediate);
    const listener = vi.fn();
    pool.subscribe(listener);
    pool.evaluate();
    pool.report("a", undefined);
    old.report(sample(1));
    await new Promise(setImmediate);
    expect(listener).toHaveBeenCalledTimes(1); // 1001 is ahead of the clock, so `old` counted
  });
});
