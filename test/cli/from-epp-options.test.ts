// What an EPP's config says, option by option, and that nothing a file may hold is beyond the translation.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readConfigText } from "../../src/cli/config-file";
import { readQuantity } from "../../src/cli/epp/quantity";
import { translateEpp } from "../../src/cli/epp/translate";

/** Lines with what was found there, shortened to what is told apart. */
const linesOf = (found: readonly { line: number; path: string }[]) =>
  found.map(({ line, path }) => `${line} ${path}`);

const HEAD = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n";
const translate = (body: string) => translateEpp(HEAD + body);
const configOf = (body: string) => {
  const { config, faults } = translate(body);
  expect(faults).toEqual([]);
  return config ?? {};
};

describe("the detector", () => {
  const two = `plugins:
- { name: one, type: utilization-detector, parameters: { queueDepthThreshold: 3 } }
- { name: two, type: utilization-detector, parameters: { queueDepthThreshold: 7 } }
`;

  test.each([
    ["saturationDetector: { pluginRef: two }\n", 7],
    ["flowControl: { saturationDetector: { pluginRef: one } }\n", 3],
    [
      "saturationDetector: { pluginRef: two }\nflowControl: { saturationDetector: { pluginRef: one } }\n",
      3,
    ],
    ["", 5],
    ["saturationDetector: { pluginRef: utilization-detector }\n", 5],
  ])("is the one that is referred to: %j", (reference, queueDepthThreshold) => {
    expect(configOf(two + reference).queueDepthThreshold).toBe(queueDepthThreshold);
  });

  test("the others are named", () => {
    const { notes } = translate(`${two}saturationDetector: { pluginRef: two }\n`);
    expect(notes.find(({ path }) => path === "plugins.0")?.text).toMatch(/nothing refers to it/);
  });

  test("thresholds beside a reference, and references to nothing, are faults", () => {
    const beside = "saturationDetector: { pluginRef: two, queueDepthThreshold: 3 }\n";
    expect(linesOf(translate(two + beside).faults)).toEqual(["6 saturationDetector.pluginRef"]);
    const nobody = translate("flowControl:\n  saturationDetector: { pluginRef: twoo }\n");
    expect(linesOf(nobody.faults)).toEqual(["4 flowControl.saturationDetector.pluginRef"]);
  });

  test("thresholds per stage do not map", () => {
    const { notes } = translate("flowControl: { saturationDetector: { gateOn: decode } }\n");
    expect(notes.map(({ path }) => path)).toContain("flowControl.saturationDetector.gateOn");
  });
});

describe("ceilings", () => {
  const limited = (
    type: string,
    parameters: string,
    bands = "[{ priority: 10 }, { priority: -10 }]",
  ) =>
    `featureGates: [flowControl]
plugins:
- { name: limits, type: ${type}, parameters: ${parameters} }
flowControl: { usageLimitPolicyPluginRef: limits, priorityBands: ${bands} }
`;
  const ceilingsOf = (text: string) => (configOf(text).flow as { ceilings?: object }).ceilings;
  const HOLDBACK = "priority-holdback-policy";

  test.each<[string, string, object | undefined]>([
    ["static-usage-limit-policy", "{ threshold: 0.9 }", { policy: "static", ceiling: 0.9 }],
    ["static-usage-limit-policy", "{}", undefined],
    [HOLDBACK, "{ minCeiling: 0.4 }", { policy: "priority-holdback", min: 0.4, max: 1 }],
    [
      HOLDBACK,
      "{ strategy: stepwise-spread, minCeiling: 0.4, maxCeiling: 0.8 }",
      { policy: "priority-holdback", min: 0.4, max: 0.8 },
    ],
    [HOLDBACK, "{ domain: value, minCeiling: 0.2 }", { policy: "static", ceiling: [1, 0.6, 0.2] }],
    [
      HOLDBACK,
      "{ domain: explicit, ceilings: { 10: 1, 0: 0.8, -10: 0.5 } }",
      { policy: "static", ceiling: [1, 0.8, 0.5] },
    ],
    [HOLDBACK, "{ minCeiling: 0 }", undefined],
    ["soft-reflective-ceiling-policy", "{}", undefined],
  ])("%s %s", (type, parameters, expected) => {
    expect(ceilingsOf(limited(type, parameters))).toEqual(expected);
  });

  test.each([
    "{ minCeiling: 2 }",
    "{}",
    "{ domain: rnk, minCeiling: 0.4 }",
    "{ domain: explicit }",
    "{ domain: explicit, ceilings: { 10: high } }",
  ])("%s is a fault", (parameters) => {
    expect(translate(limited(HOLDBACK, parameters)).faults).toHaveLength(1);
  });

  test("a ceiling of a band that is not there, and a band without one, are named", () => {
    const parameters = "{ domain: explicit, ceilings: { 10: 0.9, 5: 0.7 } }";
    const { notes, config } = translate(limited(HOLDBACK, parameters, "[{ priority: 10 }]"));
    expect(config?.flow).toMatchObject({ ceilings: { policy: "static", ceiling: [0.9, 1] } });
    expect(notes.filter(({ text }) => /no band has|has no ceiling/.test(text))).toHaveLength(2);
  });
});

