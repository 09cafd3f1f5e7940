// plimsoll check --from-epp: what maps is taken, what does not is named with its line, and faults are told.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { readConfigText } from "../../src/cli/config-file";
import { findEppTexts } from "../../src/cli/epp/document";
import { translateEpp } from "../../src/cli/epp/translate";
import { plimsoll } from "./run";

const pathOf = (name: string) => fileURLToPath(new URL(`epp/${name}.yaml`, import.meta.url));
const read = (name: string) => readFileSync(pathOf(name), "utf8");
/** Lines with what was found there, shortened to what is told apart. */
const linesOf = (found: readonly { line: number; path: string }[]) =>
  found.map(({ line, path }) => `${line} ${path}`);

const HEAD = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n";

describe("files as they are met", () => {
  test.each<[string, object]>([
    [
      "baseline",
      {
        queueDepthThreshold: 8,
        kvCacheUtilThreshold: 0.85,
        metricsStalenessThreshold: "300ms",
        headroom: 0.2,
        flow: { aggregation: "mean" },
      },
    ],
    [
      "tenants",
      {
        queueDepthThreshold: 4,
        kvCacheUtilThreshold: 0.9,
        metricsStalenessThreshold: "200ms",
        headroom: 0.25,
        stalenessPolicy: "ignore",
        flow: {
          aggregation: "mean",
          maxRequests: 2000,
          ttl: "45s",
          bands: [
            { name: "100" },
            { name: "0", maxRequests: 1500 },
            { name: "-10", maxRequests: 200 },
          ],
          ceilings: { policy: "priority-holdback", min: 0.5, max: 0.95 },
        },
        headers: { tenant: "x-llm-d-inference-fairness-id" },
      },
    ],
    [
      "oldest",
      {
        queueDepthThreshold: 10,
        kvCacheUtilThreshold: 0.75,
        metricsStalenessThreshold: "1s",
        headroom: 0,
        flow: { aggregation: "mean" },
      },
    ],
    [
      "split",
      {
        queueDepthThreshold: 5,
        kvCacheUtilThreshold: 0.8,
        metricsStalenessThreshold: "200ms",
        headroom: 0,
      },
    ],
  ])("%s becomes a config that plimsoll takes", async (name, expected) => {
    const { code, out } = await plimsoll(["check", "--from-epp", pathOf(name)]);
    expect([code, parse(out)]).toEqual([0, expected]);
    expect(readConfigText(out).faults).toEqual([]);
  });

  test("names each line that does not map", async () => {
    const { err } = await plimsoll(["check", "--from-epp", pathOf("tenants")]);
    const told = err.trim().split("\n");
    expect(told.map((line) => line.replace(pathOf("tenants"), "f").replace(/(: .*?):.*/, "$1"))) //
      .toEqual([
        "f:6:5: featureGates.1",
        "f:13:7: plugins.0.parameters.headroom",
        "f:15:7: plugins.0.parameters.inFlightLoadProducerName",
        "f:16:5: plugins.1",
        "f:27:5: plugins.5",
        "f:28:5: plugins.6",
        "f:33:9: schedulingProfiles.0.plugins.0.weight",
        "f:36:3: flowControl.maxBytes",
        "f:39:3: flowControl.enableEviction",
        "f:43:3: flowControl.priorityBands",
        "f:43:3: flowControl.priorityBands",
        "f:46:7: flowControl.priorityBands.0.orderingPolicyRef",
        "f:49:7: flowControl.priorityBands.1.maxBytes",
      ]);
    expect(err).toContain("set headers.priority to x-llm-d-inference-objective");
  });

  test("says why servers apart for prefill and decode, and other detectors, do not map", () => {
    const { notes } = translateEpp(read("split"));
    const textAt = (line: number) => notes.find((note) => note.line === line)?.text;
    expect(textAt(5)).toMatch(/^concurrency-detector: .*the thresholds are the defaults/);
    expect(textAt(6)).toMatch(/prefill and decode on servers of their own/);
    expect(textAt(9)).toMatch(/no index of prefixes/);
    expect(textAt(10)).toBe("my-own-scorer: does not map: no counterpart");
    expect(textAt(20)).toMatch(/flow control is not switched on/);
  });

  test("all faults are told at once, each with its place", async () => {
    const { code, out, err } = await plimsoll(["check", "--from-epp", pathOf("faulty")]);
    expect([code, err]).toEqual([1, ""]);
    expect(linesOf(translateEpp(read("faulty")).faults)).toEqual([
      "3 featureGates.0",
      "7 plugins.0.parameters.queueDepthThreshold",
      "8 plugins.0.parameters.kvCacheUtilThreshold",
      "9 plugins.0.parameters.metricsStalenessThreshold",
      "10 plugins.0.parameters.headrom",
      "11 plugins.1",
      "13 plugins.2",
      "16 plugins.3.parameters.minCeiling",
      "18 schedulingProfiles.0",
      "19 schedulingProfiles.0.plugins.0.pluginRef",
      "21 flowControl.defaultRequestTTL",
      "25 flowControl.priorityBands.1",
      "26 flowControl.priorityBands.1.maxRequests",
    ]);
    expect(out).toContain('10:7: plugins.0.parameters.headrom: unknown option; did you mean "head');
  });

  test("--json has config, faults and notes", async () => {
    const good = await plimsoll(["check", "--from-epp", pathOf("oldest"), "--json"]);
    const { config, notes, faults } = JSON.parse(good.out);
    expect([config.queueDepthThreshold, notes[0].line, faults]).toEqual([10, 1, []]);
    const bad = await plimsoll(["check", "--from-epp", pathOf("faulty"), "--json"]);
    expect([bad.code, JSON.parse(bad.out).config]).toEqual([1, undefined]);
  });

  test("standard input is read as -, a file that is not there is wrong usage", async () => {
    const { code, out } = await plimsoll(["check", "--from-epp", "-"], { input: read("oldest") });
    expect([code, parse(out).queueDepthThreshold]).toEqual([0, 10]);
    expect((await plimsoll(["check", "--from-epp", "/nowhere.yaml"])).code).toBe(2);
  });
});

