// The router's configuration: read once, all faults together, every default filled in.

import {
  CONFIG_FIELDS,
  type DetectorConfig,
  type Fields,
  type ResolvedConfig,
  readFields,
} from "../config";
import { ConfigError, type ConfigFault } from "../errors";
import { resolveFlowOptions } from "../flow/options";
import type { EngineName } from "../telemetry/engines";
import { TIME_FIELDS } from "../telemetry/scraper-options";
import { ENGINE_FIELD, hideUnknown } from "../telemetry/targets";
import {
  type Address,
  AFFINITY_FIELDS,
  type AffinitySettings,
  BOOLEAN_FIELD,
  HEADER_FIELDS,
  type HeaderSettings,
  LIMIT_FIELDS,
  LISTEN_FIELDS,
  type LimitSettings,
  RETRY_FIELDS,
  type RetrySettings,
  ROUTER_DEFAULTS,
  TEXT_FIELD,
  TIMEOUT_FIELDS,
  type TimeoutSettings,
} from "./config-fields";
import { type DnsSource, readDnsSources } from "./dns-options";
import { type RoutedEndpoint, readEndpoints } from "./endpoints";
import type { RouterFlowOptions } from "./options";
import type { Environment } from "./secrets";

/** A checked configuration. Durations in ms, names of headers in lower case. */
export interface RouterSettings {
  readonly detector: DetectorConfig;
  readonly endpoints: readonly RoutedEndpoint[];
  readonly endpointsFile: string | undefined;
  readonly dns: readonly DnsSource[];
  readonly interval: number | undefined;
  readonly timeout: number | undefined;
  readonly engine: EngineName | undefined;
  readonly listen: Address;
  readonly admin: Address | undefined;
  readonly flow: RouterFlowOptions;
  readonly affinity: AffinitySettings;
  readonly headers: HeaderSettings;
  readonly retry: RetrySettings;
  readonly timeouts: TimeoutSettings;
  readonly limits: LimitSettings;
  readonly inBand: boolean;
}

interface TopLevel {
  interval: number;
  timeout: number;
  engine: EngineName;
  endpoints: readonly unknown[];
  endpointsFile: string;
  dns: readonly unknown[];
  listen: object;
  admin: object | false;
  flow: object;
  affinity: object;
  headers: object;
  retry: object;
  timeouts: object;
  limits: object;
  inBand: boolean;
}

const list = (of: string) => ({
  rule: `a list of ${of}`,
  read: (value: unknown) => (Array.isArray(value) ? (value as readonly unknown[]) : undefined),
});
const section = {
  rule: "an object of options",
  read: (value: unknown) => {
    const isOne = typeof value === "object" && value !== null && !Array.isArray(value);
    return isOne ? value : undefined;
  },
};

/** The options at the top of a config that are not the detector's. */
export const TOP_FIELDS: Fields<TopLevel> = {
  ...TIME_FIELDS,
  engine: ENGINE_FIELD,
  endpoints: list("endpoints"),
  endpointsFile: TEXT_FIELD,
  dns: list("objects with a url"),
  listen: section,
  admin: {
    rule: `${section.rule}, or false`,
    read: (value) => (value === false ? value : section.read(value)),
  },
  flow: section,
  affinity: section,
  headers: section,
  retry: section,
  timeouts: section,
  limits: section,
  inBand: BOOLEAN_FIELD,
};

/**
 * Checks a configuration and fills in the defaults.
 *
 * @throws ConfigError with every fault.
 */
export function resolveRouterConfig(
  input: unknown,
  environment: Environment | undefined,
): RouterSettings {
  const faults: ConfigFault[] = [];
  const settings = readRouterConfig(input, environment, faults);
  if (faults.length > 0) throw new ConfigError(faults);
  return settings;
}

/** As `resolveRouterConfig`; faults are added to `faults`, and what was read is good without any. */
export function readRouterConfig(
  input: unknown,
  environment: Environment | undefined,
  faults: ConfigFault[],
): RouterSettings {
  const own: ConfigFault[] = [];
  const settings = readSections(input, environment, own);
  faults.push(...own.map(hideUnknown));
  return settings;
}

function readSections(
  input: unknown,
  environment: Environment | undefined,
  faults: ConfigFault[],
): RouterSettings {
  const fields = { ...CONFIG_FIELDS, ...TOP_FIELDS };
  const top = readFields<ResolvedConfig & TopLevel>(fields, input, "", faults);
  const { interval, timeout, engine, endpoints = [], endpointsFile, dns = [], ...more } = top;
  const { listen, admin, flow, affinity, headers, retry, timeouts, limits, inBand, ...detector } =
    more;
  const context = { engine, environment };
  const read = <T>(own: Fields<T>, value: unknown, path: string) =>
    readFields(own, value, path, faults);
  return {
    detector,
    interval,
    timeout,
    engine,
    endpoints: readInto(faults, (own) => readEndpoints(endpoints, "endpoints", context, own)),
    endpointsFile,
    dns: readInto(faults, (own) => readDnsSources(dns, context, own)),
    listen: { ...ROUTER_DEFAULTS.listen, ...read(LISTEN_FIELDS, listen, "listen") },
    admin:
      admin === false
        ? undefined
        : { ...ROUTER_DEFAULTS.admin, ...read(LISTEN_FIELDS, admin, "admin") },
    flow: readFlow(flow, faults),
    affinity: {
      header: undefined,
      ...ROUTER_DEFAULTS.affinity,
      ...read(AFFINITY_FIELDS, affinity, "affinity"),
    },
    headers: {
      priority: undefined,
      tenant: undefined,
      ...ROUTER_DEFAULTS.headers,
      ...read(HEADER_FIELDS, headers, "headers"),
    },
    retry: { ...ROUTER_DEFAULTS.retry, ...read(RETRY_FIELDS, retry, "retry") },
    timeouts: { ...ROUTER_DEFAULTS.timeouts, ...read(TIMEOUT_FIELDS, timeouts, "timeouts") },
    limits: { ...ROUTER_DEFAULTS.limits, ...read(LIMIT_FIELDS, limits, "limits") },
    inBand: inBand ?? ROUTER_DEFAULTS.inBand,
  };
}

/** The flow controller judges its own options; its faults get their place here. */
function readFlow(value: object | undefined, faults: ConfigFault[]): RouterFlowOptions {
  const { clock: isGiven, ...flow }: RouterFlowOptions & { clock?: unknown } = value ?? {};
  if (isGiven !== undefined) {
    faults.push({ path: "flow.clock", value: isGiven, rule: "unknown option" });
  }
  try {
    resolveFlowOptions(flow);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const fault of error.faults) faults.push({ ...fault, path: `flow.${fault.path}` });
  }
  return flow;
}

/** A list is good when it has no fault of its own, whatever else was found. */
function readInto<T>(faults: ConfigFault[], read: (own: ConfigFault[]) => T): T {
  const own: ConfigFault[] = [];
  const value = read(own);
  faults.push(...own);
  return value;
}
