// A config file, YAML or JSON: read, checked, and every fault with its line and column. A file for `watch` is
// one for `serve` too: there is one set of options, and each command takes what it needs.

import type { DetectorConfig } from "../config";
import { formatDuration } from "../duration";
import type { ConfigFault } from "../errors";
import { type RouterSettings, readRouterConfig } from "../router/config";
import type { RoutedEndpoint } from "../router/endpoints";
import type { Environment } from "../router/secrets";
import type { EngineName } from "../telemetry/engines";
import { hideCredentials, type TargetOptions } from "../telemetry/targets";
import { type PlacedFault, parseYaml } from "../yaml-file";

/** What a config file may say. Durations are in ms once it is read. */
export interface FileConfig {
  readonly detector: DetectorConfig;
  readonly endpoints: readonly TargetOptions[];
  readonly interval: number | undefined;
  readonly timeout: number | undefined;
  readonly engine: EngineName | undefined;
  /** All of it, for `serve`. */
  readonly settings: RouterSettings;
  /** As it stands in the file. */
  readonly value: object;
}

/** A file that was read: a config, or all its faults. */
export type FileReading =
  | { readonly config: FileConfig; readonly faults: readonly [] }
  | { readonly config: undefined; readonly faults: readonly PlacedFault[] };

/**
 * Reads the text of a config file.
 *
 * @param environment for `${NAME}`; default: such texts stay as they are.
 */
export function readConfigText(source: string, environment?: Environment): FileReading {
  const file = parseYaml(source);
  if (file.faults !== undefined) return { config: undefined, faults: file.faults };
  const { value } = file;
  if (value === null) {
    const rule = "is empty; {} takes every default";
    return {
      config: undefined,
      faults: [{ path: "", value: undefined, rule, line: 1, column: 1 }],
    };
  }
  const faults: ConfigFault[] = [];
  const settings = readRouterConfig(value, environment, faults);
  if (faults.length > 0) return { config: undefined, faults: file.place(faults) };
  // Without a fault, it is an object.
  return { config: toFileConfig(settings, value as object), faults: [] };
}

function toFileConfig(settings: RouterSettings, value: object): FileConfig {
  const { detector, endpoints, interval, timeout, engine } = settings;
  const targets = endpoints.map(({ target }) => target);
  return { detector, endpoints: targets, interval, timeout, engine, settings, value };
}

function hideValues(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, "***"]));
}

function printEndpoint({ target, models, requestHeaders }: RoutedEndpoint): object {
  const { url, headers, ...rest } = target;
  return {
    url: hideCredentials(url),
    ...(headers === undefined ? {} : { headers: hideValues(headers) }),
    ...rest,
    ...(models === undefined ? {} : { models }),
    ...(Object.keys(requestHeaders).length === 0
      ? {}
      : { requestHeaders: hideValues(requestHeaders) }),
  };
}

/** Everything but the detector's options, as people write it; nothing secret is among them. */
export function printSettings({ settings }: FileConfig): Record<string, unknown> {
  const { interval, timeout, engine, detector, endpoints, endpointsFile, dns } = settings;
  const { listen, admin, flow, affinity, headers, retry, timeouts, limits, inBand } = settings;
  // Where S is not given, the scraper sets it.
  const staleness = formatDuration(Math.max(200, 3 * (interval ?? 50)));
  const isGiven = detector.metricsStalenessThreshold !== undefined;
  const printed = {
    metricsStalenessThreshold: isGiven ? undefined : staleness,
    engine,
    interval: formatDuration(interval ?? 50),
    timeout: formatDuration(timeout ?? 1000),
    endpoints: endpoints.map(printEndpoint),
    endpointsFile,
    dns:
      dns.length === 0
        ? undefined
        : dns.map(({ template, refresh, servers }) => ({
            ...printEndpoint(template),
            refresh: formatDuration(refresh),
            servers: servers.length === 0 ? undefined : servers,
          })),
    listen,
    admin: admin ?? false,
    flow,
    affinity: definedOnly(affinity),
    headers: definedOnly(headers),
    retry: {
      ...retry,
      holdOff: formatDuration(retry.holdOff),
      longestHoldOff: formatDuration(retry.longestHoldOff),
    },
    timeouts: Object.fromEntries(
      Object.entries(timeouts).map(([name, ms]) => [name, formatDuration(ms)]),
    ),
    limits,
    inBand,
  };
  return definedOnly(printed);
}

function definedOnly(value: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined));
}
