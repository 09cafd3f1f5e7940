// One target's readings: what to ask for, what the page said, and what is remembered from one page
// to the next (engine, whether KV usage was ever reported, whether the short page works).

import { describeValue } from "../errors";
import type { Sample } from "../sample";
import { type EngineName, metricNames } from "./engines";
import {
  type ExpositionReading,
  type Finding,
  type PageSample,
  readExposition,
} from "./exposition";
import type { Target } from "./targets";
import type { Transport } from "./transport";

/** One reading: a sample, or an error. */
export interface TargetReading {
  readonly sample: Sample | undefined;
  readonly findings: readonly Finding[];
  readonly error: string | undefined;
}

/** Reads one target. Never throws. */
export class TargetReader {
  readonly #target: Target;
  readonly #transport: Promise<Transport>;
  readonly #maxBytes: number;
  #engine: EngineName | undefined;
  #sawKv = false;
  /** What the whole page said last; the short one must say as much. */
  #whole: PageSample | undefined;
  #isShortRefused = false;

  constructor(target: Target, transport: Promise<Transport>, maxBytes: number) {
    this.#target = target;
    this.#transport = transport;
    this.#maxBytes = maxBytes;
    this.#engine = target.engine;
  }

  /** The engine that was given, or recognised. */
  get engine(): EngineName | undefined {
    return this.#engine;
  }

  /** One reading, over after `timeoutMs` at the latest. */
  async read(timeoutMs: number): Promise<TargetReading> {
    try {
      return this.#toReading(await this.#readPage(timeoutMs));
    } catch (error) {
      return { sample: undefined, findings: [], error: describeFailure(error) };
    }
  }

  async #readPage(timeoutMs: number): Promise<ExpositionReading> {
    const query = this.#shortQuery();
    if (query !== undefined) {
      const short = await this.#tryShort(query, timeoutMs);
      if (short !== undefined) return short;
    }
    const page = await this.#get(this.#target.query, timeoutMs);
    let reading = readExposition(page, this.#engine);
    // Another engine may have taken the address.
    const isSilent = reading.findings.some(({ code }) => code === "no-samples");
    if (isSilent && this.#target.engine === undefined) reading = readExposition(page);
    this.#whole = reading.sample;
    this.#engine = reading.engine ?? this.#engine;
    return reading;
  }

  /**
   * Exporters of the Python client answer `?name[]=...` with a page of under 1 KB, others ignore it.
   * A short page that lacks something, or none at all, is not asked for again.
   */
  async #tryShort(query: string, timeoutMs: number): Promise<ExpositionReading | undefined> {
    // When this fails, the next reading asks for the whole page, and says why if that fails too.
    this.#isShortRefused = true;
    const reading = readExposition(await this.#get(query, timeoutMs), this.#engine);
    this.#isShortRefused = !saysAsMuch(reading.sample, this.#whole);
    return this.#isShortRefused ? undefined : reading;
  }

  #shortQuery(): string | undefined {
    const { engine } = this;
    if (engine === undefined || this.#whole === undefined || this.#isShortRefused) return undefined;
    const names = metricNames(engine).map((name) => `name[]=${encodeURIComponent(name)}`);
    return `${this.#target.query === "" ? "?" : `${this.#target.query}&`}${names.join("&")}`;
  }

  async #get(query: string, timeoutMs: number): Promise<Uint8Array> {
    const { origin, path, headers } = this.#target;
    const transport = await this.#transport;
    const maxBytes = this.#maxBytes;
    return transport.get({ origin, path: path + query, headers, timeoutMs, maxBytes });
  }

  /** KV usage that an engine has reported and stops reporting is no "has none": it is unusable. */
  #toReading({ sample, findings }: ExpositionReading): TargetReading {
    const hasKv = sample.kvCacheUsagePercent !== null;
    if (hasKv) this.#sawKv = true;
    const kvCacheUsagePercent = hasKv || !this.#sawKv ? sample.kvCacheUsagePercent : undefined;
    return { sample: { ...sample, kvCacheUsagePercent }, findings, error: undefined };
  }
}

function saysAsMuch(short: PageSample, whole: PageSample | undefined): boolean {
  if (whole === undefined) return false;
  const keys = Object.keys(whole) as (keyof PageSample)[];
  return keys.every((key) => whole[key] === null || short[key] !== null);
}

/** An error for people: the deepest cause that says something. */
function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return describeValue(error);
  const { cause } = error;
  const code = "code" in error && typeof error.code === "string" ? ` (${error.code})` : "";
  if (cause instanceof Error && error.message === "fetch failed") return describeFailure(cause);
  return `${error.message === "" ? error.name : error.message}${code}`;
}
