// Checks a scenario and fills in the defaults: all faults together, each with its path.

import {
  CONFIG_FIELDS,
  type DetectorConfig,
  durationField,
  ENDPOINT_FIELDS,
  type EndpointOptions,
  type Field,
  type Fields,
  oneOf,
  readFields,
  unknownKey,
} from "../config";
import { ConfigError, type ConfigFault } from "../errors";
import { type ResolvedFlowOptions, resolveFlowOptions } from "../flow/options";
import { ANY, BOOLEAN, integerField, numberField, readList, TEXT } from "./fields";
import { POLICY_NAMES } from "./policy-names";
import { ENGINE_DEFAULTS, type EngineModel, PRESETS } from "./presets";
import type {
  EndpointSpec,
  FaultKind,
  FaultSpec,
  PolicyName,
  Scenario,
  ScrapeSpec,
  SloSpec,
} from "./scenario";
import { type ResolvedTenant, readTenants } from "./tenant-reader";

/** One endpoint of a checked scenario. */
export interface ResolvedEndpoint {
  readonly id: string;
  /** Name of its preset, and where that comes from; "own coefficients" otherwise. */
  readonly kind: string;
  readonly model: EngineModel;
  readonly options: EndpointOptions;
}

/** A checked fault; times in ms. */
export interface ResolvedFault {
  readonly kind: FaultKind;
  readonly at: number;
  readonly until: number;
  readonly endpoints: readonly number[];
  readonly factor: number;
}

/** A checked scenario with every default filled in; times in ms. */
export interface ResolvedScenario {
  readonly name: string;
  readonly description: string;
  readonly duration: number;
  readonly endpoints: readonly ResolvedEndpoint[];
  readonly traffic: readonly ResolvedTenant[];
  readonly routers: number;
  readonly policy: PolicyName;
  readonly scrape: {
    readonly interval: number;
    readonly latency: number;
    readonly loss: number;
    readonly phase: "spread" | "aligned";
  };
  readonly inBand: boolean;
  readonly network: number;
  readonly detector: DetectorConfig;
  readonly flow: ResolvedFlowOptions | undefined;
  readonly timeout: number;
  readonly retries: number;
  readonly faults: readonly ResolvedFault[];
  readonly slo: { readonly ttft: number; readonly tpot: number };
}

/** Longest run: far beyond any trace, so that a mistake is told before it runs for hours. */
const LONGEST_MS = 31 * 24 * 3600 * 1000;
const time = durationField(
  'a duration > 0 and at most "744h", such as "60s"',
  (ms) => ms > 0 && ms <= LONGEST_MS,
);
const delay = durationField('a duration >= 0 and at most "1h", such as "4ms"', (ms) => {
  return ms >= 0 && ms <= 3600_000;
});
const positive = numberField("a number > 0", (v) => v > 0);
const notNegative = numberField("a number >= 0", (v) => v >= 0);
const count = integerField("of them", 1, 4096);

const MODEL_FIELDS: Fields<EngineModel> = {
  a: numberField("a number > 0 (ms)", (v) => v > 0),
  d: numberField("a number >= 0 (ms per 1,000 tokens)", (v) => v >= 0),
  c: numberField("a number >= 0 (ms per sequence)", (v) => v >= 0),
  p: numberField("a number >= 0 (ms per prompt token)", (v) => v >= 0),
  ttftConst: notNegative,
  kvBlocks: integerField("blocks", 1, 1e9),
  blockSize: integerField("tokens", 1, 4096),
  maxNumSeqs: integerField("sequences", 1, 65536),
  maxNumBatchedTokens: integerField("tokens", 1, 1e7),
  chunkedPrefill: BOOLEAN,
  prefixCache: BOOLEAN,
  publishingLag: delay,
};
const ENDPOINT_SPEC_FIELDS = { ...MODEL_FIELDS, preset: TEXT, count, options: ANY };
const SCRAPE_FIELDS: Fields<ScrapeSpec> = {
  interval: time,
  latency: delay,
  loss: numberField("a share >= 0 and < 1", (v) => v >= 0 && v < 1),
  phase: oneOf<"spread" | "aligned">("spread", "aligned"),
};
const FAULT_FIELDS: Fields<FaultSpec> = {
  kind: oneOf<FaultKind>("dies", "hangs", "slow", "scrape-outage"),
  at: delayUpTo(LONGEST_MS),
  for: time,
  endpoints: {
    rule: "a list of endpoint numbers, counted from 0",
    read: (value) => (Array.isArray(value) && value.every(Number.isInteger) ? value : undefined),
  },
  factor: positive,
};
const SLO_FIELDS: Fields<SloSpec> = { ttft: time, tpot: time };

interface TopLevel {
  name: string;
  description: string;
  duration: number;
  endpoints: unknown;
  traffic: unknown;
  routers: number;
  policy: PolicyName;
  scrape: unknown;
  inBand: boolean;
  network: number;
  detector: unknown;
  flow: unknown;
  timeout: number;
  retries: number;
  faults: unknown;
  slo: unknown;
}
const FIELDS: Fields<TopLevel> = {
  name: TEXT,
  description: TEXT,
  duration: time,
  endpoints: ANY,
  traffic: ANY,
  routers: integerField("routers", 1, 16),
  policy: oneOf<PolicyName>(...POLICY_NAMES),
  scrape: ANY,
  inBand: BOOLEAN,
  network: delay,
  detector: ANY,
  flow: ANY,
  timeout: time,
  retries: integerField("tries", 0, 10),
  faults: ANY,
  slo: ANY,
};

/**
 * Checks a scenario.
 *
 * @throws ConfigError with every fault.
 */
