// A scenario as a tree of plain values: reading and writing at a path, and what differs from another.

/** A scenario that has not been checked. */
export type Tree = Record<string, unknown>;

/** A value at a path; `undefined` where the other tree has one and this has none. */
export type Change = readonly [path: string, value: unknown];

/** The value at a path such as `endpoints.0.count`; undefined where there is none. */
export function valueAt(tree: unknown, path: string): unknown {
  let at = tree;
  for (const key of path.split(".")) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Tree)[key];
  }
  return at;
}

/**
 * A copy with another value at a path; `undefined` takes the key away. An entry that is taken out of a
 * list leaves a hole, so that the others keep their numbers, see `withoutHoles`. A list grows by one
 * entry at its end; a path to any other place of it changes nothing.
 */
export function withValue<T>(tree: T, path: string, value: unknown): T {
  const [key = "", ...rest] = path.split(".");
  const next = (old: unknown) =>
    rest.length === 0 ? value : withValue(old ?? blankFor(rest[0]), rest.join("."), value);
  if (Array.isArray(tree)) {
    const index = Number(key);
    if (!isIndex(key) || index > tree.length) return tree;
    const copy = [...tree];
    copy[index] = next(copy[index]);
    return copy as T;
  }
  const copy: Tree = isObject(tree) ? { ...(tree as Tree) } : {};
  const changed = next(Object.hasOwn(copy, key) ? copy[key] : undefined);
  if (changed === undefined || (rest.length > 0 && isEmpty(changed))) delete copy[key];
  else defineValue(copy, key, changed);
  return copy as T;
}

/** A copy without the holes of its lists. */
export function withoutHoles(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((one) => one !== undefined).map(withoutHoles);
  if (!isObject(value)) return value;
  const copy: Tree = {};
  for (const [key, one] of Object.entries(value)) defineValue(copy, key, withoutHoles(one));
  return copy;
}

/**
 * What makes `now` out of `base`: every leaf that differs, and the highest place of all that is gone.
 * A list of plain values is one leaf.
 */
export function* changes(base: unknown, now: unknown, path = ""): Generator<Change> {
  if (isLeaf(now)) {
    if (JSON.stringify(base) !== JSON.stringify(now)) yield [path, now];
    return;
  }
  const isSameKind = isLeaf(base) === false && Array.isArray(base) === Array.isArray(now);
  if (!isSameKind && base !== undefined) yield [path, undefined];
  const old = isSameKind ? (base as Tree) : {};
  const keys = new Set([...Object.keys(old), ...Object.keys(now as Tree)]);
  for (const key of keys) {
    const at = path === "" ? key : `${path}.${key}`;
    const [was, is] = [valueAt(old, key), valueAt(now, key)];
    if (is !== undefined) yield* changes(was, is, at);
    else if (was !== undefined) yield [at, undefined];
  }
}

/** Plain values, lists of them, and what is empty, which has nothing below it. */
function isLeaf(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every((one) => typeof one !== "object" || one === null);
  return Object.keys(value).length === 0;
}

/** Written as an own property whatever its name: `__proto__` is a key as any other. */
function defineValue(tree: Tree, key: string, value: unknown): void {
  const how = { enumerable: true, writable: true, configurable: true };
  Object.defineProperty(tree, key, { value, ...how });
}

function blankFor(key = ""): unknown {
  return isIndex(key) ? [] : {};
}

function isIndex(key: string): boolean {
  return /^(0|[1-9]\d{0,8})$/.test(key);
}

function isEmpty(value: unknown): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}

function isObject(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
