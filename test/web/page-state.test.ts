// The page's address: whatever the form can make of a scenario comes back from it.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { POLICY_NAMES } from "../../src/sim/policy-names";
import { SCENARIO_NAMES } from "../../src/sim/scenarios";
import { GROUPS } from "../../src/web/sim/fields";
import {
  builtIn,
  FIRST_STATE,
  fromHash,
  type PageState,
  toHash,
} from "../../src/web/sim/page-state";
import { type Tree, valueAt, withValue } from "../../src/web/sim/tree";

function comesBack(base: string, tree: Tree): void {
  const state: PageState = { ...FIRST_STATE, base, tree };
  expect(fromHash(toHash(state))).toEqual(state);
}

/** A value as a field of the form may leave it. */
const VALUE = fc.oneof(
  fc.constant(undefined),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => x + 0),
  fc.boolean(),
  fc.constantFrom(
    "60%",
    "200ms",
    "007",
    "[oops]",
    '"',
    "{}",
    "null",
    "true",
    "1e3",
    "a&b=c#d",
    "ä",
  ),
  fc.string({ minLength: 1 }),
  fc.array(fc.nat()),
);

/** One thing that a user does. */
const EDIT = fc.record({
  group: fc.constantFrom(...GROUPS),
  field: fc.nat(),
  entry: fc.nat(),
  action: fc.constantFrom("set", "set", "set", "add", "remove"),
  value: VALUE,
});

function applyEdit(tree: Tree, edit: typeof EDIT extends fc.Arbitrary<infer E> ? E : never): Tree {
  const { list, fields } = edit.group;
  const { path } = fields[edit.field % fields.length] ?? { path: "duration" };
  if (list === undefined) return withValue(tree, path, edit.value);
  const found = valueAt(tree, list.path);
  const entries = Array.isArray(found) ? found : [];
  if (edit.action === "add") return withValue(tree, list.path, [...entries, list.blank]);
  if (entries.length === 0) return tree;
  const i = edit.entry % entries.length;
  if (edit.action === "set") return withValue(tree, `${list.path}.${i}.${path}`, edit.value);
  const rest = entries.filter((_, k) => k !== i);
  return withValue(tree, list.path, rest.length > 0 ? rest : undefined);
}

describe("the address", () => {
  test("brings back whatever the form makes of any built-in scenario", () => {
    const edits = fc.array(EDIT, { maxLength: 12 });
    const check = (base: string, all: readonly Parameters<typeof applyEdit>[1][]) =>
      comesBack(base, all.reduce(applyEdit, builtIn(base)));
    fc.assert(fc.property(fc.constantFrom(...SCENARIO_NAMES), edits, check), { numRuns: 2000 });
  });

  test("brings back policies and seeds", () => {
    for (const a of POLICY_NAMES) {
      const state: PageState = { ...FIRST_STATE, a, b: "oracle", seed: -7 };
      expect(fromHash(toHash(state))).toEqual(state);
    }
  });

  test("brings back a flow controller that was switched off, in one word", () => {
    const tree = withValue(builtIn("two-tenants"), "flow", undefined);
    comesBack("two-tenants", tree);
    expect(toHash({ ...FIRST_STATE, base: "two-tenants", tree })).toMatch(/&flow=$/);
  });

  test("brings back the first fault of a scenario that had none", () => {
    comesBack(
      "thundering-herd",
      withValue(builtIn("thundering-herd"), "faults", [{ kind: "dies" }]),
    );
  });

  test("is short where nothing was changed, and readable where something was", () => {
    expect(toHash(FIRST_STATE)).toBe("scenario=thundering-herd&a=original&b=plimsoll&seed=1");
    const tree = withValue(builtIn("thundering-herd"), "scrape.interval", "1s");
    expect(toHash({ ...FIRST_STATE, tree })).toMatch(/&scrape\.interval=1s$/);
  });

  test("leaves a trace out: it is too long", () => {
    const tree = withValue(builtIn("thundering-herd"), "traffic.0.trace", [{ timeMs: 1 }]);
    expect(toHash({ ...FIRST_STATE, tree })).not.toMatch(/trace/);
  });

  test("opens the page whatever it says", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (path, word) => {
        fromHash(new URLSearchParams({ [path]: word }).toString());
      }),
    );
    const odd =
      "duration=[oops]&routers=007&seed=x&a=nobody&scenario=none&traffic.x.y=1&endpoints=";
    expect(fromHash(odd)).toMatchObject({ base: "thundering-herd", a: "original", seed: 1 });
  });

  test("makes no list longer than it says: a far index changes nothing", () => {
    expect(fromHash("endpoints.99999999.count=1")).toEqual(FIRST_STATE);
  });

  test("reaches no prototype", () => {
    fromHash("__proto__.polluted=1&constructor.prototype.polluted=1&scrape.__proto__.polluted=1");
    expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
  });
});
