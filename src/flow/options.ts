// The options of the flow controller, checked once and all together.

import {
  type Aggregation,
  CONFIG_FIELDS,
  durationField,
  type Fields,
  oneOf,
  readFields,
} from "../config";
import type { Duration } from "../duration";
import { ConfigError, type ConfigFault } from "../errors";
import { type Ceilings, resolveCeilings } from "./ceilings";

/** A priority band. */
export interface BandOptions {
  /** What requests say as their `priority`. Default: its index, "0" is the highest. */
  readonly name?: string | undefined;
  /** How many of its requests may wait, integer >= 0. Default 5,000. */
  readonly maxRequests?: number | undefined;
}

/** How requests are held back. */
export interface FlowOptions {
  /** Highest priority first. Default: one band. */
  readonly bands?: readonly BandOptions[] | undefined;
  /** At which saturation each band is held back. Default: 1 for all. */
  readonly ceilings?: Ceilings | undefined;
  /** How many requests may wait in all, integer >= 0. Default: no limit but the bands'. */
  readonly maxRequests?: number | undefined;
  /** How long a request may wait, > 0. Default "1m". */
  readonly ttl?: Duration | undefined;
  /** `queue` lets requests wait; `shed` refuses at once what may not go now. Default "queue". */
  readonly mode?: "queue" | "shed" | undefined;
  /** Which saturation the gate looks at. Default "capped": one hot endpoint does not close it. */
  readonly aggregation?: Aggregation | undefined;
  /** Now, in ms; must be the source's clock, which is the default. */
  readonly clock?: (() => number) | undefined;
}

/** Checked options. */
export interface ResolvedFlowOptions {
  readonly names: readonly string[];
  readonly limits: readonly number[];
  readonly ceilings: readonly number[];
  readonly maxRequests: number;
  readonly ttlMs: number;
  readonly mode: "queue" | "shed";
  readonly aggregation: Aggregation;
}

interface Values {
  maxRequests: number;
  ttl: number;
  mode: "queue" | "shed";
  aggregation: Aggregation;
}

const limitField = {
  rule: "an integer >= 0 (requests)",
  read: (value: unknown) =>
    Number.isInteger(value) && Number(value) >= 0 ? Number(value) : undefined,
};
const FIELDS: Fields<Values> = {
  maxRequests: limitField,
  ttl: durationField('a duration > 0, such as "1m"', (ms) => ms > 0),
  mode: oneOf<"queue" | "shed">("queue", "shed"),
  aggregation: CONFIG_FIELDS.aggregation,
};
const BAND_FIELDS: Fields<BandOptions> = {
  name: {
    rule: "a text that is not empty",
    read: (value) => (typeof value === "string" && value !== "" ? value : undefined),
  },
  maxRequests: limitField,
};
const BAND_LIMIT = 5000;
const TTL_MS = 60_000;

/** @throws ConfigError with every fault. */
export function resolveFlowOptions(options: FlowOptions): ResolvedFlowOptions {
  const { bands = [{}], ceilings, clock: _, ...values } = options;
  const faults: ConfigFault[] = [];
  const given = readFields(FIELDS, values, "", faults);
  if (!Array.isArray(bands) || bands.length === 0) {
    faults.push({ path: "bands", value: bands, rule: "must be a list of at least one band" });
  }
  const list = Array.isArray(bands) ? bands : [];
  const read = list.map((band, i) => readFields(BAND_FIELDS, band, `bands.${i}`, faults));
  const names = read.map(({ name }, i) => name ?? String(i));
  names.forEach((name, i) => {
    if (names.indexOf(name) === i) return;
    faults.push({ path: `bands.${i}.name`, value: name, rule: "must be a name of its own" });
  });
  let resolved: readonly number[] = [];
  try {
    resolved = resolveCeilings(ceilings, list.length);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    faults.push(...error.faults);
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return {
    names,
    limits: read.map(({ maxRequests }) => maxRequests ?? BAND_LIMIT),
    ceilings: resolved,
    maxRequests: given.maxRequests ?? Number.POSITIVE_INFINITY,
    ttlMs: given.ttl ?? TTL_MS,
    mode: given.mode ?? "queue",
    aggregation: given.aggregation ?? "capped",
  };
}
