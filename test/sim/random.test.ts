// Chance that is the same everywhere, and has the distributions that it says it has.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Random } from "../../src/sim/random";
import { stableExp, stableLog } from "../../src/stable-math";

const N = 200_000;

function moments(draw: () => number): { mean: number; cv: number } {
  let sum = 0;
  let squares = 0;
  for (let i = 0; i < N; i++) {
    const x = draw();
    sum += x;
    squares += x * x;
  }
  const mean = sum / N;
  return { mean, cv: Math.sqrt(squares / N - mean * mean) / mean };
}

/** Units in the last place between two numbers of the same size. */
function ulps(a: number, b: number): number {
  return Math.abs(a - b) / (Math.abs(b) * Number.EPSILON || Number.MIN_VALUE);
}

describe("Random", () => {
  test("gives these numbers for this seed, on every platform", () => {
    const random = new Random(1, "a");
    const numbers = Array.from({ length: 4 }, () => random.next());
    const again = new Random(1, "a");
    expect(Array.from({ length: 4 }, () => again.next())).toEqual(numbers);
    expect(numbers).toMatchInlineSnapshot(`
      [
        0.34179814210852977,
        0.399288261230887,
        0.797281705079788,
        0.4653574608586196,
      ]
    `);
  });

  test("streams of one seed, and seeds of one stream, differ", () => {
    const first = (seed: number, stream: string) => new Random(seed, stream).next();
    const all = [first(1, "a"), first(1, "b"), first(2, "a"), first(11, ""), first(1, "1")];
    expect(new Set(all).size).toBe(all.length);
  });

  test("is uniform, and never 1", () => {
    const random = new Random(3, "u");
    const { mean, cv } = moments(random.next);
    expect(mean).toBeCloseTo(0.5, 2);
    expect(cv).toBeCloseTo(1 / Math.sqrt(3), 2);
  });

  test.each([
    ["exponential", (r: Random) => r.exponential(5), 5, 1],
    ["gamma, burstier", (r: Random) => r.gamma(5, 3), 5, 3],
    ["gamma, steadier", (r: Random) => r.gamma(5, 0.4), 5, 0.4],
    ["gamma of cv 0 is constant", (r: Random) => r.gamma(5, 0), 5, 0],
    ["lognormal", (r: Random) => r.lognormal(300, 0.8), 300, 0.8],
  ])("%s has the mean and the variation that it was asked for", (_, draw, mean, cv) => {
    const random = new Random(7, "moments");
    const seen = moments(() => draw(random));
    expect(Math.abs(seen.mean / mean - 1)).toBeLessThan(0.03);
    expect(Math.abs(seen.cv - cv)).toBeLessThan(0.05 * cv + 1e-9);
  });

  test("normal has mean 0 and deviation 1", () => {
    const random = new Random(7, "normal");
    const { mean, cv } = moments(() => 10 + random.normal());
    expect(mean).toBeCloseTo(10, 1);
    expect(cv * mean).toBeCloseTo(1, 2);
  });
});

describe("exp and log without the platform's", () => {
  test("log is within 2 units of the platform's over the whole range", () => {
    fc.assert(
      fc.property(fc.double({ min: 5e-324, max: 1.7e308, noNaN: true }), (x) => {
        expect(ulps(stableLog(x), Math.log(x))).toBeLessThanOrEqual(
          Math.abs(Math.log(x)) < 1e-3 ? 8 : 2,
        );
      }),
    );
  });

  test("exp is within 2 units of the platform's over the whole range", () => {
    fc.assert(
      fc.property(fc.double({ min: -700, max: 709, noNaN: true }), (x) => {
        expect(ulps(stableExp(x), Math.exp(x))).toBeLessThanOrEqual(2);
      }),
    );
  });

  test("their edges are those of the platform", () => {
    for (const x of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1]) {
      expect(stableLog(x)).toBe(Math.log(x));
    }
    for (const x of [
      0,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      800,
      -800,
    ]) {
      expect(stableExp(x)).toBe(Math.exp(x));
    }
  });
});
