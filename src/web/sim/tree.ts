// A scenario as a tree of plain values: reading and writing at a path, and what differs from another.

/** A scenario that has not been checked. */
export type Tree = Record<string, unknown>;

/** The value at a path such as `endpoints.0.count`; undefined where there is none. */
export function valueAt(tree: unknown, path: string): unknown {
  let at = tree;
  for (const key of path.split(".")) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Tree)[key];
  }
  return at;
}

/** A copy with another value at a path; `undefined` takes the key away. */
export function withValue<T>(tree: T, path: string, value: unknown): T {
  const [key = "", ...rest] = path.split(".");
  if (Array.isArray(tree)) {
    const copy = [...tree];
    const index = Number(key);
    copy[index] = rest.length === 0 ? value : withValue(copy[index] ?? {}, rest.join("."), value);
    return copy as T;
  }
  const copy: Tree = typeof tree === "object" && tree !== null ? { ...(tree as Tree) } : {};
  const next = rest.length === 0 ? value : withValue(copy[key] ?? {}, rest.join("."), value);
  const isEmpty =
    rest.length > 0 && typeof next === "object" && Object.keys(next as Tree).length === 0;
  if (next === undefined || isEmpty) delete copy[key];
  else
    Object.defineProperty(copy, key, {
      value: next,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  return copy as T;
}

/** Every leaf of a tree with its path; a list of plain values is a leaf. */
export function* leaves(value: unknown, path = ""): Generator<[path: string, value: unknown]> {
  const isList = Array.isArray(value) && value.every((one) => typeof one !== "object");
  if (typeof value !== "object" || value === null || isList) {
    yield [path, value];
    return;
  }
  for (const [key, one] of Object.entries(value))
    yield* leaves(one, path === "" ? key : `${path}.${key}`);
}
