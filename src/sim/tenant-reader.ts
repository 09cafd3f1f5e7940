// Checks the traffic of a scenario: each tenant's arrivals and lengths.

import { durationField, type Fields, oneOf, readFields } from "../config";
import type { ConfigFault } from "../errors";
import type { ResolvedFlowOptions } from "../flow/options";
import { capacityOf } from "./capacity";
import { BOOLEAN, integerField, numberField, readList, TEXT } from "./fields";
import type { ArrivalSpec, LengthSpec, Rate, TenantSpec } from "./scenario";
import type { ResolvedEndpoint } from "./scenario-reader";
import type { TraceRequest } from "./traces";

/** A length as it is drawn. cv 0: always the mean. In tokens. */
export interface ResolvedLength {
  readonly mean: number;
  readonly cv: number;
  readonly min: number;
  readonly max: number;
}

/** Arrivals as they are drawn; rates per second, times in ms. */
export interface ResolvedArrival {
  readonly process: ArrivalSpec["process"];
  readonly rate: number;
  readonly to: number;
  readonly cv: number;
  readonly size: number;
  readonly timeScale: number;
}

/** Checked traffic of one tenant. */
export interface ResolvedTenant {
  readonly name: string;
  readonly arrival: ResolvedArrival;
  /** Undefined: the trace says. */
  readonly prompt: ResolvedLength | undefined;
  readonly output: ResolvedLength | undefined;
  readonly sharedPrefix: { readonly tokens: number; readonly variants: number } | undefined;
  /** Band of the flow controller. */
  readonly band: number;
  readonly streaming: boolean;
  readonly trace: readonly TraceRequest[];
}

/** Longest prompt or answer, in tokens. */
const LONGEST = 10_000_000;
const FASTEST_PER_S = 1_000_000;
const tokens = integerField("tokens", 1, LONGEST);
const TENANT_FIELDS: Fields<TenantSpec> = {
  name: TEXT,
  arrival: { rule: "given", read: (value) => value as ArrivalSpec }, // read below
  prompt: { rule: "given", read: (value) => value as LengthSpec },
  output: { rule: "given", read: (value) => value as LengthSpec },
  sharedPrefix: { rule: "given", read: (value) => value as TenantSpec["sharedPrefix"] & object },
  priority: {
    rule: "a name or an index of a band",
    read: (value) =>
      (typeof value === "string" || Number.isInteger(value) ? value : undefined) as
        | string
        | number
        | undefined,
  },
  streaming: BOOLEAN,
  trace: {
    rule: "the requests of a trace; in a file, name it with --trace",
    read: (value) => (Array.isArray(value) ? value : undefined),
  },
};
/** Read below, where the capacity is known. */
const RATE = { rule: "given", read: (value: unknown) => value as Rate };
const ARRIVAL_FIELDS = {
  process: oneOf<ArrivalSpec["process"]>("constant", "poisson", "gamma", "bursts", "ramp", "trace"),
  rate: RATE,
  to: RATE,
  cv: numberField("a number > 0 and <= 20", (v) => v > 0 && v <= 20),
  size: integerField("requests", 1, 1_000_000),
  every: durationField('a duration > 0, such as "2s"', (ms) => ms > 0),
  timeScale: numberField("a number > 0", (v) => v > 0),
};
const LENGTH_FIELDS: Fields<Exclude<LengthSpec, number>> = {
  mean: numberField("a number >= 1 (tokens)", (v) => v >= 1 && v <= LONGEST),
  cv: numberField("a number >= 0 and <= 10", (v) => v >= 0 && v <= 10),
  min: tokens,
  max: tokens,
};
const PREFIX_FIELDS = { tokens, variants: integerField("texts", 1, 100_000) };
const RATE_RULE = 'must be requests per second > 0, or a share of the capacity such as "60%"';
const NEEDS: Readonly<Record<ArrivalSpec["process"], readonly (keyof ArrivalSpec)[]>> = {
  constant: ["rate"],
  poisson: ["rate"],
  gamma: ["rate", "cv"],
  bursts: ["size"],
  ramp: ["rate", "to"],
  trace: [],
};

/** Reads `traffic`; faults are added to `faults`. */
export function readTenants(
  input: unknown,
  endpoints: readonly ResolvedEndpoint[],
  flow: ResolvedFlowOptions | undefined,
  faults: ConfigFault[],
): ResolvedTenant[] {
  const tenants = readList(input, "traffic", faults).map((one, i) =>
    readTenant(one, i, endpoints, flow, faults),
  );
  const names = tenants.map(({ name }) => name);
  names.forEach((name, i) => {
    if (names.indexOf(name) === i) return;
    faults.push({ path: `traffic.${i}.name`, value: name, rule: "must be a name of its own" });
  });
  return tenants;
}

