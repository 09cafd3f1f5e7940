// A recording judged again under another config, at full speed: saturation over time, the time spent
// saturated, and each endpoint's share of candidacy.

import type { ResolvedConfig } from "../config";
import { EndpointPool } from "../pool";
import type { FileConfig } from "./config-file";
import { type BadLine, readRecording } from "./recording";
import { Series, WeightedValues } from "./series";

/** What a replay found. Shares are of the recorded time. */
export interface ReplayReport {
  readonly file: string;
  readonly config: ResolvedConfig;
  readonly readings: number;
  readonly unusableReadings: number;
  readonly badLines: readonly BadLine[];
  readonly durationMs: number;
  readonly saturation: {
    readonly mean: number;
    readonly p50: number;
    readonly p90: number;
    readonly p99: number;
    readonly max: number;
    /** Means of equal parts of the time. */
    readonly overTime: readonly number[];
  };
  /** Share of the time in which saturation was 1 or more. */
  readonly saturatedShare: number;
  /** Share of the time in which nobody passed. */
  readonly failedOpenShare: number;
  readonly endpoints: readonly {
    readonly id: string;
    readonly readings: number;
    /** Share of the time in which it was a candidate. */
    readonly candidateShare: number;
    /** Share of the time in which its telemetry was not fresh. */
    readonly notFreshShare: number;
  }[];
}

/** Just after the instant at which a reading goes stale; at the instant itself it is fresh. */
function justAfter(ms: number): number {
  return ms + Math.max(1e-6, Math.abs(ms) * 4.5e-16);
}

const MAX_BAD_LINES = 20;

/** Judges a recording. */
export async function replay(
  file: string,
  config: FileConfig,
  onProgress?: (readings: number) => void,
): Promise<ReplayReport> {
  const judge = new Judge(config);
  const badLines: BadLine[] = [];
  const noteBad = (bad: BadLine) => {
    if (badLines.length < MAX_BAD_LINES) badLines.push(bad);
  };
  for await (const value of readRecording(file, noteBad)) {
    if ("endpoints" in value) judge.begin(value.endpoints, value.metricsStalenessThreshold);
    else if ("failedAt" in value) judge.advanceTo(value.failedAt);
    else {
      judge.report(value.id, value.startedAt, value.reportedAt, value.sample);
      if (judge.readings % 10_000 === 0) onProgress?.(judge.readings);
    }
  }
  return judge.finish(file, badLines);
}

interface Share {
  readings: number;
  candidateMs: number;
  notFreshMs: number;
}

/** The pool under judgement, and what is summed up of it. */
class Judge {
  readings = 0;
  #unusable = 0;
  readonly #pool: EndpointPool;
  readonly #config: FileConfig;
  readonly #shares = new Map<string, Share>();
  readonly #series = new Series();
  readonly #values = new WeightedValues();
  #now = 0;
  #begun: number | undefined;
  #saturatedMs = 0;
  #failedOpenMs = 0;

  constructor(config: FileConfig) {
    this.#config = config;
    this.#pool = new EndpointPool(config.detector, { clock: () => this.#now });
    if (config.interval !== undefined) {
      this.#pool.setDefaultStaleness(Math.max(200, 3 * config.interval));
    }
  }

  /** @param staleness S of the recording, in ms, where it says. */
  begin(ids: readonly string[], staleness: number | undefined): void {
    const isTold = this.#config.interval !== undefined;
    if (!isTold && staleness !== undefined && staleness > 0) {
      this.#pool.setDefaultStaleness(staleness);
    }
    for (const id of ids) this.#shareOf(id);
  }

  /** Time passed without a sample. */
  advanceTo(at: number): void {
    if (this.#begun === undefined) this.#now = at;
    this.#begun ??= at;
    this.#advance(at);
  }

  report(id: string, startedAt: number, reportedAt: number, sample: object): void {
    const share = this.#shareOf(id);
    this.advanceTo(reportedAt);
    this.readings++;
    share.readings++;
    const taken = this.#pool.report(id, {
      waitingQueueSize: undefined,
      kvCacheUsagePercent: undefined,
      ...sample,
      updateTime: startedAt,
    });
    if (!taken) this.#unusable++;
  }

  finish(file: string, badLines: readonly BadLine[]): ReplayReport {
    const durationMs = this.#now - (this.#begun ?? this.#now);
    const share = (ms: number) => (durationMs > 0 ? ms / durationMs : 0);
    return {
      file,
      config: this.#pool.config,
      readings: this.readings,
      unusableReadings: this.#unusable,
      badLines,
      durationMs,
      saturation: {
        mean: this.#values.mean,
        p50: this.#values.quantile(0.5),
        p90: this.#values.quantile(0.9),
        p99: this.#values.quantile(0.99),
        max: this.#values.max,
        overTime: this.#series.means(60),
      },
      saturatedShare: share(this.#saturatedMs),
      failedOpenShare: share(this.#failedOpenMs),
      endpoints: [...this.#shares].map(([id, { readings, candidateMs, notFreshMs }]) => ({
        id,
        readings,
        candidateShare: share(candidateMs),
        notFreshShare: share(notFreshMs),
      })),
    };
  }

  #shareOf(id: string): Share {
    const known = this.#shares.get(id);
    if (known !== undefined) return known;
    const own = this.#config.endpoints.find((one) => (one.id ?? new URL(one.url).origin) === id);
    const { url: _, id: __, engine: ___, headers: ____, ...options } = own ?? { url: "" };
    this.#pool.add(id, options);
    const share = { readings: 0, candidateMs: 0, notFreshMs: 0 };
    this.#shares.set(id, share);
    return share;
  }

  /** Lets time pass up to `until`, stopping wherever time alone changes the answer. */
  #advance(until: number): void {
    while (this.#now < until) {
      const evaluation = this.#pool.evaluate();
      const next = Math.max(justAfter(evaluation.validUntil), justAfter(this.#now));
      const ms = Math.min(until, next) - this.#now;
      const { saturation, failedOpen, candidates } = evaluation;
      this.#values.add(saturation, ms);
      this.#series.add(this.#now - (this.#begun ?? 0), saturation, ms);
      if (saturation >= 1) this.#saturatedMs += ms;
      if (failedOpen) this.#failedOpenMs += ms;
      else for (const { id } of candidates) this.#shareOf(id).candidateMs += ms;
      const staleness = this.#pool.config.metricsStalenessThreshold;
      for (const { id, updateTime } of this.#pool) {
        if (!(Math.abs(this.#now - updateTime) <= staleness)) this.#shareOf(id).notFreshMs += ms;
      }
      this.#now += ms;
    }
  }
}
