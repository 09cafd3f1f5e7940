// Whole runs: nothing is lost, faults do what they say, and the same seed gives the same bytes.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../../src/errors";
import { POLICY_NAMES } from "../../src/sim/policy-names";
import { reportCsv, reportTable } from "../../src/sim/report-text";
import type { ArrivalSpec, Scenario } from "../../src/sim/scenario";
import { SCENARIO_NAMES, SCENARIOS } from "../../src/sim/scenarios";
import { type Progress, simulate } from "../../src/sim/simulate";
import { runOnce } from "./run-once";

const H100 = "llama-3.1-8b/H100/tp1";
const BASE: Scenario = {
  duration: "10s",
  endpoints: [{ preset: H100, count: 4 }],
  traffic: [
    {
      arrival: { process: "poisson", rate: "50%" },
      prompt: { mean: 300, cv: 1, max: 4000 },
      output: { mean: 100, cv: 1, max: 800 },
    },
  ],
};

describe("every policy over every built-in scenario", () => {
  // A third of the time, with the faults at a third of theirs.
  const shorter = (name: string): Scenario => {
    const scenario = SCENARIOS[name] as Scenario; // a name of the list
    const third = (time: unknown) => `${Number.parseFloat(String(time)) / 3}s`;
    const faults = scenario.faults?.map((fault) => ({
      ...fault,
      at: third(fault.at),
      ...(fault.for === undefined ? {} : { for: third(fault.for) }),
    }));
    return {
      ...scenario,
      duration: third(scenario.duration),
      timeout: "20s",
      ...(faults && { faults }),
    };
  };
  const cases = SCENARIO_NAMES.flatMap((name) =>
    POLICY_NAMES.map((policy) => [name, policy] as const),
  );

  test.each(cases)(
    "%s, %s: ends with nothing in flight, and every request is accounted for",
    (name, policy) => {
      const scenario = { ...shorter(name), policy };
      for (const routers of [1, 3]) {
        const report = runOnce({ ...scenario, routers });
        expect(report.arrived).toBeGreaterThan(100);
        expect(report.completed).toBeGreaterThan(0.5 * report.arrived);
        const sent = report.endpoints.reduce((sum, endpoint) => sum + endpoint.sent, 0);
        const neverSent = report.rejected + report.timedOut;
        expect(sent - report.retries).toBeGreaterThanOrEqual(report.arrived - neverSent);
        const tenants = report.tenants.map(({ arrived }) => arrived);
        expect(tenants.reduce((sum, one) => sum + one, 0)).toBe(report.arrived);
      }
    },
  );
});

test("whatever a scenario asks for, arrived = completed + queued + running + rejected + timed out", () => {
  const arrival: fc.Arbitrary<ArrivalSpec> = fc.oneof(
    fc.record({ process: fc.constant("poisson" as const), rate: fc.integer({ min: 1, max: 200 }) }),
    fc.record({
      process: fc.constant("bursts" as const),
      size: fc.integer({ min: 1, max: 90 }),
      every: fc.constantFrom("300ms", "1s"),
    }),
    fc.record({
      process: fc.constant("gamma" as const),
      rate: fc.integer({ min: 1, max: 100 }),
      cv: fc.constant(4),
    }),
  );
  const fault = fc.record({
    kind: fc.constantFrom(
      "dies" as const,
      "hangs" as const,
      "slow" as const,
      "scrape-outage" as const,
    ),
    at: fc.integer({ min: 0, max: 2500 }),
    for: fc.integer({ min: 1, max: 2000 }),
    endpoints: fc.constantFrom([0], [1], [0, 1]),
  });
  const scenario = fc.record({
    duration: fc.constant("3s"),
    endpoints: fc.constant([{ preset: H100, kvBlocks: 400, count: 2 }]),
    traffic: fc.tuple(
      fc.record({
        arrival,
        prompt: fc.constant({ mean: 300, cv: 1, max: 3000 }),
        output: fc.constant({ mean: 60, cv: 1, max: 300 }),
        streaming: fc.boolean(),
      }),
    ),
    routers: fc.integer({ min: 1, max: 4 }),
    policy: fc.constantFrom(...POLICY_NAMES),
    scrape: fc.record({
      interval: fc.constantFrom("20ms", "500ms"),
      loss: fc.constantFrom(0, 0.5),
    }),
    inBand: fc.boolean(),
    flow: fc.constantFrom(true, false, { ttl: "500ms", maxRequests: 5 }, { mode: "shed" as const }),
    timeout: fc.constantFrom("800ms", "60s"),
    retries: fc.integer({ min: 0, max: 2 }),
    faults: fc.array(fault, { maxLength: 3 }),
  });
  // runOnce checks the sum, and that no lease is left.
  fc.assert(
    fc.property(scenario, fc.integer({ min: 0, max: 9 }), (one, seed) => void runOnce(one, seed)),
    { numRuns: 150 },
  );
});

