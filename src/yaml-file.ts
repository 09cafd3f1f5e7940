// A YAML or JSON file, wherever this package reads one: parsed without custom tags and alias bombs, and every fault with its place.

import { type Document, isMap, isNode, isPair, LineCounter, parseDocument } from "yaml";
import { type ConfigFault, describeFault } from "./errors";

/** Where something stands, both counted from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** A fault and where it stands. */
export interface PlacedFault extends ConfigFault, Place {}

/** A file that was parsed: its value, or the faults of its syntax. */
export type YamlFile =
  | {
      readonly value: unknown;
      readonly faults: undefined;
      /** What was found in the value, such as faults, in the order in which it stands in the file. */
      place<T extends { readonly path: string }>(found: readonly T[]): readonly (T & Place)[];
    }
  | { readonly value: undefined; readonly faults: readonly PlacedFault[] };

/** More aliases than this are a bomb, not a config. */
const MAX_ALIASES = 100;

/** Parses a file. The value of an empty one is null. Never throws. */
export function parseYaml(source: string): YamlFile {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, customTags: [], uniqueKeys: true });
  const syntax = [...document.errors, ...document.warnings].map((error) => ({
    path: "",
    value: undefined,
    rule: error.message.split("\n")[0]?.replace(/ at line \d+, column \d+:?$/, "") ?? error.code,
    ...placeAt(lines, error.pos[0]),
  }));
  if (syntax.length > 0) return { value: undefined, faults: syntax };
  try {
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
    const placeAll = <T extends { readonly path: string }>(found: readonly T[]) =>
      found
        .map((one) => ({ ...one, ...placeOf(one.path, document, lines) }))
        .sort((a, b) => a.line - b.line || a.column - b.column);
    return { value, faults: undefined, place: placeAll };
  } catch (error) {
    const rule = error instanceof Error ? error.message : String(error);
    return { value: undefined, faults: [{ path: "", value: undefined, rule, line: 1, column: 1 }] };
  }
}

function placeAt(lines: LineCounter, offset: number): Place {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

/** The place of a path: its key where there is one, else the nearest node that holds it. */
function placeOf(path: string, document: Document, lines: LineCounter): Place {
  const keys = path === "" ? [] : path.split(".");
  for (let depth = keys.length; depth >= 0; depth--) {
    const offset = offsetOf(document, keys.slice(0, depth));
    if (offset !== undefined) return placeAt(lines, offset);
  }
  return { line: 1, column: 1 };
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
