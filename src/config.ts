// R10: the options of the detector and of one endpoint, their defaults, ranges and faults. Every
// reader of a config (constructors, fromJSON, the command line) comes through here.

import { type Duration, formatDuration, parseDuration } from "./duration";
import { ConfigError, type ConfigFault, describeValue } from "./errors";
import type { Logger } from "./logger";
import { nearestKey } from "./nearest";
import type { PickFilter } from "./pick";
import type { Projection } from "./projection";

/** What an endpoint whose telemetry is too old counts as (R5). */
export type StalenessPolicy = "saturated" | "ignore" | "hold";

/** How the scores of the endpoints become one saturation (R6). */
export type Aggregation = "mean" | "weighted" | "max" | "capped";

/** Options of a detector or a pool. All are optional. */
export interface DetectorConfig {
  /** Q: requests waiting at one endpoint at its ideal load; integer > 0. Default 5. */
  readonly queueDepthThreshold?: number | undefined;
  /** K: share of the KV cache in use at its ideal load; in (0, 1]. Default 0.8. */
  readonly kvCacheUtilThreshold?: number | undefined;
  /** S: the greatest age at which a reading counts; > 0, a number is ms. Default "200ms". */
  readonly metricsStalenessThreshold?: Duration | undefined;
  /** h: how far above the ideal one endpoint may burst, a fraction >= 0. Default 0. */
  readonly headroom?: number | undefined;
  /** What a stale endpoint counts as. Default "saturated". */
  readonly stalenessPolicy?: StalenessPolicy | undefined;
  /** Under "hold": how much longer than S a reading keeps scoring; >= 0. Default "2s". */
  readonly holdFor?: Duration | undefined;
  /** Which aggregate is called `saturation`. Default "mean". */
  readonly aggregation?: Aggregation | undefined;
}

/** A checked config with every default filled in; frozen. Durations are in ms. */
export interface ResolvedConfig {
  readonly queueDepthThreshold: number;
  readonly kvCacheUtilThreshold: number;
  /** In ms. */
  readonly metricsStalenessThreshold: number;
  readonly headroom: number;
  readonly stalenessPolicy: StalenessPolicy;
  /** In ms. */
  readonly holdFor: number;
  readonly aggregation: Aggregation;
}

/** The thresholds of one endpoint, where they differ from the pool's. */
export interface Thresholds {
  /** Q of this endpoint, integer > 0. */
  readonly queueDepthThreshold?: number | undefined;
  /** K of this endpoint, in (0, 1]. */
  readonly kvCacheUtilThreshold?: number | undefined;
  /** h of this endpoint, >= 0. */
  readonly headroom?: number | undefined;
  /** Its part of the pool under the aggregation "weighted", finite and > 0. Default 1. */
  readonly weight?: number | undefined;
}