describe("one seed", () => {
  test("gives the same bytes, and another seed others", async () => {
    const text = async (seed: number) => JSON.stringify(await simulate(BASE, { seed }));
    expect(await text(5)).toBe(await text(5));
    expect(await text(5)).not.toBe(await text(6));
  });

  test("gives every policy the same traffic", () => {
    const arrivals = POLICY_NAMES.map((policy) =>
      runOnce({ ...BASE, policy }, 3).series.arrived.slice(0, 200),
    );
    for (const one of arrivals) expect(one).toEqual(arrivals[0]);
  });
});

describe("simulate", () => {
  test("tells how far it is, up to the end", async () => {
    const seen: Progress[] = [];
    const report = await simulate(
      { ...BASE, duration: "120s" },
      { onProgress: (progress) => seen.push(progress) },
    );
    expect(seen.length).toBeGreaterThan(2);
    expect(seen.at(-1)).toMatchObject({ share: 1, completed: report.completed });
    expect(seen.map(({ share }) => share)).toEqual(
      [...seen.map(({ share }) => share)].sort((a, b) => a - b),
    );
  });

  test("ends when it is aborted, with the signal's reason", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const onProgress = () => controller.abort(reason);
    await expect(
      simulate({ ...BASE, duration: "1h" }, { signal: controller.signal, onProgress }),
    ).rejects.toBe(reason);
  });

  test("does not begin when it was aborted before", async () => {
    await expect(simulate(BASE, { signal: AbortSignal.abort(new Error("no")) })).rejects.toThrow(
      "no",
    );
  });

  test("refuses a bad scenario and a bad seed", async () => {
    await expect(simulate({ ...BASE, routers: 0 })).rejects.toThrow(ConfigError);
    await expect(simulate(BASE, { seed: 0.5 })).rejects.toThrow("seed: must be an integer");
  });
});

