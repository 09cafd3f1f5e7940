// Reading recorded request traces: the Azure LLM inference traces (CSV), BurstGPT (CSV) and Mooncake
// (JSONL). Which one it is shows in the first line. A bad line is named with file, line and fault.

import { describeValue, TraceError } from "../errors";

/** The formats that are read. */
export type TraceFormat = "azure" | "burstgpt" | "mooncake";

/** One request of a trace. */
export interface TraceRequest {
  /** When it came, in ms since the first one. */
  readonly timeMs: number;
  /** Integers > 0. */
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Hashes of the chunks of its prompt, each standing for all before it too. */
  readonly hashIds?: readonly number[] | undefined;
  /** Tokens of one such chunk. */
  readonly chunkTokens?: number | undefined;
}

/** A trace that was read. */
export interface Trace {
  readonly format: TraceFormat;
  /** In order of time. */
  readonly requests: readonly TraceRequest[];
  /** Bad lines that were left out. */
  readonly skipped: number;
  /** Lines that stood before an earlier one; they were put in order. */
  readonly outOfOrder: number;
}

/** How a trace is read. */
export interface TraceOptions {
  /** The name of the file, for errors. Default "trace". */
  readonly name?: string | undefined;
  /** Leave bad lines out and count them. Default false: the first one is an error. */
  readonly skipBad?: boolean | undefined;
}

/** Tokens of one hashed chunk in Mooncake's traces. */
const MOONCAKE_CHUNK = 512;
const AZURE_TIME = /^(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:?\d\d)?$/;

/** What a line says; a text is its fault. */
type Line = Omit<TraceRequest, "timeMs"> & { readonly time: Time };
/** Whole ms, and the rest of a ms, so that an epoch time loses no digits. */
interface Time {
  readonly ms: number;
  readonly rest: number;
}
type LineReader = (line: string) => Line | string;

/**
 * Reads a trace.
 *
 * @param text the whole file.
 * @throws TraceError naming file, line and fault.
 */
export function readTrace(text: string, options: TraceOptions = {}): Trace {
  const { name = "trace", skipBad = false } = options;
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  const first = lines.findIndex((line) => line.trim() !== "");
  if (first < 0) throw new TraceError(name, 1, "the file is empty");
  const { format, read, from } = recognise(name, lines[first] as string, first); // it was found
  const rows: Line[] = [];
  let skipped = 0;
  for (let i = from; i < lines.length; i++) {
    const line = (lines[i] as string).trim(); // i is below the length
    if (line === "") continue;
    const row = read(line);
    if (typeof row !== "string") rows.push(row);
    else if (skipBad) skipped++;
    else throw new TraceError(name, i + 1, row);
  }
  if (rows.length === 0) {
    const why = skipped > 0 ? `all ${skipped} lines are bad` : "there is no request in it";
    throw new TraceError(name, first + 1, why);
  }
  let outOfOrder = 0;
  for (let i = 1; i < rows.length; i++) {
    if (compare((rows[i] as Line).time, (rows[i - 1] as Line).time) < 0) outOfOrder++;
  }
  if (outOfOrder > 0) rows.sort((a, b) => compare(a.time, b.time));
  const start = (rows[0] as Line).time; // there is one
  const requests = rows.map(({ time, ...row }) => ({
    timeMs: time.ms - start.ms + (time.rest - start.rest),
    ...row,
  }));
  return { format, requests, skipped, outOfOrder };
}

function compare(a: Time, b: Time): number {
  return a.ms - b.ms || a.rest - b.rest;
}

