// Where in a file the EPP's config stands. It is seldom alone: it is a text in a ConfigMap or in the values of a
// chart, or a part of a larger resource. What is found keeps its lines and columns, so that findings name those
// of the file.

import { LineCounter, type Node, parseAllDocuments, type Scalar, visit } from "yaml";

/** What the root of such a config says of itself. */
export const EPP_KIND = "EndpointPickerConfig";

/** The config's text, with as many lines before it as it has in the file. */
export interface EppText {
  readonly text: string;
  /** What its lines are counted in: the file, or a text inside of it that has line breaks as `\n`. */
  readonly name: string;
}

const IN_TEXT = new RegExp(`^\\s*["']?kind["']?\\s*:\\s*["']?${EPP_KIND}\\b`, "m");
const IN_JSON = new RegExp(`"kind"\\s*:\\s*"${EPP_KIND}"`);

/**
 * Finds every EndpointPickerConfig of a file. Where there is none, the file as it is stands for one, so that
 * whoever reads it says what is wrong.
 */
export function findEppTexts(source: string, file: string): EppText[] {
  const lines = new LineCounter();
  const found: EppText[] = [];
  for (const document of parseAllDocuments(source, { lineCounter: lines, customTags: [] })) {
    visit(document, {
      Map(_, node) {
        if (node.get("kind") !== EPP_KIND) return undefined;
        found.push({ text: cutOut(source, node, lines), name: file });
        return visit.SKIP;
      },
      Scalar(key, node) {
        if (key === "key" || typeof node.value !== "string") return;
        if (!IN_TEXT.test(node.value) && !IN_JSON.test(node.value)) return;
        found.push(unwrap(source, node, node.value, lines, file));
      },
    });
  }
  return found.length > 0 ? found : [{ text: source, name: file }];
}

/** A part of the file, where it stood. */
function cutOut(source: string, node: Node, lines: LineCounter): string {
  const [start, end] = node.range ?? [0, source.length];
  const { line, col } = lines.linePos(start);
  return `${"\n".repeat(line - 1)}${" ".repeat(col - 1)}${source.slice(start, end)}`;
}

/** A text in the file. A block keeps its place; any other has line breaks that the file has not. */
function unwrap(
  source: string,
  node: Scalar,
  value: string,
  lines: LineCounter,
  file: string,
): EppText {
  const { line } = lines.linePos(node.range?.[0] ?? 0);
  if (node.type !== "BLOCK_LITERAL")
    return { text: value, name: `${file}, the text at line ${line}` };
  const below = source.split("\n").slice(line);
  const indent = /^ */.exec(below.find((one) => one.trim() !== "") ?? "")?.[0] ?? "";
  const own = /^ */.exec(value.split("\n").find((one) => one.trim() !== "") ?? "")?.[0] ?? "";
  const margin = indent.slice(own.length);
  const text = value.replace(/^(?=.)/gm, margin);
  return { text: `${"\n".repeat(line)}${text}`, name: file };
}

/** Whether a value has keys. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
