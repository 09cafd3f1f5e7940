import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readConfigText } from "../../src/cli/config-file";
import { replay } from "../../src/cli/replay";
import { Series, WeightedValues } from "../../src/cli/series";

const folder = mkdtempSync(join(tmpdir(), "plimsoll-replay-"));
let files = 0;

function recording(
  lines: unknown[],
  header: unknown = { plimsoll: 1, kind: "recording", endpoints: ["a"] },
) {
  const path = join(folder, `${files++}.jsonl`);
  const texts = [header, ...lines].map((line) =>
    typeof line === "string" ? line : JSON.stringify(line),
  );
  writeFileSync(path, texts.join("\n"));
  return path;
}

const reading = (at: number, waiting: unknown, id = "a", kv: unknown = 0) => ({
  id,
  startedAt: at,
  reportedAt: at,
  sample: { waitingQueueSize: waiting, kvCacheUsagePercent: kv },
});

function config(text = "{}") {
  const read = readConfigText(text);
  if (read.config === undefined) throw new Error("bad config");
  return read.config;
}

describe("replay", () => {
  test("counts staleness to the instant, between samples too", async () => {
    // Fresh from 0 to 200, stale (1) from 200 to 1000, and a queue of 2 at the end.
    const report = await replay(recording([reading(0, 2), reading(1000, 2)]), config());
    expect(report.durationMs).toBe(1000);
    expect(report.saturation.mean).toBeCloseTo((0.4 * 200 + 1 * 800) / 1000, 6);
    expect(report.saturatedShare).toBeCloseTo(0.8, 6);
    expect(report.failedOpenShare).toBeCloseTo(0.8, 6);
    expect(report.endpoints[0]?.candidateShare).toBeCloseTo(0.2, 6);
    expect(report.endpoints[0]?.notFreshShare).toBeCloseTo(0.8, 6);
  });

  test("under hold, the second edge counts too", async () => {
    const file = recording([reading(0, 2), reading(1000, 2)]);
    const report = await replay(file, config("stalenessPolicy: hold\nholdFor: 300ms"));
    expect(report.saturation.mean).toBeCloseTo((0.4 * 500 + 1 * 500) / 1000, 6);
  });

  test("each endpoint has its share, with the weights and thresholds of the config", async () => {
    const lines = [0, 100, 200, 300].flatMap((at) => [reading(at, 6), reading(at, 1, "b")]);
    const file = recording(lines, { plimsoll: 1, kind: "recording", endpoints: ["a", "b"] });
    const own = config('endpoints: [{ url: "http://h", id: a, queueDepthThreshold: 10 }]');
    const [plain, changed] = [await replay(file, config()), await replay(file, own)];
    expect(plain.endpoints.map(({ candidateShare }) => candidateShare)).toEqual([0, 1]);
    expect(changed.endpoints.map(({ candidateShare }) => candidateShare)).toEqual([1, 1]);
  });

  test("times since 1970 go on, and an outage at the end counts", async () => {
    const at = 1_796_000_000_000;
    const failed = { id: "a", startedAt: at + 9000, reportedAt: at + 10_000, error: "timeout" };
    const report = await replay(recording([reading(at, 2), failed]), config());
    expect(report.durationMs).toBe(10_000);
    expect(report.saturatedShare).toBeCloseTo(0.98, 4);
  });

  test("S is that of the recording, unless the config says otherwise", async () => {
    const header = { plimsoll: 1, kind: "recording", endpoints: ["a"] };
    const lines = [0, 500, 1000].map((at) => reading(at, 2));
    const file = recording(lines, { ...header, metricsStalenessThreshold: 1500 });
    expect((await replay(file, config())).saturatedShare).toBe(0);
    const strict = await replay(file, config("metricsStalenessThreshold: 250ms"));
    expect(strict.saturatedShare).toBeCloseTo(0.5, 4);
  });

  test("an endpoint of the config is found by its address, however it is written", async () => {
    const file = recording([reading(0, 6, "http://h:1"), reading(100, 6, "http://h:1")], {
      plimsoll: 1,
      kind: "recording",
      endpoints: ["http://h:1"],
    });
    const own = config('endpoints: [{ url: "http://h:1/metrics", queueDepthThreshold: 10 }]');
    expect((await replay(file, own)).saturation.max).toBe(0.6);
  });

  test("bad lines are named, and the rest counts", async () => {
    const lines = [
      reading(0, 1),
      "{",
      "5",
      { id: 5 },
      { id: "a", startedAt: "x", reportedAt: 1 },
      { id: "a", startedAt: 1, reportedAt: 2 },
      { id: "a", startedAt: 1, reportedAt: 2, error: "HTTP 500" },
      "",
      reading(50, "NaN"),
      reading(60, null),
      reading(100, 1),
    ];
    const report = await replay(recording(lines), config());
    expect(report.badLines.map(({ line }) => line)).toEqual([3, 4, 5, 6, 7]);
    expect([report.readings, report.unusableReadings]).toEqual([4, 2]);
  });

  test("a file that is no recording is refused", async () => {
    await expect(replay(recording([], "hello"), config())).rejects.toThrow(/:1: not a recording/);
    const empty = join(folder, "empty");
    writeFileSync(empty, "");
    await expect(replay(empty, config())).rejects.toThrow(/empty/);
    await expect(replay("/nowhere", config())).rejects.toThrow(/ENOENT/);
  });
});

describe("series", () => {
  test("stays bounded over a long time, and its means add up", () => {
    const series = new Series();
    for (let hour = 0; hour < 1000; hour++) series.add(hour * 3.6e6, hour % 2, 3.6e6);
    const means = series.means(10);
    expect(means.length).toBeLessThanOrEqual(10);
    for (const mean of means.slice(0, -1)) expect(mean).toBeCloseTo(0.5, 1);
  });

  test("quantiles are weighted by time", () => {
    const values = new WeightedValues();
    values.add(0.5, 90);
    values.add(2, 10);
    expect([values.quantile(0.5), values.quantile(0.95), values.max]).toEqual([0.5, 2, 2]);
    expect(values.mean).toBeCloseTo(0.65, 9);
    expect([new WeightedValues().mean, new WeightedValues().quantile(0.5)]).toEqual([0, 0]);
  });
});
