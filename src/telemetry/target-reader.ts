// One target's readings: what to ask for, what the page said, and what is remembered from one page
// to the next (engine, whether KV usage was ever reported, whether the short page works).

import { describeValue } from "../errors";
import type { Sample } from "../sample";
import { ENGINES, type EngineName, engineSpec, metricNames } from "./engines";
import {
  type ExpositionReading,
  type Finding,
  type PageSample,
  readExposition,
} from "./exposition";
import type { Target } from "./targets";
import { AnswerError, type OpenSource, type PageSource } from "./transport";

/** Something odd about a page, or about how one page follows another. */
export type TargetFinding =
  | Finding
  | { readonly code: "wrong-path" | "kv-gone"; readonly message: string };

/** One reading: a sample, or an error. */
export interface TargetReading {
  readonly sample: Sample | undefined;
  readonly findings: readonly TargetFinding[];
  readonly error: string | undefined;
}

/** When so many short pages have failed in a row where the whole one works, none is asked for again. */
const SHORT_MISSES = 3;

/** Reads one target. */
export class TargetReader {
  readonly #target: Target;
  readonly #source: Promise<PageSource>;
  readonly #maxBytes: number;
  #engine: EngineName | undefined;
  #sawKv = false;
  /** What the whole page said last; the short one must say as much. */
  #whole: PageSample | undefined;
  #shortMisses = 0;
  #isShortFailing = false;

  constructor(target: Target, transport: Promise<OpenSource>, maxBytes: number) {
    this.#target = target;
    this.#source = transport.then((open) => open(target.origin));
    this.#maxBytes = maxBytes;
    this.#engine = target.engine;
  }

  /** The engine that was given, or recognised. */
  get engine(): EngineName | undefined {
    return this.#engine;
  }

  /** One reading, over after `timeoutMs` at the latest. Never rejects. */
  async read(timeoutMs: number): Promise<TargetReading> {
    try {
      return this.#toReading(await this.#readPage(performance.now() + timeoutMs));
    } catch (error) {
      return this.#toFailure(error);
    }
  }

  /** Ends the reading that is under way, and the connection. */
  async close(): Promise<void> {
    await (await this.#source).close();
  }

  async #readPage(endsAt: number): Promise<ExpositionReading> {
    const query = this.#shortQuery();
    const short = query === undefined ? undefined : await this.#readShort(query, endsAt);
    if (short !== undefined && saysAsMuch(short.sample, this.#whole)) {
      this.#shortMisses = 0;
      return short;
    }
    const before = this.#engine;
    const whole = await this.#readWhole(endsAt);
    // The question was for the engine before; the new one has not been asked yet.
    if (this.#engine !== before) this.#shortMisses = 0;
    else if (this.#isShortFailing) this.#shortMisses++;
    else if (short !== undefined && !saysAsMuch(short.sample, whole.sample)) {
      this.#shortMisses = SHORT_MISSES;
    }
    this.#isShortFailing = false;
    return whole;
  }

  async #readWhole(endsAt: number): Promise<ExpositionReading> {
    const page = await this.#get(this.#target.query, endsAt);
    let reading = readExposition(page, this.#engine);
    // Another engine may have taken the address.
    const isSilent = reading.findings.some(({ code }) => code === "no-samples");
    if (isSilent && this.#target.engine === undefined) {
      const anew = readExposition(page);
      if (anew.engine !== undefined) reading = anew;
    }
    this.#whole = reading.sample;
    if (reading.engine !== undefined && reading.engine !== this.#engine) {
      this.#engine = reading.engine;
      this.#sawKv = false;
    }
    return reading;
  }

  /**
   * Exporters of the Python client answer `?name[]=...` with a page of under 1 KB, others ignore it.
   * Undefined when the server refused the question; then the whole page tells whether that is all.
   */
  async #readShort(query: string, endsAt: number): Promise<ExpositionReading | undefined> {
    // The network may fail just now, or this question may be too much: the next reading will tell.
    this.#isShortFailing = true;
    try {
      const page = await this.#get(query, endsAt);
      this.#isShortFailing = false;
      return readExposition(page, this.#engine);
    } catch (error) {
      if (error instanceof AnswerError) return undefined;
      throw error;
    }
  }

  #shortQuery(): string | undefined {
    const { engine } = this;
    // NaN is no reading either, but it is on the page, and that is what matters here.
    if (engine === undefined || (this.#whole?.waitingQueueSize ?? null) === null) return undefined;
    if (this.#isShortFailing || this.#shortMisses >= SHORT_MISSES) return undefined;
    const names = metricNames(engine).map((name) => `name[]=${encodeURIComponent(name)}`);
    return `${this.#target.query === "" ? "?" : `${this.#target.query}&`}${names.join("&")}`;
  }

  async #get(query: string, endsAt: number): Promise<Uint8Array> {
    const { path, headers } = this.#target;
    const source = await this.#source;
    const timeoutMs = Math.max(1, endsAt - performance.now());
    return source.get({ path: path + query, headers, timeoutMs, maxBytes: this.#maxBytes });
  }

  /** KV usage that an engine has reported and stops reporting is no "has none": it is unusable. */
  #toReading({ sample, findings }: ExpositionReading): TargetReading {
    if (sample.kvCacheUsagePercent !== null) this.#sawKv = true;
    else if (this.#sawKv && sample.waitingQueueSize !== null) {
      const message = "KV usage was reported before and is not any more";
      return {
        sample: { ...sample, kvCacheUsagePercent: undefined },
        findings: [...findings, { code: "kv-gone", message }],
        error: undefined,
      };
    }
    return { sample, findings, error: undefined };
  }

  #toFailure(error: unknown): TargetReading {
    const reason = describeFailure(error);
    if (!(error instanceof AnswerError) || error.status !== 404) {
      return { sample: undefined, findings: [], error: reason };
    }
    const message = describeRightPath(this.#target.path, this.#engine);
    const findings: TargetFinding[] = [{ code: "wrong-path", message }];
    return { sample: undefined, findings, error: `${reason}: ${message}` };
  }
}

function saysAsMuch(short: PageSample, whole: PageSample | undefined): boolean {
  if (whole === undefined || short.engines < whole.engines) return false;
  const keys = Object.keys(whole) as (keyof PageSample)[]; // PageSample is written out in full
  return keys.every((key) => whole[key] === null || short[key] !== null);
}

/** What to say where no page is. */
function describeRightPath(path: string, engine: EngineName | undefined): string {
  const spec = engine === undefined ? undefined : engineSpec(engine);
  if (spec === undefined) {
    const others = ENGINES.filter(({ metricsPath }) => metricsPath !== "/metrics")
      .map(({ metricsPath, label }) => `${metricsPath} for ${label}`)
      .join(", ");
    return `no page at ${path}; metrics are not enabled, or they are elsewhere (/metrics for most engines, ${others})`;
  }
  const needs = spec.needs === "" ? "" : `, with ${spec.needs}`;
  return `no page at ${path}; ${spec.label} prints its metrics at ${spec.metricsPath}${needs}`;
}

/** An error for people: the deepest cause that says something. */
function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return describeValue(error);
  const { cause } = error;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (cause instanceof Error && error.message === "fetch failed") return describeFailure(cause);
  const message = error.message === "" ? error.name : error.message;
  const isTold = code === "" || code.startsWith("PLIMSOLL_") || message.includes(code);
  return isTold ? message : `${message} (${code})`;
}
