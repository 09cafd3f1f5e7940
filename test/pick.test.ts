// pick and lease: where a request goes.

import { describe, expect, test } from "vitest";
import { seededRandom } from "../bench/lib";
import { ConfigError, type DetectorConfig, EndpointPool, type PoolOptions } from "../src/index";

const sample = (waiting: number, kv = 0, running = 0) => ({
  waitingQueueSize: waiting,
  kvCacheUsagePercent: kv,
  runningRequests: running,
  kvCapacityTokens: 400_000,
});

function makePool(n: number, config: DetectorConfig = {}, options: PoolOptions = {}) {
  const time = { now: 1000 };
  const pool = new EndpointPool(config, {
    clock: () => time.now,
    random: seededRandom(3),
    ...options,
  });
  const ids = Array.from({ length: n }, (_, i) => `e${i}`);
  for (const id of ids) {
    pool.add(id);
    pool.report(id, sample(0));
  }
  return { pool, ids, time };
}

const leasesOf = (pool: EndpointPool) => [...pool].map(({ leases }) => leases);

describe("a burst inside one scrape window", () => {
  test("of 1,000 equal requests over 8 equal endpoints is spread within one", () => {
    const { pool, time } = makePool(8);
    for (let i = 0; i < 1000; i++) {
      time.now += 0.05;
      pool.lease({ tokens: 300 });
      const counts = leasesOf(pool);
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    }
  });

  test("sends nobody more than its limit while another has room", () => {
    const { pool } = makePool(8, {}, { filter: "limits" });
    const random = seededRandom(4);
    for (let i = 0; i < 40; i++) {
      expect(pool.pick({ tokens: Math.floor(random() * 4000) })?.failedOpen).toBe(false);
      pool.lease({ tokens: Math.floor(random() * 4000) });
    }
    expect(leasesOf(pool)).toEqual(Array(8).fill(5));
    expect(pool.pick()?.failedOpen).toBe(true);
  });

  test("a pick over the queue limit says so", () => {
    const { pool } = makePool(1);
    for (let i = 0; i < 5; i++) {
      expect(pool.pick()?.reason).toBe("least-rank");
      pool.lease();
    }
    expect(pool.pick()).toMatchObject({ reason: "over-queue-limit", failedOpen: false });
  });
});

