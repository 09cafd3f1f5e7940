// What is to be run, and the same as the page's address: a built-in scenario, two policies, a seed, and
// what was changed, each change as `path=value`.

import { POLICY_NAMES } from "../../sim/policy-names";
import type { PolicyName } from "../../sim/scenario";
import { SCENARIO_NAMES, SCENARIOS } from "../../sim/scenarios";
import { leaves, type Tree, valueAt, withValue } from "./tree";

/** What is to be run. */
export interface PageState {
  /** The built-in scenario that it began with. */
  readonly base: string;
  readonly tree: Tree;
  readonly a: PolicyName;
  readonly b: PolicyName;
  readonly seed: number;
}

/** The page as it opens. */
export const FIRST_STATE: PageState = {
  base: "thundering-herd",
  tree: builtIn("thundering-herd"),
  a: "original",
  b: "plimsoll",
  seed: 1,
};

/** A built-in scenario as a tree. */
export function builtIn(name: string): Tree {
  return structuredClone(SCENARIOS[name] ?? SCENARIOS["thundering-herd"]) as unknown as Tree; // plain data
}

/** The state as the text after `#`. */
export function toHash(state: PageState): string {
  const words = new URLSearchParams({
    scenario: state.base,
    a: state.a,
    b: state.b,
    seed: String(state.seed),
  });
  const base = builtIn(state.base);
  const now = new Map(leaves(withoutTraces(state.tree)));
  for (const [path, value] of now) {
    if (JSON.stringify(valueAt(base, path)) !== JSON.stringify(value)) {
      words.append(
        path,
        typeof value === "string" && !isJson(value) ? value : JSON.stringify(value),
      );
    }
  }
  for (const [path] of leaves(base)) if (!now.has(path)) words.append(path, "");
  return words.toString().replaceAll("%2F", "/").replaceAll("%25", "%25");
}

/** The state that a hash names; what it does not name is as the page opens. */
export function fromHash(hash: string): PageState {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const take = (key: string) => {
    const value = words.get(key);
    words.delete(key);
    return value;
  };
  const policy = (key: "a" | "b") => {
    const name = take(key);
    return POLICY_NAMES.find((one) => one === name) ?? FIRST_STATE[key];
  };
  const name = take("scenario") ?? FIRST_STATE.base;
  const base = SCENARIO_NAMES.includes(name) ? name : FIRST_STATE.base;
  const [a, b] = [policy("a"), policy("b")];
  const seed = Number(take("seed") ?? 1);
  let tree = builtIn(base);
  // What is taken away from lists goes from their end on.
  for (const [path, text] of [...words].reverse())
    if (text === "") tree = withValue(tree, path, undefined);
  for (const [path, text] of words) {
    if (text !== "") tree = withValue(tree, path, isJson(text) ? JSON.parse(text) : text);
  }
  return { base, tree: withoutHoles(tree), a, b, seed: Number.isSafeInteger(seed) ? seed : 1 };
}

/** A trace is too long for an address; its tenant keeps its place. */
function withoutTraces(tree: Tree): Tree {
  const { traffic } = tree;
  if (!Array.isArray(traffic)) return tree;
  return { ...tree, traffic: traffic.map(({ trace: _, ...tenant }: Tree) => tenant) };
}

function withoutHoles(tree: Tree): Tree {
  const clean = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.filter(
          (one) => one !== undefined && !(isObject(one) && Object.keys(one).length === 0),
        )
      : value;
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, clean(value)]));
}

function isObject(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isJson(text: string): boolean {
  return /^(-?\d+(\.\d+)?(e[+-]?\d+)?|true|false|null|\[.*\]|".*")$/i.test(text);
}
