// A config file, YAML or JSON: read, checked, and every fault with its line and column. A file for `watch` is
// one for `serve` too: there is one set of options, and each command takes what it needs.

import { type Document, isMap, isNode, isPair, type LineCounter } from "yaml";
import type { DetectorConfig } from "../config";
import { formatDuration } from "../duration";
import { type ConfigFault, describeFault } from "../errors";
import { type RouterSettings, readRouterConfig } from "../router/config";
import type { RoutedEndpoint } from "../router/endpoints";
import type { Environment } from "../router/secrets";
import { parseYaml, type YamlReading } from "../router/yaml";
import type { EngineName } from "../telemetry/engines";
import { hideCredentials, type TargetOptions } from "../telemetry/targets";

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

/** A fault and where it stands, both counted from 1. */
export interface PlacedFault extends ConfigFault {
  readonly line: number;
  readonly column: number;
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
  const { value, fault, errors, document, lines } = parseYaml(source);
  const syntax = syntaxFaults({ fault, errors, lines });
  if (syntax.length > 0) return { config: undefined, faults: syntax };
  const faults: ConfigFault[] = [];
  const settings = readRouterConfig(value ?? {}, environment, faults);
  if (faults.length === 0) {
    // Without a fault, it is an object.
    return { config: toFileConfig(settings, (value ?? {}) as object), faults: [] };
  }
  const placed = faults.map((one) => place(one, document, lines));
  placed.sort((a, b) => a.line - b.line || a.column - b.column);
  return { config: undefined, faults: placed };
}

/** What keeps a text from being YAML at all. */
export function syntaxFaults({
  fault,
  errors,
  lines,
}: Pick<YamlReading, "fault" | "errors" | "lines">): PlacedFault[] {
  if (errors.length === 0) {
    return fault === undefined
      ? []
      : [{ path: "", value: undefined, rule: fault, line: 1, column: 1 }];
  }
  return errors.map((error) => ({
    path: "",
    value: undefined,
    rule: error.message.split("\n")[0]?.replace(/ at line \d+, column \d+:?$/, "") ?? error.code,
    ...placeAt(lines, error.pos[0]),
  }));
}

function toFileConfig(settings: RouterSettings, value: object): FileConfig {
  const { detector, endpoints, interval, timeout, engine } = settings;
  const targets = endpoints.map(({ target }) => target);
  return { detector, endpoints: targets, interval, timeout, engine, settings, value };
}

/** Line and column of an offset, both counted from 1. */
export function placeAt(lines: LineCounter, offset: number): { line: number; column: number } {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

/** A fault or note with its place: its key where there is one, else the nearest node that holds it. */
export function place<T extends { readonly path: string }>(
  fault: T,
  document: Document,
  lines: LineCounter,
): T & { readonly line: number; readonly column: number } {
  const keys = fault.path === "" ? [] : fault.path.split(".");
  for (let depth = keys.length; depth >= 0; depth--) {
    const offset = offsetOf(document, keys.slice(0, depth));
    if (offset !== undefined) return { ...fault, ...placeAt(lines, offset) };
  }
  return { ...fault, line: 1, column: 1 };
}

function offsetOf(document: Document, keys: readonly string[]): number | undefined {
  const key = keys.at(-1);
  const parent = keys.length > 1 ? document.getIn(keys.slice(0, -1), true) : document.contents;
  if (key === undefined) return isNode(parent) ? parent.range?.[0] : undefined;
  if (isMap(parent)) {
    const pair = parent.items.find((item) => isPair(item) && String(item.key) === key);
    return isNode(pair?.key) ? pair.key.range?.[0] : undefined;
  }
  const node = document.getIn(keys, true);
  return isNode(node) ? node.range?.[0] : undefined;
}

/** Faults as lines that editors and people can follow. */
export function printFaults(file: string, faults: readonly PlacedFault[]): string {
  return faults
    .map((fault) => {
      const what =
        fault.value === undefined
          ? `${fault.path}${fault.path && ": "}${fault.rule}`
          : describeFault(fault);
      return `${file}:${fault.line}:${fault.column}: ${what}`;
    })
    .join("\n");
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