export function resolveScenario(input: Scenario | unknown): ResolvedScenario {
  const faults: ConfigFault[] = [];
  const given = readFields(FIELDS, input, "", faults);
  if (given.duration === undefined && !faults.some(({ path }) => path === "duration")) {
    faults.push({ path: "duration", value: undefined, rule: `must be ${time.rule}` });
  }
  const endpoints = readEndpoints(given.endpoints, faults);
  const flow = readFlow(given.flow, faults);
  const duration = given.duration ?? 1;
  const traffic = readTenants(given.traffic, endpoints, flow, faults);
  const scrape = readFields(SCRAPE_FIELDS, given.scrape ?? {}, "scrape", faults);
  const detector = readFields(CONFIG_FIELDS, given.detector ?? {}, "detector", faults);
  const slo = readFields(SLO_FIELDS, given.slo ?? {}, "slo", faults);
  const failures = readFaults(given.faults, endpoints.length, faults);
  if (faults.length > 0) throw new ConfigError(faults);
  return {
    name: given.name ?? "scenario",
    description: given.description ?? "",
    duration,
    endpoints,
    traffic,
    routers: given.routers ?? 1,
    policy: given.policy ?? "plimsoll",
    scrape: { interval: 200, latency: 4, loss: 0, phase: "spread", ...(scrape as object) },
    inBand: given.inBand ?? false,
    network: given.network ?? 0.5,
    detector,
    flow,
    timeout: given.timeout ?? 120_000,
    retries: given.retries ?? 2,
    faults: failures,
    slo: { ttft: 500, tpot: 50, ...(slo as object) },
  };
}

function readEndpoints(input: unknown, faults: ConfigFault[]): ResolvedEndpoint[] {
  const endpoints: ResolvedEndpoint[] = [];
  for (const [i, one] of readList(input, "endpoints", faults).entries()) {
    const path = `endpoints.${i}`;
    const before = faults.length;
    const given = readFields(ENDPOINT_SPEC_FIELDS as Fields<EndpointSpec>, one, path, faults);
    const { preset: name, count: times = 1, options = {}, ...changes } = given;
    const checked = readFields(ENDPOINT_FIELDS, options, `${path}.options`, faults);
    if (name !== undefined && !Object.hasOwn(PRESETS, name)) {
      const rule = unknownKey(name, Object.keys(PRESETS)).replace(
        "unknown option",
        "unknown preset",
      );
      faults.push({
        path: `${path}.preset`,
        value: name,
        rule: rule.replace("options", "presets"),
      });
    }
    const preset = name === undefined ? undefined : PRESETS[name];
    const mayMiss = preset === undefined && faults.length === before;
    for (const key of mayMiss ? (["a", "d", "kvBlocks"] as const) : []) {
      if (changes[key] !== undefined) continue;
      const rule = `must be ${MODEL_FIELDS[key].rule}, or give a preset`;
      faults.push({ path: `${path}.${key}`, value: undefined, rule });
    }
    if (faults.length > before) continue;
    const { kind, ...base } = preset ?? { kind: "own coefficients" };
    const model = { ...ENGINE_DEFAULTS, c: 0, p: 0, ttftConst: 0, ...base, ...changes };
    const isChanged = Object.keys(changes).length > 0 && preset !== undefined;
    const described =
      name === undefined ? kind : `${name} (${kind}${isChanged ? ", changed" : ""})`;
    for (let k = 0; k < times; k++) {
      const id = `engine-${endpoints.length}`;
      // `a`, `d` and `kvBlocks` have just been asked for.
      endpoints.push({ id, kind: described, model: model as EngineModel, options: checked });
    }
  }
  return endpoints;
}

function readFlow(input: unknown, faults: ConfigFault[]): ResolvedFlowOptions | undefined {
  if (input === undefined || input === false) return undefined;
  if (input !== true && (typeof input !== "object" || input === null || Array.isArray(input))) {
    faults.push({
      path: "flow",
      value: input,
      rule: "must be true, false, or an object of options",
    });
    return undefined;
  }
  try {
    return resolveFlowOptions(input === true ? {} : input);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const fault of error.faults) faults.push({ ...fault, path: `flow.${fault.path}` });
    return undefined;
  }
}

function readFaults(input: unknown, endpoints: number, faults: ConfigFault[]): ResolvedFault[] {
  if (input === undefined) return [];
  if (!Array.isArray(input)) {
    faults.push({ path: "faults", value: input, rule: "must be a list" });
    return [];
  }
  return input.flatMap((one, i) => {
    const path = `faults.${i}`;
    const before = faults.length;
    const given = readFields(FAULT_FIELDS, one, path, faults);
    for (const key of faults.length === before ? (["kind", "at"] as const) : []) {
      if (given[key] !== undefined) continue;
      faults.push({
        path: `${path}.${key}`,
        value: undefined,
        rule: `must be ${FAULT_FIELDS[key].rule}`,
      });
    }
    const { endpoints: which = Array.from({ length: endpoints }, (_, k) => k) } = given;
    if (which.some((k) => k < 0 || k >= endpoints)) {
      const rule = `must be from 0 to ${endpoints - 1}, there are ${endpoints} endpoints`;
      faults.push({ path: `${path}.endpoints`, value: which, rule });
    }
    if (faults.length > before) return [];
    const at = given.at as number; // readFields gives ms, and it was asked for
    const until = given.for === undefined ? Number.POSITIVE_INFINITY : at + (given.for as number);
    const kind = given.kind as FaultKind; // it was asked for
    return [{ kind, at, until, endpoints: which, factor: given.factor ?? 3 }];
  });
}

function delayUpTo(most: number): Field<number> {
  return durationField('a duration >= 0, such as "20s"', (ms) => ms >= 0 && ms <= most);
}
