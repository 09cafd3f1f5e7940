// What docs/recipes says of commands: they exist, print what is shown, and simulations come out as it is told.

import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { plimsoll } from "../cli/run";
import { blocks, recipe, recipePath, useProcesses } from "./processes";

const processes = useProcesses();
const pages = readdirSync(recipePath(".")).filter((name) => name.endsWith(".md"));

describe("from llm-d", () => {
  test("the example becomes what the page shows, with the notes that it shows", async () => {
    const page = recipe("from-llm-d.md");
    const [epp = "", config = "", notes = ""] = ["yaml epp", "yaml", "text"].map(
      (language) => blocks(page, language)[0],
    );
    const path = processes.write("epp.yaml", epp);
    const { code, out, err } = await plimsoll(["check", "--from-epp", path]);
    expect(code).toBe(0);
    expect(out.replace(/^#.*\n/gm, "")).toBe(config);
    expect(err.replaceAll(path, "epp.yaml")).toBe(notes);
  });
});

describe("tuning", () => {
  /** p99 of the time to first token in ms, goodput and preemptions, value by value. */
  const sweep = async (scenario: string, ...flags: string[]) => {
    const { out } = await plimsoll(["sim", scenario, "--json", ...flags]);
    const reports: { ttftMs: { p99: number }; goodput: number; preemptedRequests: number }[] =
      JSON.parse(out);
    return reports.map(({ ttftMs, goodput, preemptedRequests }) => ({
      p99: ttftMs.p99,
      goodput,
      preempted: preemptedRequests,
    }));
  };

  test("a K too low holds back beside half empty caches, one too high preempts", async () => {
    for (const seed of ["1", "2", "3"]) {
      const values = "kvCacheUtilThreshold=0.5,0.9,1";
      const [low, right, high] = await sweep("kv-pressure", "--sweep", values, "--seed", seed);
      expect(right?.p99).toBeLessThan(low?.p99 ?? 0);
      expect(right?.p99).toBeLessThan(high?.p99 ?? 0);
      expect([low?.preempted, (right?.preempted ?? 99) < 20]).toEqual([0, true]);
      expect(high?.preempted).toBeGreaterThan(50);
    }
  });

  test("what an outage of readings costs is a matter of S and of the policy", async () => {
    const outage = (values: string) =>
      sweep("scrape-outage", "--set", "flow=true", "--sweep", values);
    const [short, long] = await outage("metricsStalenessThreshold=600ms,12s");
    expect(long?.p99).toBeLessThan((short?.p99 ?? 0) / 50);
    const [saturated, hold, ignore] = await outage("stalenessPolicy=saturated,hold,ignore");
    expect(hold?.goodput).toBeGreaterThan(saturated?.goodput ?? 1);
    expect(ignore?.goodput).toBeGreaterThan(hold?.goodput ?? 1);
  });
});

describe("command lines", () => {
  const lines = pages.flatMap((name) =>
    blocks(recipe(name), "sh").flatMap((block) => block.match(/npx plimsoll .*/g) ?? []),
  );

  test("use commands and flags that there are", async () => {
    const { out: overview } = await plimsoll(["--help"]);
    const built = [...overview.matchAll(/^ {2}(\w+)(?: \[options\])? /gm)].map(([, name]) => name);
    expect(lines.length).toBeGreaterThan(10);
    for (const line of lines) {
      expect(built, line).toContain(line.split(" ")[2]);
      const { out: help } = await plimsoll([line.split(" ")[2] ?? "", "--help"]);
      for (const flag of line.match(/ --[a-z-]+/g) ?? []) expect(help, line).toContain(flag.trim());
    }
  });
});
