// Real pages, when they lie beside the project. They are not part of it.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readExposition } from "../../src/telemetry/exposition";

const folder = new URL("../../../shared/corpus/", import.meta.url);

interface Row {
  engine: string;
  waitingQueueSize: number | null;
  runningRequests: number | null;
  kvCacheUsage: number | null;
  kvCapacityTokens: number | null;
}

if (!existsSync(folder)) {
  test("the corpus in ../shared is not here, so no real page was read", () => {
    expect(existsSync(folder)).toBe(false);
  });
} else {
  const rows: Record<string, Row> = JSON.parse(
    readFileSync(new URL("expected.json", folder), "utf8"),
  );
  const files = readdirSync(folder).filter((name) => name.endsWith(".txt"));

  describe("corpus", () => {
    test.each(files)("%s gives its reading", (name) => {
      const { engine, sample, findings } = readExposition(readFileSync(new URL(name, folder)));
      const row = rows[name];
      if (row === undefined) {
        expect(sample.kvCacheUsagePercent).toBeNull();
        if (engine === undefined) expect(findings.length).toBeGreaterThan(0);
        return;
      }
      expect({
        engine,
        waitingQueueSize: sample.waitingQueueSize,
        runningRequests: sample.runningRequests,
        kvCacheUsage: sample.kvCacheUsagePercent,
        kvCapacityTokens: sample.kvCapacityTokens,
      }).toEqual({
        engine: row.engine,
        waitingQueueSize: row.waitingQueueSize,
        runningRequests: row.runningRequests,
        kvCacheUsage: row.kvCacheUsage,
        kvCapacityTokens: row.kvCapacityTokens,
      });
    });
  });
}
