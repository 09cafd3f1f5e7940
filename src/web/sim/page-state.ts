// What is to be run, and the same as the page's address: a built-in scenario, two policies, a seed, and
// what was changed, each change as `path=value`.

import { POLICY_NAMES } from "../../sim/policy-names";
import type { PolicyName } from "../../sim/scenario";
import { SCENARIO_NAMES, SCENARIOS } from "../../sim/scenarios";
import { changes, type Tree, withoutHoles, withValue } from "./tree";

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
  const { base, a, b, seed } = state;
  const words = new URLSearchParams({ scenario: base, a, b, seed: String(seed) });
  for (const [path, value] of changes(builtIn(base), withoutTraces(state.tree))) {
    words.append(path, asWord(value));
  }
  return words.toString().replaceAll("%2F", "/");
}

/** The state that a hash names; what it does not name, or names wrongly, is as the page opens. */
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
  // What is gone comes first: what has taken its place stands among the others.
  for (const [path, word] of words) if (word === "") tree = withValue(tree, path, undefined);
  for (const [path, word] of words) if (word !== "") tree = withValue(tree, path, fromWord(word));
  // A tree without holes is a tree.
  tree = withoutHoles(tree) as Tree;
  return { base, tree, a, b, seed: Number.isSafeInteger(seed) ? seed : 1 };
}

/** A trace is too long for an address; its tenant keeps its place. */
function withoutTraces(tree: Tree): Tree {
  const { traffic } = tree;
  if (!Array.isArray(traffic)) return tree;
  return { ...tree, traffic: traffic.map(({ trace: _, ...tenant }: Tree) => tenant) };
}

/** A value as it stands in the address: text as it is, unless it would be read as something else. */
function asWord(value: unknown): string {
  if (value === undefined) return "";
  const isPlain = typeof value === "string" && value !== "" && fromWord(value) === value;
  return isPlain ? value : JSON.stringify(value);
}

/** Numbers, yes and no, lists and quoted text are JSON; all else is text as it stands. */
function fromWord(word: string): unknown {
  try {
    return JSON.parse(word);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return word;
  }
}
