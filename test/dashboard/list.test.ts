// Filter, order and short names of the page's list.

import { describe, expect, test } from "vitest";
import { Encoder } from "../../src/dashboard/encoder";
import type { FullEvent } from "../../src/dashboard/wire";
import { type ListOptions, listOf } from "../../src/web/dashboard/list";
import { Model } from "../../src/web/dashboard/model";
import { count, shortNames, span } from "../../src/web/dashboard/text";
import { readEvent, sourceOf } from "./sources";

const PLAIN: ListOptions = { text: "", state: "all", sort: "pool", isReversed: false };

function modelOf(): Model {
  const source = sourceOf(["e10", "e9", "busy", "blind"]);
  const loads: [string, number, number | null][] = [
    ["e10", 1, 0.5],
    ["e9", 2, null],
    ["busy", 8, 0.7],
  ];
  for (const [id, waitingQueueSize, kvCacheUsagePercent] of loads) {
    source.pool.report(id, { waitingQueueSize, kvCacheUsagePercent });
  }
  source.pool.get("e9")?.update({ labels: { zone: "West" } });
  const model = new Model();
  model.takeFull(readEvent(new Encoder(source).next()).data as FullEvent);
  return model;
}

describe("the list", () => {
  const { endpoints } = modelOf();
  const ids = (options: Partial<ListOptions>) =>
    listOf(endpoints, { ...PLAIN, ...options })
      .map(({ id }) => id)
      .join(" ");

  test.each<[string, Partial<ListOptions>, string]>([
    ["the pool's order", {}, "e10 e9 busy blind"],
    ["the other way", { isReversed: true }, "blind busy e9 e10"],
    ["by name, numbers as numbers", { sort: "id" }, "blind busy e9 e10"],
    ["by score, the highest first", { sort: "score" }, "busy blind e10 e9"],
    ["by KV, the unknown last", { sort: "kv" }, "busy e10 e9 blind"],
    ["by KV the other way, too", { sort: "kv", isReversed: true }, "e10 busy e9 blind"],
    ["by state, the worst first", { sort: "state" }, "blind busy e10 e9"],
    ["those that are no candidates", { state: "out" }, "busy blind"],
    ["those of one state", { state: "queue-full" }, "busy"],
    ["by words of label and reason", { text: "WEST candidate" }, "e9"],
    ["by nothing that is there", { text: "nowhere" }, ""],
  ])("%s", (_, options, expected) => {
    expect(ids(options)).toBe(expected);
  });
});

test.each([
  [
    ["http://10.0.0.7:8000", "http://10.0.0.18:8000"],
    ["7", "18"],
  ],
  [
    ["http://127.0.0.1:4001", "http://127.0.0.1:4002"],
    ["4001", "4002"],
  ],
  [
    ["https://vllm-0.svc", "https://vllm-12.svc"],
    ["0", "12"],
  ],
  [
    ["gpu17", "gpu18"],
    ["gpu17", "gpu18"],
  ],
  [["http://a:1"], ["a:1"]],
  [
    ["http://a-1", "http://a-1-2"],
    ["1", "1-2"],
  ],
  [[], []],
])("%j have the short names %j", (ids, names) => {
  expect(shortNames(ids)).toEqual(names);
});

test("times and counts are for people", () => {
  expect([null, 0, 4, 999.6, 1500, 61_000, 600_000].map(span)).toEqual([
    ...["-", "0 ms", "4 ms", "1.0 s", "1.5 s", "61 s", "10 min"],
  ]);
  expect([0, 999, 1000, 1234567].map(count)).toEqual([
    ...["0", "999", "1\u202f000", "1\u202f234\u202f567"],
  ]);
});
