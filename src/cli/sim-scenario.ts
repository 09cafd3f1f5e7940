// Where a scenario of the command line comes from: a built-in one or a file, changed by --set, --policy
// and --trace; and the values that --sweep runs through.

import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { nearestKey } from "../nearest";
import type { Scenario } from "../sim/scenario";
import { SCENARIO_NAMES } from "../sim/scenarios";
import { readTrace, type Trace } from "../sim/traces";
import { parseYaml, printFaults } from "../yaml-file";
import { UsageError } from "./load-config";

/** A scenario as a tree of plain values, not checked yet. */
export type Tree = Record<string, unknown>;

/** One value of a sweep. */
export interface SweepValue {
  readonly path: string;
  readonly value: unknown;
}

const MOST_SWEEP_VALUES = 1000;
/** Options of the detector may be written without its name, as everywhere else. */
const DETECTOR_KEYS = new Set([
  "queueDepthThreshold",
  "kvCacheUtilThreshold",
  "metricsStalenessThreshold",
  "headroom",
  "stalenessPolicy",
  "holdFor",
  "aggregation",
]);

/** The text of a built-in scenario, or of a file. */
export async function readScenarioText(name: string): Promise<{ text: string; file: string }> {
  if (SCENARIO_NAMES.includes(name)) {
    const url = new URL(`./scenarios/${name}.yaml`, import.meta.url);
    return { text: await readFile(url, "utf8"), file: `${name}.yaml` };
  }
  if (/^[\w-]+$/.test(name)) {
    const near = nearestKey(name, SCENARIO_NAMES);
    const hint = near === undefined ? "" : `; did you mean ${near}?`;
    throw new UsageError(
      `there is no scenario ${name}${hint || "."} Built in are ${SCENARIO_NAMES.join(", ")}; a file ends in .yaml`,
    );
  }
  return { text: await readFile(name, "utf8"), file: name };
}

/** A scenario's values, with the changes that --set asks for. */
export function readTree(text: string, file: string, changes: readonly string[]): Tree {
  const parsed = parseYaml(text);
  if (parsed.faults !== undefined) throw new UsageError(printFaults(file, parsed.faults));
  const value = parsed.value ?? {};
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UsageError(`${file}:1:1: a scenario is an object, see: plimsoll sim --help`);
  }
  let tree = value as Tree; // it is an object
  for (const change of changes) {
    const { path, text: setting } = splitSetting("--set", change);
    tree = withValue(tree, path, readValue(change, setting));
  }
  return tree;
}

/** The same tree with another value at a path such as `scrape.interval` or `endpoints.0.count`. */
export function withValue(tree: Tree, path: string, value: unknown): Tree {
  const keys = (DETECTOR_KEYS.has(path) ? `detector.${path}` : path).split(".");
  const copy = structuredClone(tree);
  let at: unknown = copy;
  for (const [i, key] of keys.entries()) {
    const holder = at as Record<string, unknown>; // checked below, and the root is an object
    const isLast = i === keys.length - 1;
    if (Array.isArray(at) && !(key in at)) {
      throw new UsageError(`${path}: there is no ${keys.slice(0, i + 1).join(".")}`);
    }
    // Keys of the prototype are no options.
    const known = Object.hasOwn(holder, key) ? holder[key] : undefined;
    const next = isLast ? value : typeof known === "object" && known !== null ? known : {};
    Object.defineProperty(holder, key, {
      value: next,
      writable: true,
      enumerable: true,
      configurable: true,
    });
    at = next;
  }
  return copy;
}

/** The values of `path=2..20`, `path=2..20:2` or `path=a,b,c`. */
export function readSweep(text: string): SweepValue[] {
  const { path, text: list } = splitSetting("--sweep", text);
  const range = /^(-?[\d.]+)\.\.(-?[\d.]+)(?::([\d.]+))?$/.exec(list);
  if (range === null) {
    return list.split(",").map((one) => ({ path, value: readValue(text, one.trim()) }));
  }
  const [from, to, step = 1] = range.slice(1).map((one) => (one === undefined ? 1 : Number(one)));
  const count = Math.floor(((to as number) - (from as number)) / step + 1e-9) + 1;
  if (!(step > 0) || !(count >= 1) || count > MOST_SWEEP_VALUES) {
    throw new UsageError(
      `--sweep ${text}: a range is from..to or from..to:step, of at most ${MOST_SWEEP_VALUES} values`,
    );
  }
  // Rounded, so that 0.1 steps print as they were written.
  const values = Array.from({ length: count }, (_, i) => (from as number) + i * step);
  return values.map((value) => ({ path, value: Number(value.toPrecision(12)) }));
}

/** Puts a trace in the place of the first tenant's traffic; the scenario lasts as long as it. */
export async function withTrace(
  tree: Tree,
  file: string,
  options: {
    readonly skipBad: boolean;
    readonly timeScale: number;
    readonly keepDuration: boolean;
  },
): Promise<{ tree: Tree; trace: Trace }> {
  const { skipBad, timeScale, keepDuration } = options;
  const trace = readTrace(await readFile(file, "utf8"), { name: file, skipBad });
  const [first, ...others] = Array.isArray(tree.traffic) ? (tree.traffic as Tree[]) : [];
  const { prompt: _prompt, output: _output, ...kept } = first ?? {};
  const arrival = { process: "trace", timeScale };
  const last = trace.requests.at(-1)?.timeMs ?? 0;
  const traffic = [{ ...kept, arrival, trace: trace.requests }, ...others];
  const duration = keepDuration ? tree.duration : Math.ceil(last * timeScale) + 1;
  return { tree: { ...tree, traffic, duration }, trace };
}

/** What a tree is, for whoever checks it. */
export function asScenario(tree: Tree): Scenario {
  return tree as unknown as Scenario; // simulate checks every part of it
}

function splitSetting(flag: string, text: string): { path: string; text: string } {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageError(`${flag} takes path=value, got ${JSON.stringify(text)}`);
  return { path: text.slice(0, at), text: text.slice(at + 1) };
}

function readValue(whole: string, text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
    throw new UsageError(`${whole}: the value is no YAML (${why})`);
  }
}
