// The requests that a scenario brings: how many, when, how long.

import { describe, expect, test } from "vitest";
import type { Scenario, TenantSpec } from "../../src/sim/scenario";
import { resolveScenario } from "../../src/sim/scenario-reader";
import { Traffic, type TrafficRequest } from "../../src/sim/traffic";

function requestsOf(traffic: readonly TenantSpec[], duration = "100s", seed = 1): TrafficRequest[] {
  const scenario: Scenario = {
    duration,
    endpoints: [{ preset: "llama-3.1-8b/H100/tp1", count: 2 }],
    traffic,
  };
  const resolved = resolveScenario(scenario);
  const source = new Traffic(resolved.traffic, resolved.duration, seed);
  const all: TrafficRequest[] = [];
  for (let one = source.take(); one !== undefined; one = source.take()) all.push(one);
  return all;
}

const lengths = { prompt: 100, output: 10 };

function gapsOf(requests: readonly TrafficRequest[]): { mean: number; cv: number } {
  const gaps = requests.slice(1).map(({ time }, i) => time - (requests[i]?.time ?? 0));
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const squares = gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0);
  return { mean, cv: Math.sqrt(squares / gaps.length) / mean };
}

describe("arrivals", () => {
  test("constant ones come evenly, the first at once", () => {
    const all = requestsOf([{ arrival: { process: "constant", rate: 4 }, ...lengths }], "2s");
    expect(all.map(({ time }) => time)).toEqual([0, 250, 500, 750, 1000, 1250, 1500, 1750]);
  });

  test.each([
    ["poisson", { process: "poisson", rate: 50 }, 1],
    ["gamma, bursty", { process: "gamma", rate: 50, cv: 3 }, 3],
    ["gamma, steady", { process: "gamma", rate: 50, cv: 0.5 }, 0.5],
  ] as const)("%s has the rate and the burstiness that it was asked for", (_, arrival, cv) => {
    const seen = gapsOf(requestsOf([{ arrival, ...lengths }], "2000s"));
    expect(Math.abs(seen.mean / 20 - 1)).toBeLessThan(0.03);
    expect(Math.abs(seen.cv / cv - 1)).toBeLessThan(0.05);
  });

  test("bursts come at once, so often that the rate is the mean, or as often as they are told to", () => {
    const byRate = requestsOf(
      [{ arrival: { process: "bursts", size: 3, rate: 6 }, ...lengths }],
      "1600ms",
    );
    expect(byRate.map(({ time }) => time)).toEqual([
      500, 500, 500, 1000, 1000, 1000, 1500, 1500, 1500,
    ]);
    const every = requestsOf(
      [{ arrival: { process: "bursts", size: 2, every: "700ms" }, ...lengths }],
      "1500ms",
    );
    expect(every.map(({ time }) => time)).toEqual([700, 700, 1400, 1400]);
  });

  test("a ramp goes from one rate to another", () => {
    const all = requestsOf(
      [{ arrival: { process: "ramp", rate: 10, to: 90 }, ...lengths }],
      "400s",
    );
    const inQuarter = (i: number) =>
      all.filter(({ time }) => time >= i * 100_000 && time < (i + 1) * 100_000).length / 100;
    for (const [i, rate] of [20, 40, 60, 80].entries()) {
      expect(Math.abs(inQuarter(i) / rate - 1)).toBeLessThan(0.08);
    }
    const falling = requestsOf(
      [{ arrival: { process: "ramp", rate: 90, to: 10 }, ...lengths }],
      "400s",
    );
    expect(Math.abs(falling.length / (50 * 400) - 1)).toBeLessThan(0.03);
  });

  test("a rate in per cent is a share of what all endpoints can do with these lengths", () => {
    const [half] = resolveScenario({
      duration: "1s",
      endpoints: [{ preset: "llama-3.1-8b/H100/tp1", count: 4 }],
      traffic: [{ arrival: { process: "constant", rate: "50%" }, ...lengths }],
    }).traffic;
    const [whole] = resolveScenario({
      duration: "1s",
      endpoints: [{ preset: "llama-3.1-8b/H100/tp1", count: 2 }],
      traffic: [{ arrival: { process: "constant", rate: "100%" }, ...lengths }],
    }).traffic;
    expect(half?.arrival.rate).toBeCloseTo(whole?.arrival.rate ?? 0, 9);
  });
});

