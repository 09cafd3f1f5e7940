// A metrics page becomes a reading. It scans for the three or four lines that matter and never
// throws on what a page contains: telemetry from the network is hostile.

import { TelemetryError } from "../errors";
import {
  bareNames,
  type CapacityRule,
  ENGINES,
  type EngineName,
  type EngineSpec,
  engineSpec,
  type MetricRef,
} from "./engines";
import { NameSet, PageIndex } from "./series";

/** Something about a page that its reader should know. */
export interface Finding {
  readonly code:
    | "not-an-exposition"
    | "json-quoted"
    | "no-engine"
    | "no-samples"
    | "bad-line"
    | "not-a-number"
    | "negative"
    | "percent";
  readonly message: string;
}

/** What a page says of the whole endpoint. `null`: the page does not say. NaN: it says nonsense. */
export interface PageSample {
  readonly waitingQueueSize: number | null;
  readonly runningRequests: number | null;
  /** Share of the KV cache in use, a fraction 0..1. */
  readonly kvCacheUsagePercent: number | null;
  readonly kvCapacityTokens: number | null;
  /** How many engines the page stands for, >= 1. */
  readonly engines: number;
  /** The longest queue of one of them. */
  readonly worstEngineQueueSize: number | null;
}

/** A page, read. */
export interface ExpositionReading {
  /** The engine that was given or recognised. */
  readonly engine: EngineName | undefined;
  readonly sample: PageSample;
  readonly findings: readonly Finding[];
}

/** KV usage above this is a percentage, not a fraction that was rounded up. */
const KV_UNIT_LIMIT = 1.001;
const NOTHING: PageSample = {
  waitingQueueSize: null,
  runningRequests: null,
  kvCacheUsagePercent: null,
  kvCapacityTokens: null,
  engines: 1,
  worstEngineQueueSize: null,
};

/**
 * Reads a metrics page.
 *
 * @param page the body, as bytes (UTF-8) or text.
 * @param engine whose page it is; recognised from the names on the page when not given.
 * @throws TelemetryError for an unknown engine name or a page that is neither bytes nor text.
 * @example
 * const { sample } = readExposition(await (await fetch(url)).text());
 * pool.report(url, sample);
 */
export function readExposition(page: Uint8Array | string, engine?: EngineName): ExpositionReading {
  const given = engine === undefined ? undefined : engineSpec(engine);
  return readText(toText(page), given, []);
}

function toText(page: Uint8Array | string): string {
  if (typeof page === "string") return page;
  if (page instanceof Uint8Array) return new TextDecoder().decode(page);
  throw new TelemetryError("a metrics page is a Uint8Array or a text");
}

function readText(
  text: string,
  given: EngineSpec | undefined,
  findings: Finding[],
): ExpositionReading {
  const other = readOtherFormat(text, given, findings);
  if (other !== undefined) return other;
  const spec = given ?? recognise(text);
  if (spec === undefined) {
    const message = "no metric of a known engine is on the page";
    findings.push({ code: "no-engine", message });
    return { engine: undefined, sample: NOTHING, findings };
  }
  return { engine: spec.name, sample: new PageReader(text, spec, findings).read(), findings };
}

/** JSON, HTML and the like: says what it is and where the right page would be. */
function readOtherFormat(
  text: string,
  given: EngineSpec | undefined,
  findings: Finding[],
): ExpositionReading | undefined {
  const start = text.search(/[^\s\ufeff]/);
  const first = start < 0 ? "" : text.charAt(start);
  if (first === '"') return readQuoted(text, given, findings);
  if (first !== "" && first !== "{" && first !== "[" && first !== "<") return undefined;
  // A JSON list is what trtllm-serve answers under /metrics, where vLLM has its exposition.
  const spec = given ?? (first === "[" ? engineSpec("trtllm-serve") : undefined);
  const kind = first === "" ? "empty" : first === "<" ? "HTML" : "JSON";
  findings.push({ code: "not-an-exposition", message: `the page is ${kind}: ${hint(spec)}` });
  return { engine: spec?.name, sample: NOTHING, findings };
}

