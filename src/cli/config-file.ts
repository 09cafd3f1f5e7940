// A config file, YAML or JSON: read, checked, and every fault with its line and column.

import { type Document, isMap, isNode, isPair, LineCounter, parseDocument } from "yaml";
import {
  CONFIG_FIELDS,
  type DetectorConfig,
  type Fields,
  type ResolvedConfig,
  readFields,
} from "../config";
import { formatDuration } from "../duration";
import { type ConfigFault, describeFault } from "../errors";
import type { EngineName } from "../telemetry/engines";
import { TIME_FIELDS } from "../telemetry/scraper-options";
import {
  ENGINE_FIELD,
  hideCredentials,
  readTargets,
  type TargetOptions,
} from "../telemetry/targets";

/** What a config file may say. Durations are in ms once it is read. */
export interface FileConfig {
  readonly detector: DetectorConfig;
  readonly endpoints: readonly TargetOptions[];
  readonly interval: number | undefined;
  readonly timeout: number | undefined;
  readonly engine: EngineName | undefined;
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
/** More aliases than this are a bomb, not a config. */
const MAX_ALIASES = 100;

/** Reads the text of a config file. */
export function readConfigText(source: string): FileReading {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, customTags: [], uniqueKeys: true });
  const syntax = [...document.errors, ...document.warnings].map((error) => ({
    path: "",
    value: undefined,
    rule: error.message.split("\n")[0]?.replace(/ at line \d+, column \d+:?$/, "") ?? error.code,
    ...placeAt(lines, error.pos[0]),
  }));
  if (syntax.length > 0) return { config: undefined, faults: syntax };
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES }) ?? {};
  } catch (error) {
    const rule = error instanceof Error ? error.message : String(error);
    return {
      config: undefined,
      faults: [{ path: "", value: undefined, rule, line: 1, column: 1 }],
    };
  }
  const faults: ConfigFault[] = [];
  const config = readConfigValue(value, faults);
  if (faults.length === 0) return { config, faults: [] };
  const placed = faults.map((fault) => place(fault, document, lines));
  placed.sort((a, b) => a.line - b.line || a.column - b.column);
  return { config: undefined, faults: placed };
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

function placeAt(lines: LineCounter, offset: number): { line: number; column: number } {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

/** The place of a fault: its key where there is one, else the nearest node that holds it. */
function place(fault: ConfigFault, document: Document, lines: LineCounter): PlacedFault {
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