describe("the router side", () => {
  const lone: Scenario = {
    ...BASE,
    endpoints: [{ a: 10, d: 0, kvBlocks: 1000, ttftConst: 6 }],
    traffic: [{ arrival: { process: "constant", rate: 1 }, prompt: 10, output: 3 }],
    duration: "3s",
    network: "2ms",
  };

  test("time to first token is wires, constant and one step; the rest is one step per token", () => {
    const { ttftMs, tpotMs, e2eMs } = runOnce(lone);
    expect(ttftMs).toMatchObject({ count: 3, p50: 2 * 2 + 6 + 10 });
    expect(tpotMs.mean).toBe(10);
    expect(e2eMs.max).toBe(2 * 2 + 6 + 30);
  });

  test("a slow engine is slow for as long as it was told", () => {
    const report = runOnce({
      ...lone,
      faults: [{ kind: "slow", at: "900ms", for: "500ms", factor: 5 }],
    });
    expect([report.ttftMs.p50, report.ttftMs.max]).toEqual([20, 60]);
  });

  test("faults that overlap end with the last of them", () => {
    const busyUntil = (faults: Scenario["faults"]) => {
      const { series } = runOnce({ ...BASE, faults });
      const running = series.endpoints[0]?.running ?? [];
      const idle = series.timesMs.filter(
        (time, i) => time > 1500 && time < 9000 && running[i] === 0,
      );
      return [Math.min(...idle), Math.max(...idle)].map((time) => Math.round(time / 1000));
    };
    const dies = (at: string, time: string) => ({
      kind: "dies" as const,
      at,
      for: time,
      endpoints: [0],
    });
    expect(busyUntil([dies("2s", "2s"), dies("3s", "4s")])).toEqual([2, 7]);
    const slow = (at: string, time: string) => ({
      kind: "slow" as const,
      at,
      for: time,
      factor: 3,
    });
    const { ttftMs } = runOnce({ ...lone, faults: [slow("500ms", "1s"), slow("800ms", "5s")] });
    expect([ttftMs.p50, ttftMs.max]).toEqual([10 + 3 * 10, 10 + 9 * 10]);
  });

  test("a request that no engine can ever hold has failed, not found nobody", () => {
    const report = runOnce({ ...BASE, endpoints: [{ preset: H100, kvBlocks: 1 }] });
    expect(Object.keys(report.rejections)).toEqual(["endpoint-failed"]);
  });

  test("a dying engine loses what has begun, and the rest is tried elsewhere", () => {
    const report = runOnce({ ...BASE, faults: [{ kind: "dies", at: "5s", endpoints: [0] }] });
    expect(report.rejections["endpoint-failed"]).toBeGreaterThan(0);
    expect(report.retries).toBeGreaterThan(0);
    expect(report.completed + report.rejected).toBe(report.arrived);
    const without = runOnce({
      ...BASE,
      retries: 0,
      faults: [{ kind: "dies", at: "5s", endpoints: [0] }],
    });
    expect(without.rejected).toBeGreaterThan(report.rejected);
    expect(without.retries).toBe(0);
  });

  test("a hung engine holds its requests until their clients give up", () => {
    const report = runOnce({
      ...BASE,
      timeout: "3s",
      faults: [{ kind: "hangs", at: "5s", endpoints: [0] }],
    });
    expect(report.timedOut).toBeGreaterThan(0);
    expect(report.ttftMs.max ?? 0).toBeGreaterThanOrEqual(3000);
  });

  test("the pool stops sending to an engine whose readings fail, once they are stale", () => {
    const report = runOnce({
      ...BASE,
      faults: [{ kind: "scrape-outage", at: "2s", endpoints: [0] }],
    });
    const sent = report.series.endpoints[0]?.sent ?? [];
    const from = (ms: number) => Math.ceil(ms / report.series.stepMs);
    expect(sent.slice(from(3000)).reduce((sum, one) => sum + one, 0)).toBe(0);
    expect(sent.slice(0, from(2000)).reduce((sum, one) => sum + one, 0)).toBeGreaterThan(0);
  });

  test("in-band samples are as good as scraping often", () => {
    const rare = { ...BASE, policy: "original" as const, scrape: { interval: "5s" } };
    const p99 = (inBand: boolean) => runOnce({ ...rare, inBand }).ttftMs.p99 ?? 0;
    expect(p99(true)).toBeLessThan(p99(false) / 2);
  });

  test("the flow controller refuses what finds no room, and says why", () => {
    const traffic = [
      { arrival: { process: "bursts" as const, size: 400, every: "2s" }, prompt: 2000, output: 50 },
    ];
    const report = runOnce({ ...BASE, traffic, flow: { bands: [{ maxRequests: 20 }] } });
    expect(report.rejections.saturated).toBeGreaterThan(100);
    const shortLived = runOnce({ ...BASE, traffic, flow: { ttl: "200ms" } });
    expect(shortLived.rejections["ttl-expired"]).toBeGreaterThan(100);
  });

  test("a higher band does not wait for a lower one", () => {
    const { tenants } = runOnce(SCENARIOS["two-tenants"] as Scenario);
    const [chat, batch] = tenants;
    expect((batch?.ttftMs.p99 ?? 0) / (chat?.ttftMs.p99 ?? 1)).toBeGreaterThan(2);
    const free = runOnce({ ...(SCENARIOS["two-tenants"] as Scenario), flow: false });
    expect((free.tenants[0]?.ttftMs.p99 ?? 0) / (chat?.ttftMs.p99 ?? 1)).toBeGreaterThan(2);
  });

  test("prompts that share a beginning cost less", () => {
    const traffic = [
      { ...BASE.traffic[0], prompt: 2000, sharedPrefix: { tokens: 1600, variants: 2 } },
    ];
    const shared = runOnce({ ...BASE, traffic } as Scenario);
    const cold = runOnce({
      ...BASE,
      traffic,
      endpoints: [{ preset: H100, count: 4, prefixCache: false }],
    } as Scenario);
    expect(shared.endpoints.reduce((sum, one) => sum + one.cachedTokens, 0)).toBeGreaterThan(
      0.5 * 1600 * shared.arrived,
    );
    expect(shared.ttftMs.mean ?? 0).toBeLessThan(0.7 * (cold.ttftMs.mean ?? 0));
  });
});

