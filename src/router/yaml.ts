// YAML as this package takes it, everywhere: no tags that make anything but data, no key twice, no bombs.

import { type Document, LineCounter, parseDocument, type YAMLError } from "yaml";

/** More aliases than this are a bomb, not a config. */
const MAX_ALIASES = 100;

/** A text that was read: its value, or what is wrong with it as a whole. */
export interface YamlReading {
  readonly value: unknown;
  readonly fault: string | undefined;
  readonly errors: readonly YAMLError[];
  readonly document: Document;
  readonly lines: LineCounter;
}

/** Reads YAML or JSON. Never throws. */
export function parseYaml(source: string): YamlReading {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, customTags: [], uniqueKeys: true });
  const errors = [...document.errors, ...document.warnings];
  const common = { errors, document, lines };
  const [first] = errors;
  if (first !== undefined) {
    return { ...common, value: undefined, fault: first.message.split("\n")[0] ?? first.code };
  }
  try {
    return { ...common, value: document.toJS({ maxAliasCount: MAX_ALIASES }), fault: undefined };
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    return { ...common, value: undefined, fault };
  }
}
