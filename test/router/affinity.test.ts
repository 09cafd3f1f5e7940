// Rendezvous hashing: even, stable, and by weight.

import { describe, expect, test } from "vitest";
import { type Choice, hashText, Rendezvous } from "../../src/router/affinity";

const rendezvous = new Rendezvous<Choice>();
const endpoints = (n: number, weightOf: (i: number) => number = () => 1): Choice[] =>
  Array.from({ length: n }, (_, i) => ({ id: `http://10.0.0.${i}:8000`, weight: weightOf(i) }));
const homeOf = (session: string, among: Choice[], out: ReadonlySet<string> = new Set()) =>
  rendezvous.choose(session, among, ({ id }) => out.has(id))?.id;
const sessions = Array.from({ length: 20_000 }, (_, i) => `session-${i}`);

describe("a session's endpoint", () => {
  test("is the same in every order and in every process", () => {
    const all = endpoints(7);
    for (const session of sessions.slice(0, 200)) {
      expect(homeOf(session, [...all].reverse())).toBe(homeOf(session, all));
    }
    // Published vectors of FNV-1a.
    expect(["", "a", "foobar"].map(hashText)).toEqual([0x811c9dc5, 0xe40c292c, 0xbf9cf968]);
  });

  test("is any of them, about as often, or as its weight says", () => {
    const all = endpoints(8, (i) => (i < 4 ? 1 : 3));
    const counts = new Map<string | undefined, number>();
    for (const session of sessions) {
      const home = homeOf(session, all);
      counts.set(home, (counts.get(home) ?? 0) + 1);
    }
    all.forEach(({ id, weight }) => {
      const share = (counts.get(id) ?? 0) / sessions.length;
      expect(Math.abs(share - weight / 16)).toBeLessThan(0.02);
    });
  });

  test("changes only for the sessions of an endpoint that goes", () => {
    const all = endpoints(10);
    const gone = all[3]?.id ?? "";
    for (const session of sessions.slice(0, 2000)) {
      const before = homeOf(session, all);
      const after = homeOf(session, all, new Set([gone]));
      if (before === gone) expect(after).not.toBe(gone);
      else expect(after).toBe(before);
    }
  });

  test("is none when all are out of the question", () => {
    expect(homeOf("s", [])).toBeUndefined();
    expect(homeOf("s", endpoints(1), new Set(["http://10.0.0.0:8000"]))).toBeUndefined();
  });
});
