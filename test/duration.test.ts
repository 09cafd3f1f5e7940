// Durations as Go's time package reads and prints them.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DurationError, formatDuration, parseDuration } from "../src/index";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe("parseDuration accepts what Go accepts", () => {
  test.each([
    ["0", 0],
    ["5s", 5000],
    ["30s", 30_000],
    ["1478s", 1_478_000],
    ["-5s", -5000],
    ["+5s", 5000],
    ["-0", 0],
    ["+0", 0],
    ["5.0s", 5000],
    ["5.6s", 5600],
    ["5.s", 5000],
    [".5s", 500],
    ["1.0s", 1000],
    ["1.00s", 1000],
    ["1.004s", 1004],
    ["1.0040s", 1004],
    ["100.00100s", 100_001],
    ["10ns", 1e-5],
    ["11us", 0.011],
    ["12µs", 0.012],
    ["12μs", 0.012],
    ["13ms", 13],
    ["14s", 14_000],
    ["15m", 15 * MINUTE],
    ["16h", 16 * HOUR],
    ["3h30m", 3.5 * HOUR],
    ["1h2m3.5s", HOUR + 2 * MINUTE + 3500],
    ["1.5h", 1.5 * HOUR],
    ["-2s", -2000],
    ["10.5s4m", 4 * MINUTE + 10_500],
    ["-2m3.4s", -(2 * MINUTE + 3400)],
    ["1h2m3s4ms5us6ns", HOUR + 2 * MINUTE + 3004.005006],
    ["39h9m14.425s", 39 * HOUR + 9 * MINUTE + 14_425],
    ["52763797000ns", 52_763.797],
    ["0.3333333333333333333h", 20 * MINUTE],
    ["9007199254740993ns", 9007199254.74099],
    ["9223372036854775807ns", 2 ** 63 / 1e6],
    ["9223372036854775.807us", 2 ** 63 / 1e6],
    ["9223372036s854ms775us807ns", 2 ** 63 / 1e6],
    ["-9223372036854775808ns", -(2 ** 63) / 1e6],
    ["-9223372036854775.808us", -(2 ** 63) / 1e6],
    ["-2562047h47m16.854775808s", -(2 ** 63) / 1e6],
    ["0.100000000000000000000h", 6 * MINUTE],
    ["0.830103483285477580700h", 2988.37253982772 * 1000],
  ])("%s", (text, ms) => {
    expect(parseDuration(text)).toBeCloseTo(ms, 5);
  });
});

describe("parseDuration refuses what Go refuses", () => {
  test.each([
    "",
    "3",
    "-",
    "s",
    ".",
    "-.",
    ".s",
    "+.s",
    "1d",
    "x",
    "1.5",
    "1 s",
    " 1s",
    "1s ",
    "--1s",
    "1e3s",
    "1S",
    "1..5s",
    "∞s",
    "\x85\x85",
    "hello ￿ world",
    "9223372036854775810ns",
    "9223372036854775808ns",
    "-9223372036854775809ns",
    "9223372036854776us",
    "3000000h",
    "9223372036854775.808us",
    "9223372036854ms775us808ns",
    "1__proto__",
    "1constructor",
  ])("%j", (text) => {
    expect(() => parseDuration(text)).toThrow(DurationError);
  });

  test("and what is neither a text nor a finite number", () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, null, undefined, {}, true, 5n]) {
      expect(() => parseDuration(value as never)).toThrow(DurationError);
    }
    expect(parseDuration(12.5)).toBe(12.5);
  });
});

describe("formatDuration prints like Go", () => {
  test.each([
    [0, "0s"],
    [1e-6, "1ns"],
    [0.0011, "1.1µs"],
    [2.2, "2.2ms"],
    [3300, "3.3s"],
    [4 * MINUTE + 5000, "4m5s"],
    [4 * MINUTE + 5001, "4m5.001s"],
    [5 * HOUR + 6 * MINUTE + 7001, "5h6m7.001s"],
    [8 * MINUTE + 1e-6, "8m0.000000001s"],
    [200, "200ms"],
    [90_000, "1m30s"],
    [HOUR, "1h0m0s"],
    [-1500, "-1.5s"],
    [2 ** 63 / 1e6, "2562047h47m16.854775807s"],
    [-(2 ** 63) / 1e6, "-2562047h47m16.854775808s"],
  ])("%d ms", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test("and refuses what no Go duration can be", () => {
    for (const ms of [Number.NaN, Number.POSITIVE_INFINITY, 1e19]) {
      expect(() => formatDuration(ms)).toThrow(DurationError);
    }
  });

  test("what is printed reads back the same", () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e12, max: 1e12 }), (nanos) => {
        const ms = nanos / 1e6;
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });

  test("no text makes the parser throw anything but its own error", () => {
    const piece = fc.constantFrom("1", "9".repeat(30), ".", "-", "s", "ms", "h", "µs", " ", "x");
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        try {
          expect(Number.isFinite(parseDuration(pieces.join("")))).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(DurationError);
        }
      }),
    );
  });
});