function hint(spec: EngineSpec | undefined): string {
  if (spec === undefined) {
    const paths = ENGINES.filter((e) => e.metricsPath !== "/metrics");
    const others = paths.map((e) => `${e.metricsPath} for ${e.label}`).join(", ");
    return `wrong path, or metrics are not enabled (usually /metrics; ${others})`;
  }
  const needs = spec.needs === "" ? "" : `, with ${spec.needs}`;
  return `${spec.label} prints its metrics at ${spec.metricsPath}${needs}`;
}

/** Some gateways hand the page on as one JSON text. */
function readQuoted(
  text: string,
  given: EngineSpec | undefined,
  findings: Finding[],
): ExpositionReading | undefined {
  let inner: unknown;
  try {
    inner = JSON.parse(text);
  } catch {
    return undefined; // a page may begin with a quote and be read line by line all the same
  }
  if (typeof inner !== "string" || findings.length > 0) return undefined;
  findings.push({ code: "json-quoted", message: "the page is one JSON text; read what it holds" });
  return readText(inner, given, findings);
}

const LINE_NAME = /^[ \t\ufeff]*(?:#[ \t]*(?:HELP|TYPE|UNIT)[ \t]+)?([a-zA-Z_:][a-zA-Z0-9_:]*)/;
const HASH = 35;
/** Longer than any name that is looked for. */
const NAME_WINDOW = 80;
const PREFIXED = ENGINES.filter((spec) => spec.prefixes[0] !== "");

/**
 * The engine whose names are on the page: the first prefix of a sample that is somebody's, else of a
 * HELP or TYPE line, else Triton's own names, else the bare ones of NIM.
 */
function recognise(text: string): EngineSpec | undefined {
  let bare: EngineName | undefined;
  let named: EngineSpec | undefined;
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf("\n", start);
    const end = newline < 0 ? text.length : newline;
    const name = LINE_NAME.exec(text.slice(start, Math.min(end, start + NAME_WINDOW)))?.[1];
    if (name === undefined) {
      start = end + 1;
      continue;
    }
    const spec = PREFIXED.find(({ prefixes }) => prefixes.some((p) => name.startsWith(p)));
    const isSample = text.charCodeAt(start) !== HASH;
    start = end + 1;
    if (spec !== undefined && isSample) return spec;
    named ??= spec;
    if (spec !== undefined) continue;
    if (name.startsWith("nv_trt_llm_")) bare = "triton-tensorrt-llm";
    else if (name.startsWith("nv_inference_")) bare ??= "triton";
    else if (name === "num_requests_waiting" || name === "num_requests_running") bare ??= "nim";
  }
  return named ?? (bare === undefined ? undefined : engineSpec(bare));
}

const NAMES = new Map(ENGINES.map((spec) => [spec, new NameSet(bareNames(spec))]));

function namesOf(spec: EngineSpec): NameSet {
  return NAMES.get(spec) ?? new NameSet(bareNames(spec));
}

/** One page of a known engine. */
class PageReader {
  readonly #index: PageIndex;
  readonly #spec: EngineSpec;
  readonly #findings: Finding[];
  #engines = 1;

  constructor(text: string, spec: EngineSpec, findings: Finding[]) {
    this.#index = new PageIndex(text, spec.prefixes, namesOf(spec));
    this.#spec = spec;
    this.#findings = findings;
  }

  read(): PageSample {
    const { waiting, running, kv, capacity } = this.#spec;
    const queues = this.#first(waiting);
    const batches = this.#first(running);
    const usage = this.#usage(kv);
    const sample: PageSample = {
      waitingQueueSize: sumOf(queues),
      runningRequests: sumOf(batches),
      kvCacheUsagePercent: usage,
      kvCapacityTokens: this.#capacity(capacity),
      // Read last: the metrics above have counted them.
      engines: this.#engines,
      worstEngineQueueSize: maxOf(queues),
    };
    if (queues === undefined && batches === undefined && usage === null) {
      const message = `no value of ${this.#spec.label} is on the page; ${hint(this.#spec)}`;
      this.#findings.push({ code: "no-samples", message });
    }
    return sample;
  }