/** Options of one endpoint of a pool. */
export interface EndpointOptions extends Thresholds {
  /** Size of its KV cache in tokens, > 0. Default: what its telemetry says. */
  readonly kvCapacityTokens?: number | undefined;
  /** Requests that its engine runs at once, integer > 0. */
  readonly maxNumSeqs?: number | undefined;
  /** Free text for people and dashboards. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** The options of a pool that are values, see `PoolOptions`. */
export interface PoolValues {
  readonly capacity?: number | undefined;
  readonly filter?: PickFilter | undefined;
  readonly projection?: Projection | undefined;
}

/** One option: what is right, and how its value is read. `undefined` from `read` is a fault. */
export interface Field<T> {
  readonly rule: string;
  read(value: unknown): T | undefined;
}

/** A field for every option. */
export type Fields<T> = { readonly [K in keyof T]-?: Field<NonNullable<T[K]>> };

const queueDepthThreshold = number(
  "an integer > 0 (requests)",
  (v) => Number.isInteger(v) && v > 0,
);
const kvCacheUtilThreshold = number("a fraction > 0 and <= 1", (v) => v > 0 && v <= 1);
const headroom = number("a fraction >= 0 (0.2 is 20 %)", (v) => v >= 0);

/** The options of a detector or pool. */
export const CONFIG_FIELDS: Fields<ResolvedConfig> = {
  queueDepthThreshold,
  kvCacheUtilThreshold,
  metricsStalenessThreshold: durationField('a duration > 0, such as "200ms"', (ms) => ms > 0),
  headroom,
  stalenessPolicy: oneOf<StalenessPolicy>("saturated", "ignore", "hold"),
  holdFor: durationField('a duration >= 0, such as "2s"', (ms) => ms >= 0),
  aggregation: oneOf<Aggregation>("mean", "weighted", "max", "capped"),
};

/** The options of one endpoint. */
export const ENDPOINT_FIELDS: Fields<EndpointOptions> = {
  queueDepthThreshold,
  kvCacheUtilThreshold,
  headroom,
  weight: number("a finite number > 0", (v) => v > 0),
  kvCapacityTokens: number("a number of tokens > 0", (v) => v > 0),
  maxNumSeqs: number("an integer > 0 (requests)", (v) => Number.isInteger(v) && v > 0),
  labels: { rule: "an object of texts", read: readLabels },
};

const POOL_FIELDS: Fields<PoolValues> = {
  capacity: number("an integer > 0 (endpoints)", (v) => Number.isInteger(v) && v > 0),
  filter: oneOf<PickFilter>("limits", "kv", "none"),
  projection: oneOf<Projection>("live", "off"),
};

/** The defaults of R10. Frozen; durations in ms. */
export const DEFAULT_CONFIG: ResolvedConfig = Object.freeze({
  queueDepthThreshold: 5,
  kvCacheUtilThreshold: 0.8,
  metricsStalenessThreshold: 200,
  headroom: 0,
  stalenessPolicy: "saturated",
  holdFor: 2000,
  aggregation: "mean",
});

/**
 * Checks a config and fills in the defaults.
 *
 * @param input what the caller wrote; `undefined` is an empty config.
 * @param logger is told when `headroom` looks like a percentage.
 * @throws ConfigError with every fault.
 */
export function resolveConfig(input: unknown, logger?: Logger): ResolvedConfig {
  const faults: ConfigFault[] = [];
  const given = readFields(CONFIG_FIELDS, input, "", faults);
  if (faults.length > 0) throw new ConfigError(faults);
  const config = Object.freeze({ ...DEFAULT_CONFIG, ...given });
  if (config.headroom > 1) {
    logger?.warn(
      `headroom ${config.headroom} is a fraction: it lets an endpoint burst ` +
        `${config.headroom * 100} % above its thresholds; write 0.2 for 20 %`,
    );
  }
  return config;
}

/**
 * Checks the options of one endpoint.
 *
 * @throws ConfigError with every fault.
 */
export function resolveEndpointOptions(input: unknown): EndpointOptions {
  const faults: ConfigFault[] = [];
  const given = readFields(ENDPOINT_FIELDS, input, "", faults);
  if (faults.length > 0) throw new ConfigError(faults);
  return given;
}

/**
 * Checks the options of a pool that are values.
 *
 * @throws ConfigError with every fault.
 */
export function resolvePoolOptions(options: PoolValues): {
  [K in keyof PoolValues]-?: NonNullable<PoolValues[K]>;
} {
  const { capacity, filter, projection } = options;
  const faults: ConfigFault[] = [];
  const given = readFields(POOL_FIELDS, { capacity, filter, projection }, "", faults);
  if (faults.length > 0) throw new ConfigError(faults);
  return {
    capacity: given.capacity ?? 64,
    filter: given.filter ?? "kv",
    projection: given.projection ?? "live",
  };
}

/** A config as people write it: durations in Go notation, everything else as it is. */
export function printConfig(config: ResolvedConfig): Required<DetectorConfig> {
  return {
    ...config,
    metricsStalenessThreshold: formatDuration(config.metricsStalenessThreshold),
    holdFor: formatDuration(config.holdFor),
  };
}

/**
 * Reads the known keys of an object. Faults, unknown keys among them, are added to `faults`; keys
 * that are absent or `undefined` are left out.
 */
export function readFields<T>(
  fields: Fields<T>,
  input: unknown,
  path: string,
  faults: ConfigFault[],
): Partial<T> {
  const found: Partial<T> = {};
  if (input === undefined) return found;
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    faults.push({ path, value: input, rule: "must be an object of options" });
    return found;
  }
  for (const [key, value] of Object.entries(input)) {
    const at = path === "" ? key : `${path}.${key}`;
    if (!Object.hasOwn(fields, key)) {
      faults.push({ path: at, value, rule: unknownKey(key, Object.keys(fields)) });
      continue;
    }
    if (value === undefined) continue;
    const field = fields[key as keyof T]; // hasOwn has just proved it
    const read = field.read(value);
    if (read === undefined) faults.push({ path: at, value, rule: `must be ${field.rule}` });
    else found[key as keyof T] = read;
  }
  return found;
}

/** What to say of a key that no option has. */
export function unknownKey(key: string, known: readonly string[]): string {
  const near = nearestKey(key, known);
  return near === undefined
    ? `unknown option; the options are ${known.join(", ")}`
    : `unknown option; did you mean ${describeValue(near)}?`;
}

function number(rule: string, isRight: (value: number) => boolean): Field<number> {
  return {
    rule,
    read: (value) =>
      typeof value === "number" && Number.isFinite(value) && isRight(value) ? value : undefined,
  };
}

/** One of a few words. */
export function oneOf<T extends string>(...words: T[]): Field<T> {
  return {
    rule: `one of ${words.map((word) => `"${word}"`).join(", ")}`,
    read: (value) => words.find((word) => word === value),
  };
}

/** A duration in Go notation or ms, read as ms. */
export function durationField(rule: string, isRight: (ms: number) => boolean): Field<number> {
  return {
    rule,
    read: (value) => {
      try {
        const ms = parseDuration(value as Duration); // parseDuration checks the type itself
        return isRight(ms) ? ms : undefined;
      } catch {
        return undefined; // the fault that the caller reports names value and rule
      }
    },
  };
}

function readLabels(value: unknown): Record<string, string> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const entries = Object.entries(value);
  if (!entries.every(([, text]) => typeof text === "string")) return undefined;
  return Object.freeze(Object.fromEntries(entries));
}
