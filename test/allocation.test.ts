// The decision path makes no garbage: hundreds of thousands of decisions in a process of their own
// leave the heap where it was.

import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

const SCRIPT = `
import { EndpointPool } from "./dist/index.js";
let now = 1000;
const pool = new EndpointPool({}, { clock: () => now });
const ids = Array.from({ length: 64 }, (_, i) => "e" + i);
const samples = ids.map((_, i) => ({ waitingQueueSize: i % 8, kvCacheUsagePercent: (i % 10) / 10 + 0.01 }));
ids.forEach((id, i) => { pool.add(id); pool.report(id, samples[i]); });
const rounds = { cached: () => {}, changing: (i) => pool.report(ids[i & 63], samples[i & 63]) };
const grown = {};
for (const [name, change] of Object.entries(rounds)) {
  const run = (n) => {
    for (let i = 0; i < n; i++) { change(i); pool.saturation(); pool.candidates(); }
  };
  // What the compilers need for themselves is over by then.
  for (let i = 0; i < 3; i++) { run(1_000_000); gc(); }
  const before = process.memoryUsage().heapUsed;
  run(4_000_000);
  grown[name] = (process.memoryUsage().heapUsed - before) / 4_000_000;
}
console.log(JSON.stringify(grown));
`;

test("a decision allocates nothing, on an unchanged pool and on one that changes each time", () => {
  // A young generation that is large enough keeps garbage visible instead of collected.
  const flags = ["--expose-gc", "--max-semi-space-size=512", "--input-type=module", "-e", SCRIPT];
  const grown = JSON.parse(execFileSync(process.execPath, flags, { encoding: "utf8" }));
  // Bytes per decision. One object would be 16 at the least.
  expect(grown.cached).toBeLessThan(0.5);
  expect(grown.changing).toBeLessThan(0.5);
});
