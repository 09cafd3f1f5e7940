// Finding the few metrics that matter in a page: one pass over the beginnings of its lines, and only
// the lines that matter are parsed. A line that is not well formed is skipped, and never costs the
// page.

import type { MetricRef } from "./engines";

/** One series of a metric. */
export interface Series {
  /** The labels that tell engines apart, as one text. */
  readonly engine: string;
  /** NaN and infinities as they stand on the page. */
  readonly value: number;
}

/** What a search found. */
export interface Found {
  readonly series: Series[];
  /** Lines with the metric's name that were not well formed. */
  badLines: number;
}

/** Labels that repeat one engine (processes and ranks of it), rather than tell engines apart. */
const REPLICA_LABELS = new Set(["pid", "tp_rank", "pp_rank", "moe_ep_rank"]);
const VALUE = /^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf(?:inity)?)$/i;
const TIMESTAMP = /^[+-]?[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?$/i;
const NEWLINE = 10;
const CR = 13;
const TAB = 9;
const SPACE = 32;
const QUOTE = 34;
const HASH = 35;
const COMMA = 44;
const EQUALS = 61;
const BACKSLASH = 92;
const BRACE_OPEN = 123;
const BRACE_CLOSE = 125;
const BOM = 0xfeff;

/** Where the lines of each metric are on a page. */
export class PageIndex {
  readonly #page: string;
  /** Per metric name: where its labels or value begin, line by line. */
  readonly #places = new Map<string, number[]>();

  /**
   * @param prefixes what may stand before a name.
   * @param names the metrics to look for; others are passed over.
   */
  constructor(page: string, prefixes: readonly string[], names: NameSet) {
    this.#page = page;
    const { length } = page;
    const mayStand = lineStarts(prefixes, names);
    for (let start = 0; start < length; ) {
      let from = start;
      let first = page.charCodeAt(from);
      if (first === BOM && start === 0) first = page.charCodeAt(++from);
      while (first === SPACE || first === TAB) first = page.charCodeAt(++from);
      // Most lines of most pages are dismissed here, by one character or two.
      const skip = first < 128 ? (mayStand[first] as number) : 0;
      if (skip === ANY || (skip > 0 && names.mayBegin(page.charCodeAt(from + skip)))) {
        this.#indexLine(from, prefixes, names);
      }
      const newline = page.indexOf("\n", from);
      start = newline < 0 ? length : newline + 1;
    }
  }

  #indexLine(start: number, prefixes: readonly string[], names: NameSet): void {
    const page = this.#page;
    for (const prefix of prefixes) {
      const at = start + prefix.length;
      if (!names.mayBegin(page.charCodeAt(at)) || !page.startsWith(prefix, start)) continue;
      const name = names.at(page, at);
      if (name === undefined) continue;
      const places = this.#places.get(name);
      if (places === undefined) this.#places.set(name, [at + name.length]);
      else places.push(at + name.length);
      return;
    }
  }

  /** All series of a metric. */
  findSeries(ref: MetricRef): Found {
    const found: Found = { series: [], badLines: 0 };
    for (const at of this.#places.get(ref.name) ?? []) readSeries(this.#page, at, ref, found);
    return found;
  }

  /**
   * The numbers that the labels of an info metric carry, multiplied: the largest where several
   * series repeat an engine, summed over engines. `undefined` when no series has all the labels.
   *
   * An info metric is nothing but its labels, so those that can be read count even where others
   * of the same line cannot.
   */
  findInfo(name: string, labels: readonly string[]): number | undefined {
    const engines = new Map<string, number>();
    for (const at of this.#places.get(name) ?? []) {
      if (this.#page.charCodeAt(at) !== BRACE_OPEN) continue;
      const line = this.#page.slice(at + 1, lineEnd(this.#page, at));
      const product = labels.reduce((sum, label) => sum * infoNumber(line, label), 1);
      if (!(product > 0 && product < Number.POSITIVE_INFINITY)) continue;
      const engine = infoLabel(line, "engine") ?? infoLabel(line, "dp_rank") ?? "";
      engines.set(engine, Math.max(product, engines.get(engine) ?? 0));
    }
    if (engines.size === 0) return undefined;
    return [...engines.values()].reduce((a, b) => a + b, 0);
  }
}

/** A line that begins like this has to be looked at. */
const ANY = 255;

/**
 * By the first character of a line: 0 when no metric begins with it, else where behind it the name
 * begins, or ANY when prefixes of several lengths do.
 */
function lineStarts(prefixes: readonly string[], names: NameSet): Uint8Array {
  const starts = new Uint8Array(128);
  for (const prefix of prefixes) {
    for (let code = 0; code < 128; code++) {
      const isFirst = prefix === "" ? names.mayBegin(code) : prefix.charCodeAt(0) === code;
      if (!isFirst) continue;
      const before = starts[code];
      starts[code] =
        prefix !== "" && (before === 0 || before === prefix.length) ? prefix.length : ANY;
    }
  }
  return starts;
}

/** Metric names to look for. Their first letters dismiss most lines with one comparison. */
export class NameSet {
  readonly #names: readonly string[];
  readonly #first = new Uint8Array(128);

  constructor(names: readonly string[]) {
    this.#names = names;
    for (const name of names) this.#first[name.charCodeAt(0)] = 1;
  }

  /** Whether a name may begin with this character. */
  mayBegin(code: number): boolean {
    return this.#first[code] === 1;
  }

  /** The name that stands at `at`, whole; undefined when none does. */
  at(page: string, at: number): string | undefined {
    for (const name of this.#names) {
      if (page.startsWith(name, at) && endsName(page.charCodeAt(at + name.length))) return name;
    }
    return undefined;
  }
}

function endsName(code: number): boolean {
  return code === BRACE_OPEN || code === SPACE || code === TAB;
}

/** Where the line ends, a carriage return before the newline left out. */
function lineEnd(page: string, from: number): number {
  const newline = page.indexOf("\n", from);
  const end = newline < 0 ? page.length : newline;
  return page.charCodeAt(end - 1) === CR ? end - 1 : end;
}

/** Reads what follows a metric's name: labels, value, and what may stand behind it. */
function readSeries(page: string, nameEnd: number, ref: MetricRef, found: Found): void {
  let at = skipBlanks(page, nameEnd);
  let engine = "";
  if (page.charCodeAt(at) === BRACE_OPEN) {
    const labels = readLabels(page, at + 1, ref.label);
    if (labels === undefined) {
      found.badLines++;
      return;
    }
    if (!labels.isSelected) return;
    at = skipBlanks(page, labels.end);
    engine = labels.engine;
  } else if (ref.label !== undefined) {
    return;
  }
  const end = lineEnd(page, at);
  const valueEnd = tokenEnd(page, at, end);
  const text = page.slice(at, valueEnd);
  if (!VALUE.test(text) || !isTail(page, valueEnd, end)) {
    found.badLines++;
    return;
  }
  found.series.push({ engine, value: toNumber(text) });
}

interface Labels {
  readonly end: number;
  readonly engine: string;
  readonly isSelected: boolean;
}

/** A well-formed label set that begins at `at`, behind its brace; undefined when it is not one. */
function readLabels(page: string, at: number, wanted: MetricRef["label"]): Labels | undefined {
  const engines: string[] = [];
  let isSelected = wanted === undefined;
  let i = skipBlanks(page, at);
  while (page.charCodeAt(i) !== BRACE_CLOSE) {
    const nameStart = i;
    while (isNameCode(page.charCodeAt(i))) i++;
    const name = page.slice(nameStart, i);
    i = skipBlanks(page, i);
    if (name === "" || page.charCodeAt(i) !== EQUALS) return undefined;
    i = skipBlanks(page, i + 1);
    if (page.charCodeAt(i) !== QUOTE) return undefined;
    const valueEnd = quoteEnd(page, i + 1);
    if (valueEnd < 0) return undefined;
    const value = page.slice(i + 1, valueEnd);
    if (wanted !== undefined && name === wanted[0]) isSelected = value === wanted[1];
    else if (!REPLICA_LABELS.has(name)) engines.push(`${name}=${value}`);
    i = skipBlanks(page, valueEnd + 1);
    if (page.charCodeAt(i) === COMMA) i = skipBlanks(page, i + 1);
    else if (page.charCodeAt(i) !== BRACE_CLOSE) return undefined;
  }
  return { end: i + 1, engine: engines.sort().join(","), isSelected };
}

/** Where a quoted text ends; -1 when the line ends first. */
function quoteEnd(page: string, from: number): number {
  for (let i = from; i < page.length; i++) {
    const code = page.charCodeAt(i);
    if (code === QUOTE) return i;
    if (code === NEWLINE) return -1;
    if (code === BACKSLASH) i++;
  }
  return -1;
}

function isNameCode(code: number): boolean {
  const isLetter = (code >= 97 && code <= 122) || (code >= 65 && code <= 90);
  return isLetter || (code >= 48 && code <= 57) || code === 95;
}

function skipBlanks(page: string, from: number): number {
  let at = from;
  while (page.charCodeAt(at) === SPACE || page.charCodeAt(at) === TAB) at++;
  return at;
}

function tokenEnd(page: string, from: number, lineEndAt: number): number {
  let at = from;
  while (at < lineEndAt && page.charCodeAt(at) !== SPACE && page.charCodeAt(at) !== TAB) at++;
  return at;
}

/** Behind a value stands nothing, a timestamp, or an exemplar. */
function isTail(page: string, from: number, end: number): boolean {
  const at = skipBlanks(page, from);
  if (at >= end || page.charCodeAt(at) === HASH) return true;
  const tail = page.slice(at, end);
  const [timestamp = "", ...rest] = tail.split(/[ \t]+/);
  return TIMESTAMP.test(timestamp) && (!rest[0] || rest[0].startsWith("#"));
}

function toNumber(text: string): number {
  const lower = text.toLowerCase();
  if (lower.endsWith("nan")) return Number.NaN;
  if (lower.includes("inf")) {
    return lower.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }
  return Number(text);
}

/** The value of one label of an info metric's line; pairs that cannot be read are stepped over. */
function infoLabel(line: string, label: string): string | undefined {
  for (let i = 0; i < line.length && line.charCodeAt(i) !== BRACE_CLOSE; ) {
    i = skipBlanks(line, i);
    const nameStart = i;
    while (isNameCode(line.charCodeAt(i))) i++;
    const name = line.slice(nameStart, i);
    if (!line.startsWith('="', i)) {
      const comma = line.indexOf(",", i);
      if (comma < 0) return undefined;
      i = comma + 1;
      continue;
    }
    const end = quoteEnd(line, i + 2);
    if (end < 0) return undefined;
    if (name === label) return line.slice(i + 2, end);
    i = skipBlanks(line, end + 1);
    if (line.charCodeAt(i) === COMMA) i++;
  }
  return undefined;
}

function infoNumber(line: string, label: string): number {
  const text = infoLabel(line, label);
  return text !== undefined && /^[0-9]+(?:\.[0-9]*)?$/.test(text) ? Number(text) : Number.NaN;
}
