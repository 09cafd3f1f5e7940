// The options of a scraper, and their check. All faults, those of the targets too, are reported
// together.

import { durationField, type Field, type Fields, readFields } from "../config";
import type { Duration } from "../duration";
import { ConfigError, type ConfigFault } from "../errors";
import type { Logger } from "../logger";
import type { Sample } from "../sample";
import type { EngineName } from "./engines";
import type { TargetFinding } from "./target-reader";
import { ENGINE_FIELD, readTargets, type Target } from "./targets";
import type { FetchLike } from "./transport";

/** A reading that came to an end. */
export interface ReadingEvent {
  readonly id: string;
  readonly engine: EngineName | undefined;
  /** When it was begun, on the pool's clock, in ms. */
  readonly startedAt: number;
  /** As it was reported to the pool; undefined when there was no page. */
  readonly sample: Sample | undefined;
  /** Whether the pool took it. */
  readonly accepted: boolean;
  readonly findings: readonly TargetFinding[];
  /** Why there was no page. */
  readonly error: string | undefined;
}

/** How to scrape. */
export interface ScraperOptions {
  /** Time between two readings of an endpoint, > 0 and <= 24h. Default "50ms". */
  readonly interval?: Duration | undefined;
  /** How long one reading may take, > 0 and <= 24h. Default "1s". */
  readonly timeout?: Duration | undefined;
  /** Engine of the targets that do not say. Default: recognised from their pages. */
  readonly engine?: EngineName | undefined;
  /** A larger page is refused, in bytes, integer > 0. Default 16 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** Ends the scraper. */
  readonly signal?: AbortSignal | undefined;
  /** Used instead of undici (in Node) or the runtime's own. */
  readonly fetch?: FetchLike | undefined;
  /** Is told when the interval does not fit S. Default: nobody. */
  readonly logger?: Logger | undefined;
  /** Called after every reading. What it throws is an uncaught error; the scraper goes on. */
  readonly onReading?: ((event: ReadingEvent) => void) | undefined;
  /** Numbers in [0, 1) that spread the readings. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** Checked options, their defaults filled in. */
export interface ScraperSettings {
  /** In ms. */
  readonly interval: number;
  /** In ms. */
  readonly timeout: number;
  readonly maxBodyBytes: number;
  readonly random: () => number;
  readonly signal: AbortSignal | undefined;
  readonly fetch: FetchLike | undefined;
  readonly logger: Logger | undefined;
  readonly onReading: ((event: ReadingEvent) => void) | undefined;
}

const DEFAULTS = { interval: 50, timeout: 1000, maxBodyBytes: 16 * 1024 * 1024 };
/** Timers of the platform wrap round after 24.8 days, and then fire at once. */
const LONGEST_MS = 24 * 3600 * 1000;

const isTime = (ms: number) => ms > 0 && ms <= LONGEST_MS;
/** The times of a scraper; a config file has them too. */
export const TIME_FIELDS: Fields<{ interval: number; timeout: number }> = {
  interval: durationField('a duration > 0 and <= 24h, such as "50ms"', isTime),
  timeout: durationField('a duration > 0 and <= 24h, such as "1s"', isTime),
};
const FIELDS: Fields<ScraperOptions> = {
  ...TIME_FIELDS,
  engine: ENGINE_FIELD,
  maxBodyBytes: {
    rule: "an integer > 0 (bytes)",
    read: (value) => (Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : undefined),
  },
  signal: object("an AbortSignal", "addEventListener"),
  fetch: callback(),
  logger: object("an object with a method warn", "warn"),
  onReading: callback(),
  random: callback(),
};

/**
 * Checks targets and options.
 *
 * @throws ConfigError with every fault of both.
 */
export function resolveScraper(
  targets: unknown,
  options: unknown,
): { readonly targets: Target[]; readonly settings: ScraperSettings } {
  const faults: ConfigFault[] = [];
  const given = readFields(FIELDS, options, "", faults);
  const resolved = readTargets(targets, given.engine, faults);
  if (faults.length > 0) throw new ConfigError(faults);
  const { signal, fetch, logger, onReading, random = Math.random } = given;
  const { maxBodyBytes = DEFAULTS.maxBodyBytes } = given;
  // The fields have read both durations as ms.
  const interval = Number(given.interval ?? DEFAULTS.interval);
  const timeout = Number(given.timeout ?? DEFAULTS.timeout);
  const settings = { interval, timeout, maxBodyBytes, random, signal, fetch, logger, onReading };
  return { targets: resolved, settings };
}

/** A function; what it takes and gives cannot be seen from outside. */
function callback<T>(): Field<T> {
  return {
    rule: "a function",
    read: (value) => (typeof value === "function" ? (value as T) : undefined),
  };
}

/** An object that is known by one of its methods. */
function object<T>(rule: string, method: string): Field<T> {
  return {
    rule,
    read: (value) => {
      const isOne = typeof value === "object" && value !== null && method in value;
      return isOne ? (value as T) : undefined;
    },
  };
}
