// Events: whoever takes them in turn knows what somebody who comes new is told.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Encoder } from "../../src/dashboard/encoder";
import type { FullEvent, UpdateEvent } from "../../src/dashboard/wire";
import { Model } from "../../src/web/dashboard/model";
import { readEvent, sourceOf } from "./sources";

function take(model: Model, text: string): string {
  const { name, data } = readEvent(text);
  if (name === "full") model.takeFull(data as FullEvent);
  else model.takeUpdate(data as UpdateEvent);
  return name;
}

function known({ head, endpoints, gates, history, drops }: Model): unknown {
  return { head, endpoints, gates, history: history.items, drops: drops.items };
}

const drop = { reason: "saturated", status: 429, message: "full", model: null, band: null };

describe("a page that takes every event", () => {
  test("knows the same as one that comes new, whatever has happened", () => {
    const change = fc.oneof(
      fc.record({ what: fc.constant("report" as const), i: fc.nat(5), waiting: fc.nat(9) }),
      fc.record({ what: fc.constantFrom("hold", "lease", "add", "remove"), i: fc.nat(5) }),
      fc.record({ what: fc.constantFrom("point", "drop"), i: fc.nat(80) }),
    );
    fc.assert(
      fc.property(fc.array(fc.array(change, { maxLength: 6 }), { maxLength: 20 }), (rounds) => {
        const source = sourceOf(["e0", "e1", "e2"]);
        const encoder = new Encoder(source);
        const model = new Model();
        take(model, encoder.next());
        for (const round of rounds) {
          for (const one of round) {
            const id = `e${one.i}`;
            const isThere = source.pool.get(id) !== undefined;
            if (one.what === "add" && !isThere && one.i < 6) source.pool.add(id);
            else if (one.what === "point") source.journal.record();
            else if (one.what === "drop") {
              for (let i = 0; i < one.i; i++) {
                source.journal.drops.add({ ...drop, time: i, lastedMs: i });
              }
            } else if (!isThere) continue;
            else if (one.what === "remove") source.pool.remove(id);
            else if (one.what === "hold") source.held.add(id);
            else if (one.what === "lease") source.pool.acquire(id);
            else if ("waiting" in one) {
              source.pool.report(id, { waitingQueueSize: one.waiting, kvCacheUsagePercent: 0.1 });
            }
          }
          take(model, encoder.next());
          const fresh = new Model();
          expect(take(fresh, encoder.full())).toBe("full");
          expect(known(model)).toEqual(known(fresh));
        }
      }),
      { numRuns: 60 },
    );
  });

  test("is told everything anew when other endpoints are there", () => {
    const source = sourceOf(["a", "b"]);
    const encoder = new Encoder(source);
    expect(readEvent(encoder.next()).name).toBe("full");
    expect(readEvent(encoder.next()).name).toBe("update");
    source.pool.remove("a");
    expect(readEvent(encoder.next()).name).toBe("full");
    source.pool.get("b")?.update({ labels: { zone: "x" } });
    expect(readEvent(encoder.next()).name).toBe("full");
    expect(readEvent(encoder.next()).name).toBe("update");
  });
});

test("an update names what has changed, and nothing else", () => {
  const source = sourceOf(["a", "b", "c"]);
  const encoder = new Encoder(source);
  encoder.next();
  source.pool.report("b", { waitingQueueSize: 9, kvCacheUsagePercent: null });
  source.held.add("c");
  const { rows, gates } = readEvent(encoder.next()).data as UpdateEvent;
  expect(rows.map(([i]) => i)).toEqual([1, 2]);
  expect(rows.map(([, row]) => row[1])).toEqual(["queue 9 >= 5", "has just refused a request"]);
  expect(gates).toBeUndefined();
});

test("what an endpoint or a client calls itself ends no event", () => {
  const source = sourceOf(["a\n\nevent: full\ndata: {}"]);
  source.journal.drops.add({ ...drop, message: "\n\ndata: x", time: 0, lastedMs: 0 });
  const text = new Encoder(source).next();
  expect(text.match(/\n/g)).toHaveLength(3);
  expect(() => readEvent(text)).not.toThrow();
});
