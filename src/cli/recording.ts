// Recordings: every sample as it was read, one JSON value per line, so that settings can be judged
// again on an operator's own telemetry.

import { createReadStream, createWriteStream, type WriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { TelemetryError } from "../errors";
import type { Sample } from "../sample";
import type { ReadingEvent } from "../telemetry/scraper";

/** One reading of a recording. Times are ms on one monotonic clock. */
export interface RecordedReading {
  readonly id: string;
  readonly startedAt: number;
  readonly reportedAt: number;
  /** As it was reported, unchecked: the pool judges it, as it does with any. */
  readonly sample: Partial<Sample>;
}

/** First line of a recording. */
interface Header {
  readonly plimsoll: 1;
  readonly kind: "recording";
  readonly endpoints: readonly string[];
  /** S while it was made, in ms; a replay judges by it unless told otherwise. */
  readonly metricsStalenessThreshold?: number | undefined;
}

/** A reading that gave no sample. */
export interface FailedReading {
  readonly failedAt: number;
}

/** Something in a recording that is no reading: where, and what. */
export interface BadLine {
  readonly line: number;
  readonly fault: string;
}

/** Writes a recording. */
export class Recorder {
  readonly #file: WriteStream;
  #failure: Error | undefined;

  constructor(path: string, endpoints: readonly string[], metricsStalenessThreshold: number) {
    this.#file = createWriteStream(path);
    this.#file.on("error", (error) => {
      this.#failure = error;
    });
    const header = {
      plimsoll: 1,
      kind: "recording",
      endpoints,
      metricsStalenessThreshold,
    } as const;
    this.#write(header satisfies Header);
  }

  /** Why the file cannot be written; undefined while all is well. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Adds a reading that ended at `reportedAt`; failed ones are kept with their error. */
  add(event: ReadingEvent, reportedAt: number): void {
    const { id, engine, startedAt, sample, error } = event;
    this.#write({ id, engine, startedAt, reportedAt, sample, error });
  }

  /** Everything written is on its way to the disk. */
  close(): Promise<void> {
    return new Promise((resolve) => this.#file.end(() => resolve()));
  }

  #write(value: unknown): void {
    // JSON has no NaN, and would make "no reading" of it.
    const text = JSON.stringify(value, (_, v) => (Number.isNaN(v) ? "NaN" : v));
    this.#file.write(`${text}\n`);
  }
}

/**
 * Reads a recording line by line, in constant memory.
 *
 * @param onBad is told of lines that are no readings; the others count all the same.
 * @throws TelemetryError when the file is no recording.
 */
export async function* readRecording(
  path: string,
  onBad: (bad: BadLine) => void,
): AsyncGenerator<Header | RecordedReading | FailedReading> {
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity });
  let line = 0;
  for await (const text of lines) {
    line++;
    if (text.trim() === "") continue;
    const value = parseLine(text);
    if (line === 1) {
      if (!isHeader(value)) {
        throw new TelemetryError(
          `${path}:1: not a recording; one begins with {"plimsoll":1,"kind":"recording",...} ` +
            "and is made by: plimsoll watch --record FILE",
        );
      }
      yield value;
      continue;
    }
    const reading = toReading(value);
    if (typeof reading === "string") onBad({ line, fault: reading });
    else yield reading;
  }
  if (line === 0) throw new TelemetryError(`${path}: the file is empty`);
}

function parseLine(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // told apart from JSON's null by the caller
  }
}

function isHeader(value: unknown): value is Header {
  if (typeof value !== "object" || value === null) return false;
  const { plimsoll, kind, endpoints } = value as Partial<Record<keyof Header, unknown>>;
  return plimsoll === 1 && kind === "recording" && isTexts(endpoints);
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string" && item !== "");
}

/** A reading, one that failed when it was made, or what is wrong with the line. */
function toReading(value: unknown): RecordedReading | FailedReading | string {
  if (value === undefined) return "not JSON (cut short?)";
  if (typeof value !== "object" || value === null) return "not an object";
  const { id, startedAt, reportedAt, sample, error } = value as Record<string, unknown>;
  if (typeof id !== "string" || id === "") return "id must be a text";
  if (!Number.isFinite(startedAt) || !Number.isFinite(reportedAt)) {
    return "startedAt and reportedAt must be numbers of ms";
  }
  if (sample === undefined && typeof error === "string") return { failedAt: Number(reportedAt) };
  if (typeof sample !== "object" || sample === null) return "sample must be an object";
  return { id, startedAt: Number(startedAt), reportedAt: Number(reportedAt), sample };
}