describe("where the config stands", () => {
  test("in a ConfigMap among other resources: lines and columns are the file's", () => {
    const [found, ...more] = findEppTexts(read("configmap"), "f");
    expect([found?.name, more]).toEqual(["f", []]);
    const { config, notes } = translateEpp(found?.text ?? "");
    expect(config?.queueDepthThreshold).toBe(6);
    expect(notes.map(({ line, column, path }) => [line, column, path])).toEqual([
      [13, 5, "featureGates"],
      [19, 7, "plugins.1"],
    ]);
  });

  test("as a part of a larger resource", () => {
    const source = `spec:\n  config:\n${(`${HEAD}plugins:\n- type: queue-scorer\n`).replace(/^(?=.)/gm, "    ")}`;
    const [found] = findEppTexts(source, "f");
    const { notes } = translateEpp(found?.text ?? "");
    expect(linesOf(notes)).toContain("6 plugins.0");
  });

  test("as JSON, and as a text in quotes, whose lines are its own", () => {
    const inner = JSON.stringify({ apiVersion: "llm-d.ai/v1", kind: "EndpointPickerConfig" });
    expect(translateEpp(findEppTexts(inner, "f")[0]?.text ?? "").faults).toEqual([]);
    const [found] = findEppTexts(`a: 1\nb: ${JSON.stringify(`${HEAD}plugins: 1\n`)}\n`, "f");
    expect(found?.name).toBe("f, the text at line 2");
    expect(linesOf(translateEpp(found?.text ?? "").faults)).toEqual(["3 plugins"]);
  });

  test("two of them are one too many", async () => {
    const input = `${HEAD}---\n${HEAD}`;
    const { code, err } = await plimsoll(["check", "--from-epp", "-"], { input });
    expect([code, err]).toEqual([1, "-: holds 2 EPP configs: give them one by one\n"]);
  });

  test("what is none is told", () => {
    for (const text of ["", "endpoints: []", "- 1", "kind: Service", "a: [", "\u0000"]) {
      const [found] = findEppTexts(text, "f");
      expect(translateEpp(found?.text ?? "").faults.length, text).toBeGreaterThan(0);
    }
  });

  test("an API that is not known is read, and told", () => {
    const { config, notes } = translateEpp("apiVersion: other/v9\nkind: EndpointPickerConfig\n");
    expect([config?.queueDepthThreshold, notes[0]?.path]).toEqual([5, "apiVersion"]);
    expect(translateEpp("kind: EndpointPickerConfig\n").faults[0]?.path).toBe("apiVersion");
  });
});