describe("bands", () => {
  const bandsOf = (section: string) =>
    (configOf(`flowControl: ${section}\n`).flow as { bands?: object }).bands;

  test("one without a limit is what there is without any", () => {
    expect(bandsOf("{ priorityBands: [{ priority: 0 }] }")).toBeUndefined();
    expect(bandsOf("{ defaultPriorityBand: {} }")).toBeUndefined();
    expect(bandsOf("{ defaultPriorityBand: { maxRequests: 9 } }")).toEqual([
      { name: "0", maxRequests: 9 },
    ]);
  });

  test("0 is the default limit there, and so it is left out", () => {
    expect(bandsOf("{ priorityBands: [{ priority: 1, maxRequests: 0 }] }")).toEqual([
      { name: "1" },
      { name: "0" },
    ]);
  });

  test("a limit of less than nothing is a fault", () => {
    const { faults } = translate("flowControl: { maxRequests: -1 }\n");
    expect(linesOf(faults)).toEqual(["3 flowControl.maxRequests"]);
  });
});

describe("times and sizes", () => {
  test.each([
    ["0s", undefined],
    ["90s", "90s"],
  ])("a time to live of %s", (given, ttl) => {
    const { flow } = configOf(`flowControl: { defaultRequestTTL: ${given} }\n`);
    expect((flow as { ttl?: string }).ttl).toBe(ttl);
  });

  test.each<[unknown, number | undefined]>([
    [100, 100],
    ["100", 100],
    ["1k", 1000],
    ["1.5Ki", 1536],
    ["2e3", 2000],
    ["100m", 1],
    ["4Gi", 2 ** 32],
    ["", undefined],
    ["1 k", undefined],
    ["k", undefined],
    [true, undefined],
    [Number.NaN, undefined],
  ])("the quantity %j is %j", (given, expected) => {
    expect(readQuantity(given)).toBe(expected);
  });
});

test("whatever stands in a file, it is translated into a config, or its faults are told", () => {
  const keys = [
    "plugins",
    "flowControl",
    "featureGates",
    "schedulingProfiles",
    "saturationDetector",
  ];
  const value = fc.letrec((tie) => ({
    node: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom<unknown>(
        null,
        0,
        -1,
        "x",
        "60s",
        "flowControl",
        true,
        "utilization-detector",
      ),
      fc.array(tie("node"), { maxLength: 3 }),
      fc.dictionary(
        fc.constantFrom(
          ...["type", "name", "parameters", "pluginRef", "plugins", "priorityBands", "priority"],
          ...["maxRequests", "queueDepthThreshold", "headroom", "ceilings", "__proto__", "weight"],
        ),
        tie("node"),
        { maxKeys: 3 },
      ),
    ),
  })).node;
  const root = fc.dictionary(fc.constantFrom(...keys), value);
  fc.assert(
    fc.property(root, (given) => {
      const text = JSON.stringify({
        apiVersion: "llm-d.ai/v1",
        kind: "EndpointPickerConfig",
        ...given,
      });
      const { config, faults, notes } = translateEpp(text);
      expect(config === undefined).toBe(faults.length > 0);
      for (const { line, column } of [...faults, ...notes]) {
        expect(line).toBe(1);
        expect(column).toBeGreaterThan(0);
      }
      if (config !== undefined) expect(readConfigText(JSON.stringify(config)).faults).toEqual([]);
    }),
    { numRuns: 2000 },
  );
});
