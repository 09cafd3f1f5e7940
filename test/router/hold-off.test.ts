// How long an endpoint that has refused a request counts as saturated.

import { describe, expect, test } from "vitest";
import { HoldOffs } from "../../src/router/hold-off";

const times = { holdOff: 100, longestHoldOff: 1000 };
const held = (holdOffs: HoldOffs, now: number) => [...holdOffs.heldAt(now)];

describe("a hold-off", () => {
  test("ends after its time, at its very end", () => {
    const holdOffs = new HoldOffs(() => times);
    holdOffs.note("a", 50);
    expect([held(holdOffs, 50), held(holdOffs, 149.9), held(holdOffs, 150)]).toEqual([
      ["a"],
      ["a"],
      [],
    ]);
    expect([holdOffs.nextEnd(50), holdOffs.nextEnd(150)]).toEqual([150, Number.POSITIVE_INFINITY]);
  });

  test("is twice as long after each refusal in a row, and bounded", () => {
    const holdOffs = new HoldOffs(() => times);
    let now = 0;
    const lengths: number[] = [];
    for (let i = 0; i < 7; i++) {
      holdOffs.note("a", now);
      lengths.push(holdOffs.nextEnd(now) - now);
      now = holdOffs.nextEnd(now);
    }
    expect(lengths).toEqual([100, 200, 400, 800, 1000, 1000, 1000]);
  });

  test("counts many refusals at a time as one", () => {
    const holdOffs = new HoldOffs(() => times);
    for (let now = 0; now < 99; now++) holdOffs.note("a", now);
    expect(held(holdOffs, 100)).toEqual([]);
  });

  test("is as long as the endpoint asks for, within its bound", () => {
    const holdOffs = new HoldOffs(() => times);
    holdOffs.note("a", 0, 500);
    holdOffs.note("b", 0, 3_600_000);
    holdOffs.note("c", 0);
    holdOffs.note("c", 10, 700);
    const ends = ["a", "b", "c"].map((id) => {
      let now = 0;
      while (holdOffs.heldAt(now).has(id)) now += 10;
      return now;
    });
    expect(ends).toEqual([500, 1000, 710]);
  });

  test("is over with the answer to a request that was sent since, and not before", () => {
    const holdOffs = new HoldOffs(() => times);
    holdOffs.note("a", 50);
    holdOffs.clear("a", 50);
    expect(held(holdOffs, 60)).toEqual(["a"]);
    holdOffs.clear("a", 51);
    expect(held(holdOffs, 60)).toEqual([]);
    holdOffs.note("a", 70);
    expect(holdOffs.nextEnd(70)).toBe(170);
  });

  test("comes of three requests in a row that were cut off, unless they were at fault", () => {
    const holdOffs = new HoldOffs(() => times);
    for (let i = 0; i < 10; i++) {
      holdOffs.suspect("a", 0);
      holdOffs.suspect("a", 0);
      holdOffs.acquit("a");
      holdOffs.acquit("a");
    }
    expect(held(holdOffs, 1)).toEqual([]);
    expect(holdOffs.isEmpty).toBe(true);
    for (let i = 0; i < 2; i++) holdOffs.suspect("a", 10);
    holdOffs.clear("a", 11);
    for (let i = 0; i < 2; i++) holdOffs.suspect("a", 20);
    expect(held(holdOffs, 20)).toEqual([]);
    holdOffs.suspect("a", 20);
    expect(held(holdOffs, 20)).toEqual(["a"]);
    expect(holdOffs.firstEnd(["a", "b"], 30)).toBe(30);
    expect(holdOffs.firstEnd(["a"], 30)).toBe(120);
  });

  test("is forgotten with its endpoint", () => {
    const holdOffs = new HoldOffs(() => times);
    holdOffs.note("a", 0);
    holdOffs.forget("a");
    expect(held(holdOffs, 1)).toEqual([]);
  });
});
