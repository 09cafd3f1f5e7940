// One endpoint of a pool: what it is, what was last read of it, and why it may or may not take a
// request. It owns no row; the pool writes rows from it.

import { type EndpointOptions, type ResolvedConfig, resolveEndpointOptions } from "./config";
import { describeValue } from "./errors";
import { Ledger } from "./ledger";
import { EndpointPace } from "./pace";
import type { Sample } from "./sample";

/** Why an endpoint is a candidate (`ok`) or not. */
export type EndpointState = "ok" | "queue-full" | "kv-full" | "stale" | "future" | "unusable";

/** What the pool does for its endpoints. Kept narrow so that an endpoint cannot reach further. */
export interface EndpointHost {
  /** The pool's config at this moment. */
  config(): ResolvedConfig;
  /** Thresholds, weight or labels changed. */
  endpointChanged(endpoint: Endpoint): void;
}

/** Reads of an endpoint that could not be used. */
export interface UnusableReports {
  /** How many since it was added. */
  readonly count: number;
  /** What was wrong with the last one; undefined when there was none. */
  readonly last: string | undefined;
}

/** Columns of a reading; NaN where it does not say. */
enum Read {
  Waiting,
  Kv,
  Running,
  Capacity,
  WorstQueue,
  Time,
}
const READ_LENGTH = 6;

/**
 * An endpoint of an `EndpointPool`. Made by `pool.add`.
 *
 * @example pool.add("http://10.0.0.7:8000", { weight: 2 });
 */
export class Endpoint {
  /** The id it was added under. */
  readonly id: string;
  /** Its place in the pool's order; -1 once it was removed. @internal */
  index = -1;
  /** Engines that the last reading stood for. @internal */
  engines = 1;
  /** Its load was written since it was ranked. @internal */
  isRankStale = false;
  /** @internal */
  unusableCount = 0;
  /** @internal */
  lastFault: string | undefined;

  /** The last good reading, see `Read`. In f64, so that a report makes no garbage. */
  readonly #read = new Float64Array(READ_LENGTH).fill(Number.NaN);
  /** What this router has sent to it. @internal */
  readonly ledger = new Ledger();
  /** How fast it is. @internal */
  readonly pace = new EndpointPace();
  /** This router's own bias, fixed at random in [0, 1). @internal */
  readonly bias: number;
  readonly #host: EndpointHost;
  #options: EndpointOptions;

  /** @internal */
  constructor(id: string, options: EndpointOptions, host: EndpointHost, bias: number) {
    this.bias = bias;
    this.id = id;
    this.#options = options;
    this.#host = host;
  }

  /** Q of this endpoint, in requests, before it is multiplied by the number of engines. */
  get queueDepthThreshold(): number {
    return this.#options.queueDepthThreshold ?? this.#host.config().queueDepthThreshold;
  }

  /** K of this endpoint, a fraction. */
  get kvCacheUtilThreshold(): number {
    return this.#options.kvCacheUtilThreshold ?? this.#host.config().kvCacheUtilThreshold;
  }

  /** h of this endpoint, a fraction. */
  get headroom(): number {
    return this.#options.headroom ?? this.#host.config().headroom;
  }

  /** Waiting requests at which it is full (R7). */
  get queueLimit(): number {
    return this.queueDepthThreshold * this.engines * (1 + this.headroom);
  }

  /** KV usage at which it is full (R7). */
  get kvLimit(): number {
    return Math.min(1, this.kvCacheUtilThreshold * (1 + this.headroom));
  }

  /** Requests of this router that were sent to it and have not ended. */
  get leases(): number {
    return this.ledger.own;
  }

  /** Prompt tokens of those requests. */
  get leasedTokens(): number {
    return this.ledger.tokens;
  }

  /** Those of them of whose answer nothing has been seen. */
  get unstartedLeases(): number {
    return this.ledger.unstarted;
  }

  /** Its part of the pool under the aggregation "weighted". */
  get weight(): number {
    return this.#options.weight ?? 1;
  }

