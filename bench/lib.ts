// What every benchmark shares: the environment, seeded numbers, timing with benchmark.js, and the
// table and JSON file in which results are kept.

import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import Benchmark from "benchmark";

/** A short run that only shows that the benchmarks work. */
export const smoke = process.env.BENCH_SMOKE === "1";

/** One line of results: named figures. */
export type Row = Record<string, string | number>;

/** Seeded numbers in [0, 1): mulberry32. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Times contestants in turn, several rounds, and returns the median ns per call of each.
 * Rounds alternate, so that a noisy minute on a shared machine touches all of them.
 */
export function timeContestants(
  contestants: Record<string, () => unknown>,
): Record<string, number> {
  const rounds = smoke ? 1 : 5;
  const samples: Record<string, number[]> = {};
  for (let round = 0; round < rounds; round++) {
    for (const [name, fn] of Object.entries(contestants)) {
      const options = { minSamples: smoke ? 2 : 10, maxTime: smoke ? 0.02 : 0.25, initCount: 100 };
      const bench = new Benchmark(name, fn, options);
      bench.run();
      const { error } = bench as { error?: unknown };
      if (error !== undefined) throw error;
      samples[name] ??= [];
      samples[name].push(median(bench.stats.sample) * 1e9);
    }
  }
  return Object.fromEntries(Object.entries(samples).map(([name, list]) => [name, median(list)]));
}

/** The middle value. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** Prints a table and, in a full run, keeps it in bench/results/<name>.json. */
export function report(name: string, rows: Row[]): void {
  console.log(`\n${name}`);
  console.table(rows);
  if (smoke) return;
  const environment = {
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    platform: `${process.platform} ${process.arch}`,
  };
  mkdirSync("bench/results", { recursive: true });
  const text = `${JSON.stringify({ environment, rows }, null, 2)}\n`;
  writeFileSync(`bench/results/${name}.json`, text);
}
