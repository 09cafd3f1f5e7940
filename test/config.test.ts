import { describe, expect, test } from "vitest";
import { resolveEndpointOptions } from "../src/config";
import { describeValue } from "../src/errors";
import {
  ConfigError,
  DurationError,
  EndpointError,
  KernelError,
  PlimsollError,
  printConfig,
  resolveConfig,
  TelemetryError,
} from "../src/index";
import { nearestKey } from "../src/nearest";

function faultsOf(input: unknown): readonly { path: string; rule: string }[] {
  try {
    resolveConfig(input);
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}

describe("resolveConfig", () => {
  test.each([
    ["queueDepthThreshold", [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "5", null, true]],
    ["kvCacheUtilThreshold", [0, -0.1, 1.0001, Number.NaN, "0.8", null]],
    ["metricsStalenessThreshold", [0, -1, "0s", "-1s", "5", "abc", null, {}, Number.NaN]],
    ["headroom", [-0.1, Number.NaN, Number.POSITIVE_INFINITY, "1", null]],
    ["stalenessPolicy", ["Saturated", "", 1, null]],
    ["holdFor", [-1, "-1s", "x", null]],
    ["aggregation", ["median", "", null]],
  ])("%s refuses what is out of its range", (key, values) => {
    for (const value of values) {
      expect(faultsOf({ [key]: value }).map(({ path }) => path)).toEqual([key]);
    }
  });

  test("takes both ends of the ranges, and undefined as absent", () => {
    const edges = { queueDepthThreshold: 1, kvCacheUtilThreshold: 1, headroom: 0, holdFor: 0 };
    expect(resolveConfig(edges)).toMatchObject(edges);
    expect(resolveConfig({ headroom: undefined }).headroom).toBe(0);
    expect(resolveConfig(undefined).queueDepthThreshold).toBe(5);
  });

  test.each([[null], ["x"], [5], [[]], [true]])("%j is no object of options", (input) => {
    expect(faultsOf(input)).toMatchObject([{ path: "" }]);
  });

  test("names the nearest key, or all of them", () => {
    expect(faultsOf({ queueDepthTreshold: 3 })[0]?.rule).toContain('"queueDepthThreshold"');
    expect(faultsOf({ colour: 3 })[0]?.rule).toContain("the options are queueDepthThreshold");
  });

  test("keys of Object.prototype are unknown, and nothing is polluted", () => {
    const input = JSON.parse('{"__proto__": {"headroom": 9}, "constructor": 1, "toString": 2}');
    expect(faultsOf(input).length).toBe(3);
    expect(resolveConfig({}).headroom).toBe(0);
    expect(({} as { headroom?: number }).headroom).toBeUndefined();
  });

  test("prints durations in Go notation, and what it prints it takes", () => {
    const printed = printConfig(resolveConfig({ metricsStalenessThreshold: 90_000 }));
    expect(printed).toMatchObject({ metricsStalenessThreshold: "1m30s", holdFor: "2s" });
    expect(printConfig(resolveConfig(printed))).toEqual(printed);
  });
});

describe("resolveEndpointOptions", () => {
  test("checks each option", () => {
    const right = {
      weight: 0.5,
      queueDepthThreshold: 9,
      kvCacheUtilThreshold: 0.9,
      headroom: 0.1,
      kvCapacityTokens: 1000,
      maxNumSeqs: 64,
      labels: { zone: "a" },
    };
    expect(resolveEndpointOptions(right)).toEqual(right);
    const wrong = { weight: 0, kvCapacityTokens: 0, maxNumSeqs: 1.5, labels: { a: 1 } };
    expect(() => resolveEndpointOptions(wrong)).toThrow(
      /weight.*\n.*kvCapacity.*\n.*maxNum.*\n.*labels/,
    );
  });
});

describe("errors", () => {
  test("each has its code, its class and its name", () => {
    const errors = [
      [new ConfigError([]), "PLIMSOLL_CONFIG", "ConfigError"],
      [new DurationError("x"), "PLIMSOLL_DURATION", "DurationError"],
      [new EndpointError("x"), "PLIMSOLL_ENDPOINT", "EndpointError"],
      [new KernelError("x"), "PLIMSOLL_KERNEL", "KernelError"],
      [new TelemetryError("x"), "PLIMSOLL_TELEMETRY", "TelemetryError"],
    ] as const;
    for (const [error, code, name] of errors) {
      expect(error).toBeInstanceOf(PlimsollError);
      expect([error.code, error.name]).toEqual([code, name]);
    }
  });

  test("describeValue prints anything, short, and never throws", () => {
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    const values = [
      loop,
      5n,
      Symbol("s"),
      () => 1,
      -0,
      "x".repeat(500),
      { toJSON: () => undefined },
    ];
    for (const value of values) expect(describeValue(value).length).toBeLessThan(90);
    expect(describeValue(-0)).toBe("-0");
  });

  test("nearestKey knows a slip of the pen from another word", () => {
    const known = ["headroom", "holdFor", "aggregation"];
    expect(nearestKey("headrom", known)).toBe("headroom");
    expect(nearestKey("HeadRoom", known)).toBe("headroom");
    expect(nearestKey("banana", known)).toBeUndefined();
    expect(nearestKey("x".repeat(10_000), known)).toBeUndefined();
  });
});