describe("lengths", () => {
  test("lognormal ones have mean and variation, whole tokens, and keep to their bounds", () => {
    const tenant: TenantSpec = {
      arrival: { process: "constant", rate: 500 },
      prompt: { mean: 400, cv: 0.8 },
      output: { mean: 100, cv: 2, min: 20, max: 300 },
    };
    const all = requestsOf([tenant]);
    const mean = all.reduce((sum, { promptTokens }) => sum + promptTokens, 0) / all.length;
    expect(Math.abs(mean / 400 - 1)).toBeLessThan(0.02);
    expect(
      all.every(({ promptTokens }) => Number.isInteger(promptTokens) && promptTokens >= 1),
    ).toBe(true);
    const outputs = all.map(({ outputTokens }) => outputTokens);
    expect([Math.min(...outputs), Math.max(...outputs)]).toEqual([20, 300]);
  });

  test("may be drawn from a trace, while arrivals follow a process of their own", () => {
    const trace = [
      { timeMs: 0, promptTokens: 11, outputTokens: 1 },
      { timeMs: 9, promptTokens: 22, outputTokens: 2 },
    ];
    const all = requestsOf([{ arrival: { process: "constant", rate: 100 }, trace }], "10s");
    expect(all).toHaveLength(1000);
    const share = all.filter(
      ({ promptTokens, outputTokens }) => promptTokens === 11 && outputTokens === 1,
    ).length;
    expect(Math.abs(share / 500 - 1)).toBeLessThan(0.1);
  });

  test("prompts that share a beginning say so", () => {
    const sharedPrefix = { tokens: 64, variants: 3 };
    const all = requestsOf(
      [{ arrival: { process: "constant", rate: 100 }, ...lengths, sharedPrefix }],
      "10s",
    );
    expect(new Set(all.map(({ prefix }) => prefix?.[0])).size).toBe(3);
    expect(all[0]?.prefixChunkTokens).toBe(64);
  });
});

describe("traces", () => {
  const trace = [
    { timeMs: 0, promptTokens: 100, outputTokens: 3 },
    { timeMs: 40, promptTokens: 600, outputTokens: 5, hashIds: [7], chunkTokens: 512 },
    { timeMs: 900, promptTokens: 10, outputTokens: 1 },
  ];

  test("are replayed as they are, with their hashes", () => {
    const all = requestsOf([{ arrival: { process: "trace" }, trace }]);
    expect(
      all.map(({ time, promptTokens, outputTokens, prefix }) => [
        time,
        promptTokens,
        outputTokens,
        prefix,
      ]),
    ).toEqual([
      [0, 100, 3, undefined],
      [40, 600, 5, [7]],
      [900, 10, 1, undefined],
    ]);
  });

  test("may be replayed faster or slower, and end with the scenario", () => {
    const faster = requestsOf([{ arrival: { process: "trace", timeScale: 0.5 }, trace }]);
    expect(faster.map(({ time }) => time)).toEqual([0, 20, 450]);
    expect(requestsOf([{ arrival: { process: "trace" }, trace }], "500ms")).toHaveLength(2);
  });
});

test("tenants are merged in order of time, and none changes another's requests", () => {
  const chat: TenantSpec = {
    name: "chat",
    arrival: { process: "poisson", rate: 20 },
    prompt: { mean: 90, cv: 1 },
    output: 5,
  };
  const batch: TenantSpec = {
    name: "batch",
    arrival: { process: "bursts", size: 9, every: "1s" },
    ...lengths,
  };
  const both = requestsOf([chat, batch], "20s");
  expect(both.map(({ time }) => time)).toEqual(both.map(({ time }) => time).sort((a, b) => a - b));
  expect(both.map(({ id }) => id)).toEqual(both.map((_, i) => i));
  const alone = requestsOf([chat], "20s").map(({ time, promptTokens, lot }) => [
    time,
    promptTokens,
    lot,
  ]);
  const among = both
    .filter(({ tenant }) => tenant === 0)
    .map(({ time, promptTokens, lot }) => [time, promptTokens, lot]);
  expect(among).toEqual(alone);
});