  /** The first of the metrics that is on the page: its value per engine. */
  #first(refs: readonly MetricRef[]): Map<string, number> | undefined {
    for (const ref of refs) {
      const engines = this.#values(ref);
      if (engines === undefined) continue;
      this.#engines = Math.max(this.#engines, engines.size);
      return engines;
    }
    return undefined;
  }

  /** A metric's value per engine; series that repeat an engine become one, the greatest. */
  #values(ref: MetricRef): Map<string, number> | undefined {
    const found = this.#index.findSeries(ref);
    if (found.badLines > 0) {
      const message = `${found.badLines} line(s) of ${ref.name} are not well formed; skipped`;
      this.#findings.push({ code: "bad-line", message });
    }
    if (found.series.length === 0) return undefined;
    const engines = new Map<string, number>();
    for (const { engine, value } of found.series) {
      const before = engines.get(engine);
      const isBetter = before === undefined || Number.isNaN(before) || value > before;
      if (isBetter) engines.set(engine, value);
    }
    for (const value of engines.values()) this.#checkNumber(ref, value);
    return engines;
  }

  #checkNumber(ref: MetricRef, value: number): void {
    if (!Number.isFinite(value)) {
      this.#findings.push({ code: "not-a-number", message: `${ref.name} is ${value}` });
    } else if (value < 0) {
      this.#findings.push({ code: "negative", message: `${ref.name} is ${value}, below 0` });
    }
  }

  #usage(refs: readonly MetricRef[]): number | null {
    const usage = maxOf(this.#first(refs)) ?? this.#ratio();
    if (usage === null || !(usage > KV_UNIT_LIMIT)) return usage;
    const message = `KV usage is ${usage}, above 1: percent? It must be a fraction 0..1`;
    this.#findings.push({ code: "percent", message });
    return Number.NaN;
  }

  #ratio(): number | null {
    if (this.#spec.kvRatio === undefined) return null;
    const [used, size] = this.#spec.kvRatio.map((ref) => sumOf(this.#first([ref])));
    if (used == null || size == null) return null;
    return size > 0 ? used / size : Number.NaN;
  }

  #capacity(rule: CapacityRule | undefined): number | null {
    if (rule === undefined) return null;
    if ("info" in rule) {
      for (const labels of rule.labels) {
        const tokens = this.#index.findInfo(rule.info, labels);
        if (tokens !== undefined) return tokens;
      }
      return null;
    }
    return this.#product(rule.product);
  }

  /** Capacity per engine, the gauges multiplied, summed over engines. */
  #product(refs: readonly MetricRef[]): number | null {
    const factors = refs.map((ref) => this.#values(ref));
    let total = 0;
    for (const engine of factors[0]?.keys() ?? []) {
      total += factors.reduce((tokens, values) => tokens * (values?.get(engine) ?? Number.NaN), 1);
    }
    return total > 0 && total < Number.POSITIVE_INFINITY ? total : null;
  }
}

/** NaN where one of the engines says nonsense: a sum of the others would be too low. */
function sumOf(engines: Map<string, number> | undefined): number | null {
  if (engines === undefined) return null;
  let sum = 0;
  for (const value of engines.values()) sum += value >= 0 ? value : Number.NaN;
  return Number.isFinite(sum) ? sum : Number.NaN;
}

function maxOf(engines: Map<string, number> | undefined): number | null {
  if (engines === undefined) return null;
  let max = 0;
  for (const value of engines.values()) max = value >= 0 ? Math.max(max, value) : Number.NaN;
  return Number.isFinite(max) ? max : Number.NaN;
}
