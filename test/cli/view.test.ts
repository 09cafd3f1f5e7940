import { describe, expect, test } from "vitest";
import { type DemoPhase, demoLoad, startDemoFleet } from "../../src/cli/demo";
import { clean, clip, sparkline } from "../../src/cli/text";
import { render } from "../../src/cli/view";
import { EndpointPool } from "../../src/index";
import { readExposition } from "../../src/telemetry/exposition";
import { table } from "../../src/text-table";

const plain = (_: string, text: string) => text;

function snapshotOf(count: number) {
  const pool = new EndpointPool({}, { clock: () => 1000 });
  for (let i = 0; i < count; i++) {
    pool.add(`http://10.0.0.${i}:8000`);
    pool.report(`http://10.0.0.${i}:8000`, { waitingQueueSize: i * 3, kvCacheUsagePercent: 0.5 });
  }
  return pool.snapshot();
}

describe("the view", () => {
  test.each([120, 80, 60, 40])("never draws wider than %d columns", (width) => {
    const history = Array.from({ length: 300 }, (_, i) => i / 100);
    const lines = render(snapshotOf(5), {
      paint: plain,
      width,
      height: 30,
      history,
      footer: "q".repeat(200),
    });
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(width);
    expect(lines.join("\n")).toContain("10.0.0.0:8000");
    if (width >= 60) expect(lines.join("\n")).toContain("queue 6 >= 5");
  });

  test("says how many endpoints do not fit", () => {
    const lines = render(snapshotOf(100), {
      paint: plain,
      width: 100,
      height: 20,
      footer: "q quits",
    });
    expect(lines.length).toBeLessThanOrEqual(20);
    expect(lines.join("\n")).toMatch(/and \d+ more that do not fit/);
    expect(lines.at(-1)).toBe("q quits");
  });

  test("says that the pool failed open, and why the last reading failed", () => {
    const pool = new EndpointPool();
    pool.add("http://a");
    const about = () => ({ error: "HTTP 404\u001b[2J" });
    const text = render(pool.snapshot(), { paint: plain, width: 120, height: 9, about }).join("\n");
    expect(text).toContain("NOBODY PASSES");
    expect(text).toContain("HTTP 404?[2J");
  });
});

describe("text", () => {
  test("a sparkline has a bar per value and a gap for none", () => {
    expect(sparkline([0, 0.75, 1.5, 99, Number.NaN], 1.5)).toBe("▁▅██ ");
  });

  test("clean, clip and table", () => {
    expect(clean("a\u001b[31m\u202eb\nc")).toBe("a?[31m?b?c");
    expect([clip("abcdef", 4), clip("abc", 3), clip("abc", 0)]).toEqual(["abc…", "abc", "…"]);
    expect(table([{ title: "A" }, { title: "N", right: true }], [["xyz", "1"]])).toEqual([
      "A    N",
      "xyz  1",
    ]);
  });
});

describe("the demo", () => {
  test("shows every state within 20 seconds", () => {
    const seen = new Set<DemoPhase>();
    for (let ms = 0; ms < 20_000; ms += 100) seen.add(demoLoad(0, ms).phase);
    expect([...seen].sort()).toEqual(["busy", "gone", "hung", "idle", "kv-full", "saturated"]);
  });

  test("prints pages that read as its load, and goes and comes back for real", async () => {
    let now = 0;
    const fleet = await startDemoFleet(() => now);
    try {
      for (const [i, url] of fleet.urls.entries()) {
        const load = demoLoad(i, now);
        const { sample } = readExposition(await (await fetch(`${url}/metrics`)).text());
        expect(sample.waitingQueueSize).toBe(load.waiting);
        expect(sample.kvCacheUsagePercent).toBe(load.kv);
      }
      while (demoLoad(0, now).phase !== "gone") now += 100;
      const refused = async () => {
        try {
          await fetch(fleet.urls[0] ?? "", { signal: AbortSignal.timeout(300) });
          return false;
        } catch {
          return true;
        }
      };
      for (let i = 0; i < 50 && !(await refused()); i++)
        await new Promise((r) => setTimeout(r, 20));
      expect(await refused()).toBe(true);
      while (demoLoad(0, now).phase !== "idle") now += 100;
      for (let i = 0; i < 50 && (await refused()); i++) await new Promise((r) => setTimeout(r, 20));
      expect(await refused()).toBe(false);
    } finally {
      await fleet.close();
    }
  });
});
