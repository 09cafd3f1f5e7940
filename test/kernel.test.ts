// The kernel against an independent oracle, bit for bit, over every size around lanes and pages.

import { describe, expect, test } from "vitest";
import { seededRandom } from "../bench/lib";
import { DEFAULT_CONFIG, type ResolvedConfig, type StalenessPolicy } from "../src/config";
import { Kernel, RESULT, ROW } from "../src/kernel";
import { bits, isFresh, isScored, judge, type OracleRow, type OracleRules } from "./oracle";

const NOW = 1_000_000;
const SPECIAL = [
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  -1,
  -0,
  0,
  5e-324,
  Number.MAX_VALUE,
  1,
];
const POLICIES: StalenessPolicy[] = ["saturated", "ignore", "hold"];

function pick<T>(random: () => number, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T;
}

/** Mostly sane rows, with special values and times around every edge among them. */
function makeRow(random: () => number, special: number, rules: OracleRules): OracleRow {
  const odd = () => random() < special;
  const q = 1 + Math.floor(random() * 8);
  const k = pick(random, [0.5, 0.8, 1, 0.1]);
  const h = pick(random, [0, 0.2, 0.5]);
  const { staleness, holdFor } = rules;
  const ages = [0, staleness, staleness + 1e-9, staleness + holdFor, -staleness, -staleness - 1];
  return {
    waiting: odd() ? pick(random, SPECIAL) : Math.floor(random() * 12),
    kv: odd() ? pick(random, SPECIAL) : random() * 1.1,
    q,
    k,
    queueLimit: q * (1 + h),
    kvLimit: Math.min(1, k * (1 + h)),
    updateTime: odd()
      ? pick(random, [...SPECIAL, ...ages.map((age) => NOW - age)])
      : NOW - random() * staleness * 1.2,
    weight: odd() ? pick(random, [1e-300, 1e300, 1e308, 1]) : random() * 4 + 0.1,
  };
}

function write(kernel: Kernel, index: number, row: OracleRow): void {
  const { waiting, kv, q, k, queueLimit, kvLimit, updateTime, weight } = row;
  kernel.rows.set([waiting, kv, q, k, queueLimit, kvLimit, updateTime, weight], index * ROW);
}

function configOf(rules: OracleRules): ResolvedConfig {
  return {
    ...DEFAULT_CONFIG,
    metricsStalenessThreshold: rules.staleness,
    stalenessPolicy: rules.policy,
    holdFor: rules.holdFor,
  };
}

function expectSame(kernel: Kernel, rows: readonly OracleRow[], rules: OracleRules, now: number) {
  const expected = judge(rows, rules, now);
  const { result, candidates, effective } = kernel;
  for (const key of ["mean", "capped", "weighted", "max", "fresh", "stale", "unusable"] as const) {
    const got = result[RESULT[key]] ?? Number.NaN;
    if (bits(got) !== bits(expected[key])) {
      expect.fail(`${key} of ${rows.length}: ${got}, not ${expected[key]} (${rules.policy})`);
    }
  }
  expect(result[RESULT.candidates]).toBe(expected.candidates.length);
  expect([...candidates.slice(0, expected.candidates.length)]).toEqual(expected.candidates);
  expect([...effective.slice(0, rows.length)].map(bits)).toEqual(expected.scores.map(bits));
}

describe("kernel", () => {
  test.each(POLICIES)("answers like the oracle at every size 0 to 130 under %s", (policy) => {
    const random = seededRandom(7);
    const rules = { staleness: 200, policy, holdFor: 1000 };
    const kernel = new Kernel(1);
    for (const special of [0, 0.05, 0.6]) {
      for (let n = 0; n <= 130; n++) {
        kernel.reserve(n);
        kernel.configure(configOf(rules));
        const rows = Array.from({ length: n }, () => makeRow(random, special, rules));
        rows.forEach((row, i) => {
          write(kernel, i, row);
        });
        kernel.evaluate(n, NOW);
        expectSame(kernel, rows, rules, NOW);
        const whole = [...kernel.result];
        kernel.reduce(n, NOW);
        expect([...kernel.result].map(bits)).toEqual(whole.map(bits));
      }
    }
  });

  test("keeps its rows across growth over many pages, one endpoint at a time", () => {
    const random = seededRandom(8);
    const rules = { staleness: 200, policy: "saturated" as const, holdFor: 0 };
    const kernel = new Kernel(1);
    kernel.configure(configOf(rules));
    const rows: OracleRow[] = [];
    let growths = 0;
    for (let n = 1; n <= 5000; n++) {
      if (kernel.reserve(n)) {
        growths++;
        kernel.score(0, n - 1);
      }
      const row = makeRow(random, 0.02, rules);
      rows.push(row);
      write(kernel, n - 1, row);
      kernel.score(n - 1, n);
      if (n % 997 !== 0 && n !== 5000) continue;
      kernel.select(n, NOW, 0);
      kernel.settle(n, NOW);
      expectSame(kernel, rows, rules, NOW);
    }
    expect(growths).toBeGreaterThan(5);
    expect(kernel.rows.buffer.byteLength).toBeGreaterThan(4 * 65_536);
  });

  test("reports a growth that cannot be, and stays as it was", () => {
    const kernel = new Kernel(4);
    const before = kernel.capacity;
    expect(() => kernel.reserve(2 ** 24 + 1)).toThrow(/no memory for 16777217 endpoints/);
    expect(kernel.capacity).toBe(before);
  });

  test.each(POLICIES)(
    "validUntil is the next instant at which time changes anything (%s)",
    (policy) => {
      const random = seededRandom(9);
      for (let round = 0; round < 300; round++) {
        const rules = { staleness: pick(random, [200, 0.3, 1000 / 3]), policy, holdFor: 500 };
        const n = 1 + Math.floor(random() * 9);
        const rows = Array.from({ length: n }, () => makeRow(random, 0.15, rules));
        const kernel = new Kernel(n);
        kernel.configure(configOf(rules));
        rows.forEach((row, i) => {
          write(kernel, i, row);
        });
        kernel.evaluate(n, NOW);
        const until = kernel.result[RESULT.validUntil] ?? Number.NaN;
        const before = judge(rows, rules, NOW);
        if (until === Number.POSITIVE_INFINITY) {
          expect(judge(rows, rules, NOW + 1e9)).toEqual(before);
          continue;
        }
        expect(until).toBeGreaterThanOrEqual(NOW - 1e-9);
        for (const share of [0.01, 0.5, 0.999_999]) {
          const now = NOW + (until - NOW) * share;
          if (now < until) expect(judge(rows, rules, now)).toEqual(before);
        }
        const last = previous(until);
        if (last >= NOW) expect(judge(rows, rules, last)).toEqual(before);
        const after = until + 1e-6 * Math.max(1, until / 1e6);
        expect(classes(rows, rules, after)).not.toEqual(classes(rows, rules, NOW));
      }
    },
  );
});

/** What each endpoint counts as. */
function classes(rows: readonly OracleRow[], rules: OracleRules, now: number): string[] {
  return rows.map((row) => `${isFresh(row, rules, now)} ${isScored(row, rules, now)}`);
}

/** The greatest double below a positive one. */
function previous(value: number): number {
  const view = new BigUint64Array(Float64Array.of(value).buffer);
  view[0] = (view[0] ?? 0n) - 1n;
  return new Float64Array(view.buffer)[0] ?? Number.NaN;
}