  /** Size of its KV cache in tokens; undefined when neither its options nor its telemetry say. */
  get kvCapacityTokens(): number | undefined {
    const given = this.#options.kvCapacityTokens;
    const sampled = this.#at(Read.Capacity);
    return given ?? (sampled > 0 ? sampled : undefined);
  }

  /** Requests that its engine runs at once; undefined when not told. */
  get maxNumSeqs(): number | undefined {
    return this.#options.maxNumSeqs;
  }

  /** Free text for people and dashboards. */
  get labels(): Readonly<Record<string, string>> {
    return this.#options.labels ?? {};
  }

  /** True when its last good reading had no KV usage, so that the queue alone decides. */
  get queueOnly(): boolean {
    return !Number.isNaN(this.updateTime) && Number.isNaN(this.kv);
  }

  /**
   * Changes thresholds, weight, capacity or labels; the rest stays, samples too. A key set to
   * `undefined` goes back to the pool's value.
   *
   * @throws ConfigError with every fault; nothing has changed then.
   */
  update(patch: EndpointOptions): void {
    resolveEndpointOptions(patch);
    const merged: EndpointOptions = { ...this.#options, ...patch };
    this.#options = resolveEndpointOptions(merged);
    this.#host.endpointChanged(this);
  }

  /** Requests that wait, as last read; NaN before the first reading. @internal */
  get waiting(): number {
    return this.#at(Read.Waiting);
  }

  /** KV usage as last read; NaN where the engine does not say. @internal */
  get kv(): number {
    return this.#at(Read.Kv);
  }

  /** Running requests as last read, or NaN. @internal */
  get running(): number {
    return this.#at(Read.Running);
  }

  /** The longest queue of one engine as last read, or NaN. @internal */
  get worstQueue(): number {
    return this.#at(Read.WorstQueue);
  }

  /** When the last reading was started; NaN before the first. @internal */
  get updateTime(): number {
    return this.#at(Read.Time);
  }

  /** Score of the last sample as it was read; 1 before the first. @internal */
  get sampledScore(): number {
    const queue = this.waiting / (this.queueDepthThreshold * this.engines);
    const score = Math.max(queue, (this.kv || 0) / this.kvCacheUtilThreshold);
    return Number.isNaN(score) ? 1 : score;
  }

  /** Counts samples in a row that saw no load at all, while this router sent none. @internal */
  countIdle(): void {
    const { ledger } = this;
    const isIdle = this.waiting === 0 && this.running === 0 && ledger.own + ledger.markOwn === 0;
    ledger.idleSamples = isIdle ? ledger.idleSamples + 1 : 0;
  }

  /** Takes a sample that `findFault` found nothing wrong with. @internal */
  take(sample: Sample, time: number): void {
    const read = this.#read;
    read[Read.Waiting] = known(sample.waitingQueueSize);
    read[Read.Kv] = known(sample.kvCacheUsagePercent);
    read[Read.Running] = known(sample.runningRequests);
    read[Read.Capacity] = known(sample.kvCapacityTokens);
    read[Read.WorstQueue] = known(sample.worstEngineQueueSize);
    read[Read.Time] = time;
    this.engines = Math.max(1, Math.floor(known(sample.engines)) || 1);
  }

  #at(column: Read): number {
    return this.#read[column] as number; // the array has all columns
  }
}

/**
 * What makes a sample unusable (R1), in words; undefined when it is usable. Optional fields that
 * are out of range are no reason to lose the reading: they are unknown.
 */
export function findFault(sample: Sample | null | undefined): string | undefined {
  if (typeof sample !== "object" || sample === null) return "there is no sample";
  const { waitingQueueSize, kvCacheUsagePercent } = sample;
  if (!isReading(waitingQueueSize)) {
    return `waitingQueueSize must be a number >= 0, got ${describeValue(waitingQueueSize)}`;
  }
  if (kvCacheUsagePercent !== null && !isReading(kvCacheUsagePercent)) {
    return `kvCacheUsagePercent must be a number >= 0, got ${describeValue(kvCacheUsagePercent)}`;
  }
  return undefined;
}

function isReading(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < Number.POSITIVE_INFINITY;
}

function known(value: unknown): number {
  return isReading(value) ? value : Number.NaN;
}
