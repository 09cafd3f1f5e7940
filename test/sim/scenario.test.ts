// Scenarios: what is right, and how what is wrong is told.

import { describe, expect, test } from "vitest";
import { ConfigError } from "../../src/errors";
import { PRESETS } from "../../src/sim/presets";
import { resolveScenario } from "../../src/sim/scenario-reader";
import { SCENARIO_NAMES, SCENARIOS } from "../../src/sim/scenarios";

const GOOD = {
  duration: "10s",
  endpoints: [{ preset: "llama-3.1-8b/H100/tp1" }],
  traffic: [{ arrival: { process: "poisson", rate: 5 }, prompt: 100, output: 10 }],
};

function faultsOf(scenario: unknown): Record<string, string> {
  try {
    resolveScenario(scenario);
  } catch (error) {
    if (error instanceof ConfigError) {
      return Object.fromEntries(error.faults.map(({ path, rule }) => [path, rule]));
    }
    throw error;
  }
  return {};
}

test("the built-in scenarios have no fault", () => {
  for (const name of SCENARIO_NAMES) {
    expect(resolveScenario(SCENARIOS[name])).toMatchObject({ name });
  }
  expect(SCENARIO_NAMES).toHaveLength(7);
});

test("defaults are filled in, durations are ms", () => {
  expect(resolveScenario(GOOD)).toMatchObject({
    duration: 10_000,
    routers: 1,
    policy: "plimsoll",
    scrape: { interval: 200, latency: 4, loss: 0, phase: "spread" },
    flow: undefined,
    timeout: 120_000,
    retries: 2,
    slo: { ttft: 500, tpot: 50 },
  });
});

test("a preset may be changed, and says so", () => {
  const { endpoints } = resolveScenario({
    ...GOOD,
    endpoints: [
      { preset: "llama-2-7b/H100/tp1", count: 2 },
      { preset: "llama-3.1-8b/L4/tp1", maxNumSeqs: 8 },
      { a: 5, d: 0.1, kvBlocks: 100 },
    ],
  });
  expect(endpoints.map(({ id, kind }) => [id, kind])).toEqual([
    ["engine-0", "llama-2-7b/H100/tp1 (measured-fit)"],
    ["engine-1", "llama-2-7b/H100/tp1 (measured-fit)"],
    ["engine-2", "llama-3.1-8b/L4/tp1 (derived, changed)"],
    ["engine-3", "own coefficients"],
  ]);
  expect(endpoints[2]?.model).toMatchObject({ a: 57, maxNumSeqs: 8 });
  expect(endpoints[3]?.model).toMatchObject({ a: 5, c: 0, p: 0, blockSize: 16 });
});

test("all faults are told together, each with its path", () => {
  const faults = faultsOf({
    duration: "soon",
    endpoints: [
      { preset: "llama-3.1-8b/H200/tp1" },
      { a: 1 },
      { preset: "llama-3.1-8b/L4/tp1", count: 0 },
    ],
    traffic: [{ arrival: { process: "poisson" }, prompt: 0, output: { mean: 5, cv: -1 } }],
    routers: 17,
    scrape: { intervall: "1s", loss: 1 },
    faults: [{ kind: "dies", at: "1s", endpoints: [9] }],
    flow: { ttl: 0 },
    slo: { ttft: 0 },
    detector: { headroom: -1 },
    polcy: "original",
  });
  expect(Object.keys(faults).sort()).toEqual(
    [
      "polcy",
      "duration",
      "routers",
      "endpoints.0.preset",
      "endpoints.1.d",
      "endpoints.1.kvBlocks",
      "endpoints.2.count",
      "traffic.0.arrival.rate",
      "traffic.0.prompt",
      "traffic.0.output.cv",
      "scrape.intervall",
      "scrape.loss",
      "faults.0.endpoints",
      "flow.ttl",
      "slo.ttft",
      "detector.headroom",
    ].sort(),
  );
  expect(faults.polcy).toContain('did you mean "policy"?');
  expect(faults["scrape.intervall"]).toContain('did you mean "interval"?');
  expect(faults["endpoints.0.preset"]).toContain('did you mean "llama-3.1-8b/H100/tp1"?');
});

describe.each([
  ["no traffic", { traffic: [] }, "traffic"],
  ["no endpoints", { endpoints: undefined }, "endpoints"],
  [
    "a rate of no kind",
    { traffic: [{ ...GOOD.traffic[0], arrival: { process: "poisson", rate: "fast" } }] },
    "traffic.0.arrival.rate",
  ],
  [
    "bursts with rate and every",
    {
      traffic: [
        { ...GOOD.traffic[0], arrival: { process: "bursts", size: 2, rate: 1, every: "1s" } },
      ],
    },
    "traffic.0.arrival.every",
  ],
  [
    "a trace that is not given",
    { traffic: [{ ...GOOD.traffic[0], arrival: { process: "trace" } }] },
    "traffic.0.arrival.process",
  ],
  [
    "a band that is not there",
    { flow: true, traffic: [{ ...GOOD.traffic[0], priority: "high" }] },
    "traffic.0.priority",
  ],
  [
    "two tenants of one name",
    {
      traffic: [
        { ...GOOD.traffic[0], name: "a" },
        { ...GOOD.traffic[0], name: "a" },
      ],
    },
    "traffic.1.name",
  ],
  ["a list for a scenario", [], ""],
  ["nothing for a scenario", null, ""],
  ["a duration of a thousand years", { duration: "8760000h" }, "duration"],
])("%s", (_, change, path) => {
  test(`is a fault of ${path || "the whole"}`, () => {
    const scenario = Array.isArray(change) || change === null ? change : { ...GOOD, ...change };
    expect(Object.keys(faultsOf(scenario))).toContain(path);
  });
});

test("presets are those of the published data, and frozen", () => {
  expect(Object.keys(PRESETS)).toHaveLength(8);
  expect(
    Object.values(PRESETS)
      .map(({ kind }) => kind)
      .sort(),
  ).toEqual([...Array(4).fill("derived"), ...Array(4).fill("measured-fit")]);
  expect(Object.isFrozen(PRESETS["llama-2-7b/H100/tp1"])).toBe(true);
});
