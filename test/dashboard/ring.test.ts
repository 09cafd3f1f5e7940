// The ring keeps the last values, and whoever catches up with it has the same.

import fc from "fast-check";
import { expect, test } from "vitest";
import { Ring } from "../../src/dashboard/ring";

test("it keeps the last values, and counts all", () => {
  for (let n = 0; n < 12; n++) {
    const ring = new Ring<number>(5);
    for (let i = 0; i < n; i++) ring.add(i);
    expect(ring.total).toBe(n);
    expect(ring.items).toEqual(Array.from({ length: n }, (_, i) => i).slice(-5));
  }
});

test("a follower that catches up now and then has the same, whatever it has missed", () => {
  const steps = fc.array(fc.record({ added: fc.nat(12), looks: fc.boolean() }), { maxLength: 40 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), steps, (limit, all) => {
      const [ring, follower] = [new Ring<number>(limit), new Ring<number>(limit)];
      let seen = 0;
      for (const { added, looks } of [...all, { added: 0, looks: true }]) {
        for (let i = 0; i < added; i++) ring.add(ring.total);
        if (!looks) continue;
        follower.catchUp(ring.since(seen));
        // What is known already may come again.
        follower.catchUp(ring.since(0));
        seen = ring.total;
        expect(follower.items).toEqual(ring.items);
        expect(follower.total).toBe(ring.total);
      }
    }),
  );
});