describe("rank", () => {
  test("the request's own size counts before it is placed", () => {
    const { pool } = makePool(2);
    expect(pool.pick({ tokens: 512 })?.rank).toBe(2);
    expect(pool.pick({ tokens: 0 })?.rank).toBe(1);
  });

  test("ties are broken at random, never by order", () => {
    const { pool } = makePool(10);
    const counts = new Map<string, number>();
    for (let i = 0; i < 10_000; i++) {
      const id = pool.pick()?.endpoint.id ?? "";
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(150);
    expect(counts.size).toBe(10);
  });

  test("one hot endpoint among nine idle is skipped, and the gate stays open", () => {
    const { pool } = makePool(10);
    pool.report("e3", sample(2826, 0.28, 162));
    expect(pool.saturation("capped")).toBeLessThan(1);
    for (let i = 0; i < 900; i++) expect(pool.lease({ tokens: 50 })?.endpoint.id).not.toBe("e3");
  });

  test("one stale endpoint among nine idle is skipped", () => {
    const { pool, ids, time } = makePool(10);
    time.now += 500;
    for (const id of ids.slice(1)) pool.report(id, sample(0));
    for (let i = 0; i < 100; i++) expect(pool.lease()?.endpoint.id).not.toBe("e0");
  });

  test("one of two routers sees the other's load", () => {
    const { pool, time } = makePool(2);
    time.now += 10;
    pool.report("e0", sample(0, 0, 64)); // sent by the other router
    pool.report("e1", sample(0));
    for (let i = 0; i < 30; i++) expect(pool.lease({ tokens: 10 })?.endpoint.id).toBe("e1");
  });

  test("16 routers with the same samples do not choose the same endpoint", () => {
    const chosen = new Set<string>();
    for (let router = 0; router < 16; router++) {
      const { pool, ids } = makePool(8, {}, { random: seededRandom(router) });
      for (const id of ids) pool.report(id, sample(1, 0.1, 20));
      chosen.add(pool.lease({ tokens: 100 })?.endpoint.id ?? "");
    }
    expect(chosen.size).toBeGreaterThanOrEqual(5);
  });

  test("an endpoint that is slow for this router is ranked behind by as much", () => {
    const { pool, time, ids } = makePool(4);
    for (let i = 0; i < 400; i++) {
      const lease = pool.acquire(ids[i % 4] ?? "", { tokens: 0 });
      time.now += lease.endpoint.id === "e3" ? 300 : 100;
      lease.started();
      lease.release();
    }
    for (const id of ids) pool.report(id, sample(0));
    const slow = pool.snapshot().endpoints.map((endpoint) => endpoint.slow);
    expect(slow.slice(0, 3)).toEqual([1, 1, 1]);
    expect(slow[3]).toBeCloseTo(3, 1);
    for (let i = 0; i < 100; i++) expect(pool.pick({ tokens: 0 })?.endpoint.id).not.toBe("e3");
  });

  test("a pace within 20 % of the median is the median", () => {
    const { pool, time, ids } = makePool(4);
    for (let i = 0; i < 400; i++) {
      const lease = pool.acquire(ids[i % 4] ?? "", { tokens: 0 });
      time.now += 100 + (i % 4) * 5;
      lease.started();
      lease.release();
    }
    expect(pool.snapshot().endpoints.every(({ slow }) => slow === 1)).toBe(true);
  });
});

describe("what a request may ask for", () => {
  test("prefer wins while it is a candidate, and never when it is full", () => {
    const { pool } = makePool(4);
    for (let i = 0; i < 3; i++) pool.acquire("e2", { tokens: 9000 });
    expect(pool.pick({ prefer: "e2" })).toMatchObject({
      endpoint: { id: "e2" },
      reason: "preferred",
    });
    pool.report("e2", sample(7));
    expect(pool.pick({ prefer: "e2" })?.endpoint.id).not.toBe("e2");
    pool.report("e2", sample(0, 0.9));
    expect(pool.pick({ prefer: "e2" })?.endpoint.id).not.toBe("e2");
    expect(pool.pick({ prefer: "nobody" })?.reason).toBe("least-rank");
  });

  test("exclude and among, as sets or lists, hold for prefer too", () => {
    const { pool } = makePool(4);
    for (const exclude of [["e0", "e1"], new Set(["e0", "e1"])]) {
      for (let i = 0; i < 50; i++) {
        expect(["e2", "e3"]).toContain(pool.pick({ exclude })?.endpoint.id);
      }
      expect(pool.pick({ exclude, prefer: "e0" })?.endpoint.id).not.toBe("e0");
    }
    expect(pool.pick({ among: ["e3"] })?.endpoint.id).toBe("e3");
    expect(pool.pick({ among: new Set(["e3"]), prefer: "e1" })?.endpoint.id).toBe("e3");
    expect(pool.pick({ among: ["e3"], exclude: ["e3"] })).toBeUndefined();
    expect(pool.lease({ among: [] })).toBeUndefined();
    expect(new EndpointPool().lease()).toBeUndefined();
  });

  test("among keeps to its endpoints when it fails open", () => {
    const { pool } = makePool(3);
    pool.report("e1", sample(0, 0.95, 3));
    expect(pool.pick({ among: ["e1"] })).toMatchObject({
      endpoint: { id: "e1" },
      failedOpen: true,
    });
  });

  test("a score of the caller's own decides among those that pass", () => {
    const { pool } = makePool(4);
    pool.report("e3", sample(0, 0.95, 3));
    const byId = { e0: 3, e1: -2, e2: Number.NaN, e3: -9 } as Record<string, number>;
    expect(pool.pick({ score: ({ id }) => byId[id] ?? 0 })?.endpoint.id).toBe("e1");
    expect(
      pool.pick({ score: ({ id }, rank) => (id === "e0" ? rank - 1 : rank) })?.endpoint.id,
    ).toBe("e0");
    const tied = new Set<string>();
    for (let i = 0; i < 50; i++) tied.add(pool.pick({ score: () => -5 })?.endpoint.id ?? "");
    expect(tied.size).toBe(3);
  });

  test("the filter says what must pass", () => {
    const loads: [string, ReturnType<typeof sample>][] = [
      ["e0", sample(9)],
      ["e1", sample(0, 0.9, 3)],
    ];
    const pickWith = (filter: "limits" | "kv" | "none", ids: string[]) => {
      const { pool } = makePool(2, {}, { filter });
      for (const [id, load] of loads) pool.report(id, load);
      return pool.pick({ among: ids });
    };
    expect(pickWith("limits", ["e0"])?.failedOpen).toBe(true);
    expect(pickWith("kv", ["e0"])).toMatchObject({ failedOpen: false, reason: "over-queue-limit" });
    expect(pickWith("kv", ["e1"])?.failedOpen).toBe(true);
    expect(pickWith("none", ["e1"])?.failedOpen).toBe(false);
    expect(() => makePool(1, {}, { filter: "all" as never })).toThrow(ConfigError);
    expect(() => makePool(1, {}, { projection: "on" as never, capacity: 0 })).toThrow(
      /capacity.*\n.*projection/,
    );
  });

  test("the least bad is a fresh one before a stale one", () => {
    const { pool, time } = makePool(2);
    time.now += 500;
    pool.report("e1", sample(0, 0.99, 9));
    for (let i = 0; i < 20; i++) {
      expect(pool.pick()).toMatchObject({ endpoint: { id: "e1" }, reason: "failed-open" });
    }
  });
});
