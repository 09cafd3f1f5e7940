// Waiting costs memory only while it lasts: a process of its own fills and drains three times.

import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

const SCRIPT = `
import { EndpointPool } from "./dist/index.js";
import { FlowController } from "./dist/flow.js";
const pool = new EndpointPool({ metricsStalenessThreshold: 1e9 }, { clock: () => 0 });
for (let i = 0; i < 100; i++) {
  pool.add("e" + i);
  pool.report("e" + i, { waitingQueueSize: 0, kvCacheUsagePercent: 0 });
}
const gate = new FlowController(pool, { bands: [{ maxRequests: 200_000 }], clock: () => 0 });
// The least of a few looks: what a collection leaves varies by a MB with its phase.
const heap = async () => {
  let least = Infinity;
  for (let look = 0; look < 5; look++) {
    await new Promise(setImmediate);
    gc();
    least = Math.min(least, process.memoryUsage().heapUsed / 2 ** 20);
  }
  return least;
};
const rounds = [];
for (let round = 0; round < 3; round++) {
  const before = await heap();
  const asked = Array.from({ length: 100_500 }, (_, i) => gate.admit({ flow: "tenant-" + (i % 100) }));
  const waiting = gate.stats().waiting;
  const full = await heap() - before;
  for (const one of asked) one.then((permit) => permit.release());
  await Promise.all(asked);
  asked.length = 0;
  await new Promise(setImmediate);
  rounds.push({ waiting, full, after: await heap() });
}
console.log(JSON.stringify(rounds));
`;

test("100,000 waiting requests take under 100 MB, and leave nothing behind", () => {
  const flags = ["--expose-gc", "--input-type=module", "-e", SCRIPT];
  const options = { encoding: "utf8", timeout: 60_000 } as const;
  const rounds: { waiting: number; full: number; after: number }[] = JSON.parse(
    execFileSync(process.execPath, flags, options),
  );
  for (const { waiting, full } of rounds) {
    expect(waiting).toBe(100_000);
    expect(full).toBeLessThan(100);
  }
  const [, second, third] = rounds;
  expect(Math.abs((third?.after ?? 0) - (second?.after ?? 0))).toBeLessThan(1);
});
