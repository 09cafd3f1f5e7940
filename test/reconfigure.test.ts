// pool.reconfigure: other options for a pool that is at work.

import { describe, expect, test } from "vitest";
import { ConfigError, EndpointPool } from "../src/index";

function poolAt(now: { value: number }): EndpointPool {
  const pool = new EndpointPool({ queueDepthThreshold: 5 }, { clock: () => now.value });
  pool.add("a");
  pool.add("b", { queueDepthThreshold: 10 });
  for (const id of ["a", "b"]) pool.report(id, { waitingQueueSize: 5, kvCacheUsagePercent: 0.1 });
  return pool;
}

describe("reconfigure", () => {
  test("scores all endpoints by the new thresholds, but for those that have their own", () => {
    const pool = poolAt({ value: 0 });
    expect(pool.saturation()).toBe(0.75);
    pool.reconfigure({ queueDepthThreshold: 20 });
    expect(pool.saturation()).toBe((0.25 + 0.5) / 2);
    expect(pool.config.queueDepthThreshold).toBe(20);
  });

  test("keeps leases and samples", () => {
    const pool = poolAt({ value: 0 });
    const lease = pool.acquire("a");
    pool.reconfigure({ aggregation: "max" });
    expect(pool.get("a")?.leases).toBe(1);
    lease.release();
    expect(pool.get("a")?.leases).toBe(0);
    expect(pool.evaluate()).toMatchObject({ fresh: 2, saturation: 1 });
  });

  test("applies another staleness threshold at once", () => {
    const now = { value: 0 };
    const pool = poolAt(now);
    now.value = 300;
    expect(pool.evaluate().fresh).toBe(0);
    pool.reconfigure({ metricsStalenessThreshold: "1s" });
    expect(pool.evaluate().fresh).toBe(2);
  });

  test("keeps the default that a scraper has set, until S is given", () => {
    const pool = poolAt({ value: 0 });
    pool.setDefaultStaleness(3000);
    pool.reconfigure({ headroom: 0.5 });
    expect(pool.config.metricsStalenessThreshold).toBe(3000);
    pool.reconfigure({ metricsStalenessThreshold: 500 });
    expect(pool.setDefaultStaleness(9000)).toBe(500);
    pool.reconfigure({});
    expect(pool.config.metricsStalenessThreshold).toBe(200);
  });

  test("changes nothing when an option is wrong", () => {
    const pool = poolAt({ value: 0 });
    const before = pool.config;
    expect(() => pool.reconfigure({ headroom: -1, queueDepthThreshold: 9 })).toThrow(ConfigError);
    expect(pool.config).toBe(before);
  });
});
