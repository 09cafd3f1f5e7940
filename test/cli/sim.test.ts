// plimsoll sim as people meet it.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readSweep, withValue } from "../../src/cli/sim-scenario";
import type { Report } from "../../src/sim/report";
import { plimsoll } from "./run";

const folder = mkdtempSync(join(tmpdir(), "plimsoll-sim-"));
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const SHORT = ["--set", "duration=3s"];

describe("a run", () => {
  test("of a built-in scenario prints a table, with what its engines rest on", async () => {
    const { code, out, err } = await plimsoll(["sim", "thundering-herd", ...SHORT]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain("engines: llama-3.1-8b/H100/tp1 (derived)");
    expect(out).toMatch(/^TTFT p99 +\d/m);
  });

  test("of a file, compared, as JSON: one report per policy on the same traffic", async () => {
    const printed = await plimsoll(["sim", "--print", "mixed-gpus"]);
    expect(printed.out).toMatch(/^# Three H100/);
    const file = write("mine.yaml", printed.out);
    const { out } = await plimsoll([
      "sim",
      file,
      "--compare",
      "random, plimsoll",
      "--json",
      "--seed",
      "4",
      ...SHORT,
    ]);
    const reports: Report[] = JSON.parse(out);
    expect(reports.map(({ policy, seed }) => [policy, seed])).toEqual([
      ["random", 4],
      ["plimsoll", 4],
    ]);
    expect(reports[0]?.arrived).toBe(reports[1]?.arrived);
  });

  test("is the same twice, to the byte", async () => {
    const run = async () => (await plimsoll(["sim", "two-tenants", "--json", ...SHORT])).out;
    expect(await run()).toBe(await run());
  });

  test("over a sweep has a line per value", async () => {
    const { out } = await plimsoll([
      "sim",
      ...SHORT,
      "--sweep",
      "scrape.interval=50ms,5s",
      "--policy",
      "original",
    ]);
    const lines = out.trimEnd().split("\n").slice(-3);
    expect(lines[0]).toMatch(/^scrape\.interval +policy +TTFT p50, ms/);
    expect(lines.slice(1).map((line) => line.split(/\s+/).slice(0, 2))).toEqual([
      ["50ms", "original"],
      ["5s", "original"],
    ]);
  });

  test("writes the run over time as CSV", async () => {
    const csv = join(folder, "run.csv");
    await plimsoll(["sim", ...SHORT, "--csv", csv]);
    expect(readFileSync(csv, "utf8")).toMatch(/^time_ms,saturation,/);
  });

  test("writes a page with the reports in it, each with a title that tells it from the others", async () => {
    const html = join(folder, "run.html");
    const { code } = await plimsoll(["sim", ...SHORT, "--sweep", "routers=1,2", "--html", html]);
    expect(code).toBe(0);
    const page = readFileSync(html, "utf8");
    const json = /id="plimsoll-reports">(.*?)<\/script>/s.exec(page)?.[1] ?? "";
    const { reports, titles } = JSON.parse(json) as { reports: Report[]; titles: string[] };
    expect(reports.map(({ routers }) => routers)).toEqual([1, 2]);
    expect(titles).toEqual(["plimsoll, routers=1", "plimsoll, routers=2"]);
    expect(page).not.toMatch(/(src|href)="https?:/);
  });
});

describe("traces", () => {
  const good =
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01 00:00:00.1,100,5\n2024-01-01 00:00:02.1,50,9\n";

  test("replace the first tenant's traffic, and the scenario lasts as long", async () => {
    const { out, err } = await plimsoll([
      "sim",
      "--trace",
      write("good.csv", good),
      "--time-scale",
      "2",
      "--json",
    ]);
    expect(err).toContain("2 requests, azure");
    expect(JSON.parse(out)).toMatchObject({ arrived: 2, completed: 2, durationMs: 4001 });
  });

  test("with a bad line are refused with file, line and fault, or read without it", async () => {
    const bad = write("bad.csv", `${good}2024-01-01 00:00:03,-1,5\n`);
    const refused = await plimsoll(["sim", "--trace", bad]);
    expect(refused.code).not.toBe(0);
    expect(refused.err).toContain(`${bad}:4: tokens of the prompt must be an integer > 0, got -1`);
    const { err, code } = await plimsoll(["sim", "--trace", bad, "--skip-bad"]);
    expect([code, err]).toEqual([
      0,
      expect.stringContaining("2 requests, azure (1 bad lines left out)"),
    ]);
  });
});

describe("mistakes", () => {
  test.each([
    ["a scenario that is not there", ["sim", "thundering-heard"], "did you mean thundering-herd?"],
    ["a file that is not there", ["sim", "no.yaml"], "no.yaml"],
    [
      "a policy that is not there",
      ["sim", "--compare", "original,best"],
      "there is no policy best: there are plimsoll",
    ],
    ["a seed that is none", ["sim", "--seed", "x"], "--seed takes an integer"],
    ["a setting without a value", ["sim", "--set", "routers"], "--set takes path=value"],
    [
      "a sweep without values",
      ["sim", "--sweep", "routers=9..1"],
      "a range is from..to or from..to:step",
    ],
    [
      "a value out of range",
      ["sim", "--set", "routers=99"],
      "routers: must be an integer from 1 to 16",
    ],
    [
      "an index that is not there",
      ["sim", "--set", "endpoints.7.count=1"],
      "there is no endpoints.7",
    ],
    [
      "two runs for one CSV",
      ["sim", ...SHORT, "--compare", "random,original", "--csv", join(folder, "x.csv")],
      "--csv writes one run",
    ],
  ])("%s is told with what would be right", async (_, args, message) => {
    const { code, err, out } = await plimsoll(args);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(message);
    expect(err).not.toMatch(/\n\s+at /);
  });

  test("in a file are told with line and column, all together", async () => {
    const file = write(
      "faulty.yaml",
      "duration: soon\nendpoints:\n  - { preset: nope }\ntraffic: []\nscrape:\n  intervall: 1s\n",
    );
    const { code, err } = await plimsoll(["sim", file]);
    expect(code).toBe(2);
    const places = err.match(/faulty\.yaml:\d+:\d+/g);
    expect(places).toEqual(["1:1", "3:7", "4:1", "6:3"].map((place) => `faulty.yaml:${place}`));
  });
});

describe("paths and sweeps", () => {
  test("a detector's option may be written without its name", () => {
    expect(withValue({}, "queueDepthThreshold", 7)).toEqual({
      detector: { queueDepthThreshold: 7 },
    });
  });

  test("no path reaches a prototype", () => {
    withValue({}, "__proto__.polluted", true);
    withValue({}, "constructor.prototype.polluted", true);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test("ranges are whole, stepped, or lists", () => {
    const values = (text: string) => readSweep(text).map(({ value }) => value);
    expect(values("x=2..5")).toEqual([2, 3, 4, 5]);
    expect(values("x=0.1..0.5:0.1")).toEqual([0.1, 0.2, 0.3, 0.4, 0.5]);
    expect(values("x=50ms, 1s,true")).toEqual(["50ms", "1s", true]);
  });
});
