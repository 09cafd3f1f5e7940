// A config file, YAML or JSON: read, checked, and every fault with its line and column.

import {
  CONFIG_FIELDS,
  type DetectorConfig,
  type Fields,
  type ResolvedConfig,
  readFields,
} from "../config";
import { formatDuration } from "../duration";
import type { ConfigFault } from "../errors";
import type { EngineName } from "../telemetry/engines";
import { TIME_FIELDS } from "../telemetry/scraper-options";
import {
  ENGINE_FIELD,
  hideCredentials,
  readTargets,
  type TargetOptions,
} from "../telemetry/targets";
import { type PlacedFault, parseYaml } from "./yaml-file";

/** What a config file may say. Durations are in ms once it is read. */
export interface FileConfig {
  readonly detector: DetectorConfig;
  readonly endpoints: readonly TargetOptions[];
  readonly interval: number | undefined;
  readonly timeout: number | undefined;
  readonly engine: EngineName | undefined;
}

/** A file that was read: a config, or all its faults. */
export type FileReading =
  | { readonly config: FileConfig; readonly faults: readonly [] }
  | { readonly config: undefined; readonly faults: readonly PlacedFault[] };

interface TopLevel {
  interval: number;
  timeout: number;
  engine: EngineName;
  endpoints: (string | TargetOptions)[];
}

const TOP_FIELDS: Fields<TopLevel> = {
  ...TIME_FIELDS,
  engine: ENGINE_FIELD,
  endpoints: {
    rule: "a list of endpoints",
    read: (value) => (Array.isArray(value) ? value : undefined),
  },
};
/** Reads the text of a config file. */
export function readConfigText(source: string): FileReading {
  const file = parseYaml(source);
  if (file.faults !== undefined) return { config: undefined, faults: file.faults };
  const faults: ConfigFault[] = [];
  const config = readConfigValue(file.value, faults);
  if (faults.length === 0) return { config, faults: [] };
  return { config: undefined, faults: file.place(faults) };
}

function readConfigValue(value: unknown, faults: ConfigFault[]): FileConfig {
  const given = readFields<ResolvedConfig & TopLevel>(
    { ...CONFIG_FIELDS, ...TOP_FIELDS },
    value,
    "",
    faults,
  );
  const { interval, timeout, engine, endpoints = [], ...detector } = given;
  const targetFaults: ConfigFault[] = [];
  readTargets(endpoints, engine, targetFaults);
  for (const fault of targetFaults) {
    faults.push({ ...fault, path: fault.path.replace(/^targets/, "endpoints") });
  }
  const asObjects = endpoints.map((one) => (typeof one === "string" ? { url: one } : one));
  return { detector, endpoints: asObjects, interval, timeout, engine };
}

function hideValues(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, "***"]));
}

/** The scrape settings of a config as people write them; nothing secret is among them. */
export function printScrape(config: FileConfig): Record<string, unknown> {
  const { interval, timeout, engine, detector } = config;
  const endpoints = config.endpoints.map(({ url, headers, ...rest }) => ({
    url: hideCredentials(url),
    ...(headers === undefined ? {} : { headers: hideValues(headers) }),
    ...rest,
  }));
  // Where S is not given, the scraper sets it.
  const staleness = formatDuration(Math.max(200, 3 * (interval ?? 50)));
  const isGiven = detector.metricsStalenessThreshold !== undefined;
  return {
    ...(isGiven ? {} : { metricsStalenessThreshold: staleness }),
    ...(engine === undefined ? {} : { engine }),
    interval: formatDuration(interval ?? 50),
    timeout: formatDuration(timeout ?? 1000),
    endpoints,
  };
}
