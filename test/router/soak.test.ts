// The soak test, in short: the long one is bench/soak.ts by itself.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);

test("3,000 requests past engines in trouble: one whole answer or one clear error each, and nothing left", async () => {
  const args = ["--import", "tsx", "bench/soak.ts", "3000", "7"];
  const { stdout } = await run(process.execPath, args, { timeout: 100_000 });
  const row = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  expect(row).toMatchObject({ requests: 3000, WRONG: 0, live: 0, leases: 0 });
  expect(row.whole + row.refused + row.cut).toBe(3000);
  expect(row.whole).toBeGreaterThan(2000);
});
