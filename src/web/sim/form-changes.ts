// What a change of one field means for the scenario around it.

import { type Tree, valueAt, withValue } from "./tree";

/** The scenario with another value at a path, made so that it can stand there. */
export function withChange(tree: Tree, path: string, value: unknown): Tree {
  const changed = withValue(withRoomFor(tree, path, value), path, value);
  // A controller all of whose options are the defaults is still on.
  const wasOn = path.startsWith("flow.") && isOn(valueAt(tree, "flow"));
  return wasOn && valueAt(changed, "flow") === undefined
    ? withValue(changed, "flow", true)
    : changed;
}

/** Short forms are written out where one of their parts is set. */
function withRoomFor(tree: Tree, path: string, value: unknown): Tree {
  const holder = path.replace(/\.[^.]+$/, "");
  const fixed = valueAt(tree, holder);
  if (/\.(prompt|output)$/.test(holder) && typeof fixed === "number") {
    return withValue(tree, holder, { mean: fixed, cv: 0 });
  }
  if (!path.startsWith("flow.") || value === undefined) return tree;
  let at = typeof valueAt(tree, "flow") === "object" ? tree : withValue(tree, "flow", {});
  if (!path.startsWith("flow.ceilings.")) return at;
  at = withValue(at, "flow.ceilings.policy", "priority-holdback");
  for (const end of ["flow.ceilings.min", "flow.ceilings.max"]) {
    if (valueAt(at, end) === undefined) at = withValue(at, end, 1);
  }
  return at;
}

function isOn(flow: unknown): boolean {
  return flow !== undefined && flow !== false;
}
