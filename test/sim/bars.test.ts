// What the pool is worth: against an oracle that sees every engine as it is and all that is sent, and
// against what it replaces. p99 time to first token, means over seeds.

import { describe, expect, test } from "vitest";
import type { Report } from "../../src/sim/report";
import type { PolicyName, Scenario } from "../../src/sim/scenario";
import { SCENARIO_NAMES, SCENARIOS } from "../../src/sim/scenarios";
import { runOnce } from "./run-once";

const SEEDS = [1, 2, 3, 4, 5];

interface Measured {
  readonly p99: number;
  /** Half the distance between the best seed and the worst. */
  readonly spread: number;
  readonly requestsPerS: number;
}

function measure(scenario: Scenario, policy: PolicyName): Measured {
  const reports: Report[] = SEEDS.map((seed) => runOnce({ ...scenario, policy }, seed));
  const values = reports.map(({ ttftMs }) => ttftMs.p99 ?? Number.NaN);
  const mean = (all: readonly number[]) => all.reduce((sum, one) => sum + one, 0) / all.length;
  return {
    p99: mean(values),
    spread: (Math.max(...values) - Math.min(...values)) / 2,
    requestsPerS: mean(reports.map(({ requestsPerS }) => requestsPerS)),
  };
}

const named = (name: string, routers: number, interval: string): Scenario => ({
  ...(SCENARIOS[name] as Scenario), // a name of the list
  routers,
  scrape: { interval },
});

describe.each(["50ms", "200ms", "1s", "5s"])("thundering-herd, scrape every %s", (interval) => {
  test.each([
    [1, 1.15],
    [4, 1.35],
    [16, 1.35],
  ])("with %d routers the pool is within %d times the oracle", (routers, limit) => {
    const scenario = named("thundering-herd", routers, interval);
    const pool = measure(scenario, "plimsoll");
    expect(pool.p99 / measure(scenario, "oracle").p99).toBeLessThan(limit);
  });

  test("the original's signal is at least 4 times worse with one router", () => {
    const scenario = named("thundering-herd", 1, interval);
    expect(measure(scenario, "original").p99 / measure(scenario, "plimsoll").p99).toBeGreaterThan(
      4,
    );
  });
});

test.each([
  [1, 1.5],
  [16, 2],
])("mixed-gpus with %d routers: the pool is within %d times the oracle", (routers, limit) => {
  const scenario = named("mixed-gpus", routers, "1s");
  const pool = measure(scenario, "plimsoll");
  expect(pool.p99 / measure(scenario, "oracle").p99).toBeLessThan(limit);
});

describe("over all built-in scenarios", () => {
  const results = SCENARIO_NAMES.map((name) => {
    const scenario = SCENARIOS[name] as Scenario; // a name of the list
    const of = (policy: PolicyName) => measure(scenario, policy);
    return {
      name,
      pool: of("plimsoll"),
      oracle: of("oracle"),
      random: of("random"),
      rounds: of("round-robin"),
      credit: of("credit"),
    };
  });

  test("the geometric mean of pool over oracle is within 1.3", () => {
    const logs = results.map(({ pool, oracle }) => Math.log(pool.p99 / oracle.p99));
    expect(Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length)).toBeLessThan(1.3);
  });

  test.each(results)(
    "$name: never worse than random choice or round robin by more than the spread over seeds",
    ({ pool, random, rounds }) => {
      for (const other of [random, rounds]) {
        expect(pool.p99).toBeLessThanOrEqual(other.p99 + Math.max(pool.spread, other.spread));
      }
    },
  );

  test.each(results)(
    "$name: throughput within 1 per cent of the best policy",
    ({ pool, oracle, random, rounds, credit }) => {
      const best = Math.max(
        ...[oracle, random, rounds, credit].map(({ requestsPerS }) => requestsPerS),
      );
      expect(pool.requestsPerS / best).toBeGreaterThan(0.99);
    },
  );
});
