// Durations in Go notation ("1m30s", "200ms"), read and printed exactly as Go's time package does.
// Apart from config.ts, because scrape intervals and command-line options use them too.

import { DurationError, describeValue } from "./errors";

/** A number of milliseconds, or a text in Go notation such as `"200ms"` or `"1m30s"`. */
export type Duration = number | string;

const NANOS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n, // U+00B5, micro sign
  μs: 1_000n, // U+03BC, Greek letter mu
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const NANOS_PER_MS = 1e6;
/** Go keeps a duration in an int64. */
const LIMIT = 1n << 63n;
const LONGEST_MS = Number(LIMIT) / NANOS_PER_MS;
const TERM = /([0-9]*)(?:\.([0-9]*))?([^0-9.]*)/y;

/**
 * Reads a duration and returns it in ms (fractions are kept to the nanosecond).
 *
 * Texts are what Go's `time.ParseDuration` accepts: a sign, then decimal numbers each with a unit
 * (`ns`, `us`, `µs`, `ms`, `s`, `m`, `h`), or a bare `0`; up to about 292 years. Numbers are ms and
 * have the same bound.
 *
 * @throws DurationError when it is neither.
 * @example parseDuration("1m30s") // 90000
 */
export function parseDuration(value: Duration): number {
  if (typeof value === "number" && Math.abs(value) <= LONGEST_MS) return value;
  if (typeof value !== "string") {
    throw new DurationError(
      `a duration is a text such as "200ms" or a number of ms (292 years at most), got ${describeValue(value)}`,
    );
  }
  return Number(parseNanos(value)) / NANOS_PER_MS;
}

function parseNanos(text: string): bigint {
  const negative = text.startsWith("-");
  const body = negative || text.startsWith("+") ? text.slice(1) : text;
  if (body === "0") return 0n;
  if (body === "") throw invalid(text);
  let total = 0n;
  let at = 0;
  while (at < body.length) {
    TERM.lastIndex = at;
    const [term = "", whole = "", fraction = "", unit = ""] = TERM.exec(body) ?? [];
    if (whole === "" && fraction === "") throw invalid(text);
    if (unit === "") throw new DurationError(`${describeValue(text)}: ${MISSING_UNIT}`);
    const nanos = Object.hasOwn(NANOS, unit) ? NANOS[unit] : undefined;
    if (nanos === undefined) {
      throw new DurationError(`${describeValue(text)}: unknown unit "${unit}", ${UNITS}`);
    }
    total += BigInt(whole === "" ? "0" : whole) * nanos + fractionNanos(fraction, nanos);
    if (total > LIMIT) throw invalid(text, "larger than Go's int64 of nanoseconds");
    at += term.length;
  }
  if (negative) return -total;
  if (total === LIMIT) throw invalid(text, "larger than Go's int64 of nanoseconds");
  return total;
}

const UNITS = "the units are ns, us, µs, ms, s, m, h";
const MISSING_UNIT = `a number without a unit, ${UNITS}`;

function invalid(text: string, why = 'not a duration such as "200ms" or "1m30s"'): DurationError {
  return new DurationError(`${describeValue(text)}: ${why}`);
}

/** The fraction as Go computes it: in float64, digits that overflow an int64 dropped, truncated. */
function fractionNanos(digits: string, unit: bigint): bigint {
  let value = 0n;
  let scale = 1;
  for (const digit of digits) {
    const next = value * 10n + BigInt(digit);
    if (value > (LIMIT - 1n) / 10n || next > LIMIT) break;
    value = next;
    scale *= 10;
  }
  return BigInt(Math.trunc(Number(value) * (Number(unit) / scale)));
}

/**
 * Prints ms as Go's `Duration.String` does: `"200ms"`, `"1m30s"`, `"1.5µs"`, `"0s"`. Rounded to the
 * nanosecond.
 *
 * @throws DurationError when `ms` is not finite or longer than about 292 years.
 */
export function formatDuration(ms: number): string {
  const nanos = Number.isFinite(ms) ? BigInt(Math.round(ms * NANOS_PER_MS)) : LIMIT + 1n;
  let size = nanos < 0n ? -nanos : nanos;
  // The longest duration, 2^63 - 1 ns, is 2^63 once it has been a number of ms.
  if (nanos === LIMIT) size = LIMIT - 1n;
  if (size > LIMIT) throw new DurationError(`${ms} ms is not a duration that Go notation can say`);
  const sign = nanos < 0n ? "-" : "";
  if (size === 0n) return "0s";
  if (size < 1_000n) return `${sign}${size}ns`;
  if (size < 1_000_000n) return `${sign}${decimal(size, 3)}µs`;
  if (size < 1_000_000_000n) return `${sign}${decimal(size, 6)}ms`;
  const minutes = size / 60_000_000_000n;
  const seconds = `${decimal(size % 60_000_000_000n, 9)}s`;
  if (minutes === 0n) return sign + seconds;
  if (minutes < 60n) return `${sign}${minutes}m${seconds}`;
  return `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

/** `value / 10^places` without trailing zeros. */
function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, "0");
  const fraction = digits.slice(-places).replace(/0+$/, "");
  const whole = digits.slice(0, -places);
  return fraction === "" ? whole : `${whole}.${fraction}`;
}