function readTenant(
  input: unknown,
  i: number,
  endpoints: readonly ResolvedEndpoint[],
  flow: ResolvedFlowOptions | undefined,
  faults: ConfigFault[],
): ResolvedTenant {
  const path = `traffic.${i}`;
  const given = readFields(TENANT_FIELDS, input, path, faults);
  const trace = given.trace ?? [];
  const prompt = readLength(given.prompt, `${path}.prompt`, trace.length > 0, faults);
  const output = readLength(given.output, `${path}.output`, trace.length > 0, faults);
  const lengths = {
    prompt: prompt?.mean ?? meanOf(trace, ({ promptTokens }) => promptTokens),
    output: output?.mean ?? meanOf(trace, ({ outputTokens }) => outputTokens),
  };
  const capacity = endpoints.reduce((sum, { model }) => sum + capacityOf(model, lengths), 0);
  const arrival = readArrival(given.arrival, `${path}.arrival`, capacity, trace, faults);
  const names = flow?.names ?? ["0"];
  const { priority = names.length - 1 } = given;
  const band = typeof priority === "number" ? priority : names.indexOf(priority);
  // Without a flow controller priorities say nothing, and do no harm.
  if (flow !== undefined && !(band in names)) {
    const rule = `must be one of ${names.join(", ")}, or an index of them`;
    faults.push({ path: `${path}.priority`, value: priority, rule });
  }
  let sharedPrefix: ResolvedTenant["sharedPrefix"];
  if (given.sharedPrefix !== undefined) {
    const at = `${path}.sharedPrefix`;
    const prefix = readFields(PREFIX_FIELDS, given.sharedPrefix, at, faults);
    sharedPrefix = { tokens: prefix.tokens ?? 1, variants: prefix.variants ?? 1 };
  }
  const { name = `tenant-${i + 1}`, streaming = true } = given;
  const inFlow = flow === undefined ? 0 : band;
  return { name, arrival, prompt, output, sharedPrefix, band: inFlow, streaming, trace };
}

function readArrival(
  input: unknown,
  path: string,
  capacity: number,
  trace: readonly TraceRequest[],
  faults: ConfigFault[],
): ResolvedArrival {
  const before = faults.length;
  const given = readFields(ARRIVAL_FIELDS, input ?? {}, path, faults);
  const isFaultless = faults.length === before;
  const missing = (key: string, rule: string) => {
    if (isFaultless) faults.push({ path: `${path}.${key}`, value: undefined, rule });
  };
  const { process } = given;
  if (process === undefined) missing("process", `must be ${ARRIVAL_FIELDS.process.rule}`);
  for (const key of process === undefined ? [] : NEEDS[process]) {
    if (given[key] === undefined) missing(key, `must be given for the process "${process}"`);
  }
  if (process === "trace" && trace.length === 0) {
    missing("process", "must not be trace where no trace is given");
  }
  const { cv = 1, size = 1, timeScale = 1, every } = given;
  if (process === "bursts" && (every === undefined) === (given.rate === undefined)) {
    missing("every", "must be given for the process bursts, or rate, not both");
  }
  const rate = every === undefined ? readRate(given.rate, `${path}.rate`, capacity, faults) : 0;
  const to = readRate(given.to, `${path}.to`, capacity, faults);
  const mean = every === undefined ? rate : (1000 * size) / every;
  return { process: process ?? "constant", rate: mean, to, cv, size, timeScale };
}

function readRate(value: unknown, path: string, capacity: number, faults: ConfigFault[]): number {
  if (value === undefined) return 0;
  const share = typeof value === "string" ? /^(\d+(?:\.\d+)?)\s*%$/.exec(value)?.[1] : undefined;
  const rate = share === undefined ? value : (Number(share) / 100) * capacity;
  if (typeof rate === "number" && rate > 0 && rate <= FASTEST_PER_S) return rate;
  // A share of nothing: the endpoints have faults of their own.
  if (share === undefined || capacity > 0) faults.push({ path, value, rule: RATE_RULE });
  return 0;
}

function readLength(
  value: LengthSpec | undefined,
  path: string,
  hasTrace: boolean,
  faults: ConfigFault[],
): ResolvedLength | undefined {
  if (value === undefined) {
    if (!hasTrace) faults.push({ path, value, rule: "must be tokens, or { mean, cv }" });
    return undefined;
  }
  if (typeof value === "number") {
    const fixed = tokens.read(value);
    if (fixed === undefined) faults.push({ path, value, rule: `must be ${tokens.rule}` });
    return { mean: fixed ?? 1, cv: 0, min: fixed ?? 1, max: fixed ?? 1 };
  }
  const before = faults.length;
  const given = readFields(LENGTH_FIELDS, value, path, faults);
  const { mean = 1, cv = 0, min = 1, max = LONGEST } = given;
  if (faults.length === before && given.mean === undefined) {
    faults.push({
      path: `${path}.mean`,
      value: undefined,
      rule: `must be ${LENGTH_FIELDS.mean.rule}`,
    });
  }
  if (min > max)
    faults.push({ path: `${path}.min`, value: min, rule: `must not exceed max, ${max}` });
  return { mean, cv, min, max };
}

function meanOf(trace: readonly TraceRequest[], of: (request: TraceRequest) => number): number {
  if (trace.length === 0) return 1;
  return trace.reduce((sum, request) => sum + of(request), 0) / trace.length;
}
