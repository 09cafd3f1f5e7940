// plimsoll check --from-epp: prints what an EPP's config is here. The config goes to the standard output, so that
// it can be kept; what does not map goes to the standard error.

import { readFile } from "node:fs/promises";
import { stringify } from "yaml";
import { printFaults } from "../../yaml-file";
import { readInput } from "../input";
import { clean } from "../text";
import { findEppTexts } from "./document";
import { type PlacedNote, translateEpp } from "./translate";

/** Translates a file, or `-` for the standard input. Resolves to the exit code. */
export async function checkEpp(file: string, isJson: boolean): Promise<number> {
  const source = file === "-" ? (await readInput()).toString("utf8") : await readFile(file, "utf8");
  const texts = findEppTexts(source, file);
  const [first, second] = texts;
  if (first === undefined || second !== undefined) {
    process.stderr.write(`${file}: holds ${texts.length} EPP configs: give them one by one\n`);
    return 1;
  }
  const { config, faults, notes } = translateEpp(first.text);
  if (isJson) {
    const found = config === undefined ? { faults, notes } : { faults, notes, config };
    process.stdout.write(`${JSON.stringify({ file: first.name, ...found })}\n`);
    return config === undefined ? 1 : 0;
  }
  if (config === undefined) {
    process.stdout.write(`${printFaults(first.name, faults)}\n`);
    return 1;
  }
  if (notes.length > 0) process.stderr.write(`${printNotes(first.name, notes)}\n`);
  process.stdout.write(
    `# From ${clean(first.name)}. Endpoints and the interval of readings are not in that file: add\n` +
      `# endpoints, or dns; and interval, where it is not 50ms.\n${stringify(config)}`,
  );
  return 0;
}

function printNotes(name: string, notes: readonly PlacedNote[]): string {
  return notes
    .map(({ path, line, column, text }) => clean(`${name}:${line}:${column}: ${path}: ${text}`))
    .join("\n");
}