describe("the report", () => {
  test("counts the herd: the most requests to one endpoint within one scrape interval", () => {
    // The first burst is shared at random; the second goes to where the first left the least.
    const burst: Scenario = {
      ...BASE,
      duration: "11s",
      traffic: [{ arrival: { process: "bursts", size: 40, every: "5s" }, prompt: 10, output: 900 }],
      scrape: { interval: "1s" },
    };
    const herd = { size: 40, fairSize: 10, atMs: 10_000 };
    expect(runOnce({ ...burst, policy: "original" }).herd).toMatchObject(herd);
    expect(runOnce({ ...burst, policy: "round-robin" }).herd.size).toBe(10);
  });

  test("percentiles are the nearest rank, and everything is in order", () => {
    const { ttftMs } = runOnce(BASE);
    const { mean, p50, p90, p99, max } = ttftMs;
    expect([p50, p90, p99, max]).toEqual([p50, p90, p99, max].sort((a, b) => (a ?? 0) - (b ?? 0)));
    expect(mean).toBeGreaterThan(0);
  });

  test("nothing observed is null, not 0", () => {
    const report = runOnce({ ...BASE, retries: 0, faults: [{ kind: "dies", at: 0 }] });
    expect(report).toMatchObject({ completed: 0, rejected: report.arrived, goodput: 0 });
    expect(report.tpotMs).toEqual({
      count: 0,
      mean: null,
      p50: null,
      p90: null,
      p99: null,
      max: null,
    });
    expect(reportTable([report])).toContain("endpoint-failed");
  });

  test("goodput is the share that was completed within the SLO", () => {
    expect(runOnce({ ...BASE, slo: { ttft: "1ms" } }).goodput).toBe(0);
    expect(runOnce({ ...BASE, slo: { ttft: "60s", tpot: "60s" } }).goodput).toBe(1);
  });

  test("as CSV has a line per step and as many cells in each", () => {
    const report = runOnce(BASE);
    const lines = reportCsv(report).trimEnd().split("\n");
    expect(lines).toHaveLength(report.series.timesMs.length + 1);
    const cells = lines.map((line) => line.split(",").length);
    expect(new Set(cells)).toEqual(new Set([9 + 5 * 4]));
  });

  test("as a table has a column per run", () => {
    const reports = [runOnce(BASE), runOnce({ ...BASE, policy: "random" })];
    const [header, ...rows] = reportTable(reports).split("\n");
    expect(header?.trim().split(/\s{2,}/)).toEqual(["plimsoll", "random"]);
    expect(rows.find((row) => row.startsWith("completed"))).toMatch(/\d+\s+\d+$/);
  });
});