function recognise(
  name: string,
  line: string,
  first: number,
): { format: TraceFormat; read: LineReader; from: number } {
  if (line.trim().startsWith("{")) return { format: "mooncake", read: readMooncake, from: first };
  const columns = cells(line);
  const lower = columns.map((column) => column.toLowerCase());
  const find = (...names: string[]) => names.map((one) => lower.indexOf(one));
  const [time = -1, prompt = -1, output = -1] = find(
    "timestamp",
    "contexttokens",
    "generatedtokens",
  );
  const [, asked = -1, answered = -1] = find("timestamp", "request tokens", "response tokens");
  const n = columns.length;
  if (time >= 0 && prompt >= 0 && output >= 0) {
    const read = csvReader(n, [time, prompt, output], readAzureTime);
    return { format: "azure", read, from: first + 1 };
  }
  if (time >= 0 && asked >= 0 && answered >= 0) {
    const read = csvReader(n, [time, asked, answered], readSeconds);
    return { format: "burstgpt", read, from: first + 1 };
  }
  throw new TraceError(
    name,
    first + 1,
    "its first line must be a header with TIMESTAMP, ContextTokens, GeneratedTokens (Azure) or " +
      "Timestamp, Request tokens, Response tokens (BurstGPT), or a JSON object (Mooncake), got " +
      describeValue(line),
  );
}

function csvReader(
  columns: number,
  [time, prompt, output]: readonly [number, number, number],
  readTime: (text: string) => Time | string,
): LineReader {
  return (line) => {
    const values = cells(line);
    if (values.length !== columns) {
      return `must have ${columns} columns as the header has, got ${values.length}`;
    }
    const at = readTime(values[time] ?? "");
    if (typeof at === "string") return at;
    const promptTokens = readTokens("prompt", Number(values[prompt] || Number.NaN));
    if (typeof promptTokens === "string") return promptTokens;
    const outputTokens = readTokens("answer", Number(values[output] || Number.NaN));
    if (typeof outputTokens === "string") return outputTokens;
    return { time: at, promptTokens, outputTokens };
  };
}

function cells(line: string): string[] {
  return line.split(",").map((cell) => cell.trim().replace(/^"(.*)"$/, "$1"));
}

function readTokens(what: string, value: unknown): number | string {
  if (typeof value === "number" && Number.isInteger(value) && value > 0) return value;
  return `tokens of the ${what} must be an integer > 0, got ${describeValue(value)}`;
}

function readAzureTime(text: string): Time | string {
  const match = AZURE_TIME.exec(text);
  const fault = `the time must be as in 2023-11-16 18:17:03.9799600, got ${describeValue(text)}`;
  if (match === null) return fault;
  const [, year, month, day, hour, minute, second, fraction = "", zone = "Z"] = match;
  const iso = zone === "Z" ? zone : zone.replace(/^([+-]\d\d):?(\d\d)$/, "$1:$2");
  const ms = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}${iso}`);
  return Number.isNaN(ms) ? fault : { ms, rest: Number(`0${fraction}`) * 1000 };
}

function readSeconds(text: string): Time | string {
  const seconds = text === "" ? Number.NaN : Number(text);
  if (Number.isFinite(seconds) && seconds >= 0) return { ms: seconds * 1000, rest: 0 };
  return `the time must be seconds >= 0, got ${describeValue(text)}`;
}

function readMooncake(line: string): Line | string {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return `must be a JSON object, got ${describeValue(line)}`;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return `must be a JSON object, got ${describeValue(value)}`;
  }
  const { timestamp, input_length, output_length, hash_ids } = value as Record<string, unknown>;
  if (typeof timestamp !== "number" || !(timestamp >= 0 && timestamp < Number.POSITIVE_INFINITY)) {
    return `timestamp must be ms >= 0, got ${describeValue(timestamp)}`;
  }
  const promptTokens = readTokens("prompt (input_length)", input_length);
  if (typeof promptTokens === "string") return promptTokens;
  const outputTokens = readTokens("answer (output_length)", output_length);
  if (typeof outputTokens === "string") return outputTokens;
  const time = { ms: timestamp, rest: 0 };
  if (hash_ids === undefined) return { time, promptTokens, outputTokens };
  if (!Array.isArray(hash_ids) || !hash_ids.every((id) => Number.isSafeInteger(id) && id >= 0)) {
    return `hash_ids must be a list of integers >= 0, got ${describeValue(hash_ids)}`;
  }
  return { time, promptTokens, outputTokens, hashIds: hash_ids, chunkTokens: MOONCAKE_CHUNK };
}
