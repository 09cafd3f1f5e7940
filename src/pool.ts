// EndpointPool: the endpoints of one model, their readings packed into the kernel's rows. It scores
// on write and reduces on read, and nothing is computed twice.

import {
  type DetectorConfig,
  type EndpointOptions,
  type ResolvedConfig,
  resolveConfig,
  resolveEndpointOptions,
} from "./config";
import { Endpoint, type EndpointHost, findFault } from "./endpoint";
import { describeValue, EndpointError } from "./errors";
import { type Evaluation, readResult, type SaturationSource, type Unsubscribe } from "./evaluation";
import { Kernel, KV, RESULT, ROW, UPDATE_TIME, WAITING, WEIGHT, writeLimits } from "./kernel";
import type { Logger } from "./logger";
import type { Sample } from "./sample";
import { type PoolSnapshot, takeSnapshot } from "./snapshot";
import { StalenessWarner } from "./staleness-warner";
import { Subscribers } from "./subscribers";

/** How a pool is set up. */
export interface PoolOptions {
  /** Endpoints to make room for at the start. Default 64; the pool grows by itself. */
  readonly capacity?: number | undefined;
  /** Now, in ms, on any clock that does not go backwards. Default `performance.now`. */
  readonly clock?: (() => number) | undefined;
  /** Is told about staleness (at most once per 30 s) and odd settings. Default: nobody. */
  readonly logger?: Logger | undefined;
}

/** A reading that was begun and has not been reported yet. */
export interface Reading {
  /** When it was begun, on the pool's clock. */
  readonly startedAt: number;
  /**
   * Hands in what was read. False when it changed nothing: it was unusable, a younger reading was
   * there before it, or the endpoint has been removed.
   */
  report(sample: Sample | null | undefined): boolean;
}

/** How much of the last answer may still be used. */
enum Known {
  Nothing,
  Saturation,
  Candidates,
}

/**
 * Endpoints, what was last read of them, and the decision.
 *
 * @example
 * const pool = new EndpointPool({ queueDepthThreshold: 5 });
 * pool.add("http://10.0.0.7:8000");
 * pool.report("http://10.0.0.7:8000", { waitingQueueSize: 2, kvCacheUsagePercent: 0.4 });
 * pool.saturation(); // 0.5
 */
export class EndpointPool implements SaturationSource<Endpoint> {
  readonly #clock: () => number;
  readonly #warner: StalenessWarner;
  readonly #subscribers = new Subscribers();
  readonly #kernel: Kernel;
  readonly #byId = new Map<string, Endpoint>();
  readonly #endpoints: Endpoint[] = [];
  readonly #candidates: Endpoint[] = [];
  readonly #stalenessGiven: boolean;
  readonly #aggregate: number;
  readonly #host: EndpointHost = {
    config: () => this.#config,
    endpointChanged: (endpoint) => {
      if (endpoint.index < 0) return;
      this.#writeRow(endpoint);
      this.#kernel.score(endpoint.index, endpoint.index + 1);
      this.#changed();
    },
  };
  #config: ResolvedConfig;
  #known = Known.Nothing;
  #evaluation: Evaluation<Endpoint> | undefined;
  #computedAt = 0;
  #validUntil = 0;
  #saturation = 1;

  /**
   * @throws ConfigError with every fault of `config`.
   * @throws KernelError when WebAssembly cannot run here.
   */
  constructor(config?: DetectorConfig, options: PoolOptions = {}) {
    this.#config = resolveConfig(config, options.logger);
    this.#stalenessGiven = config?.metricsStalenessThreshold !== undefined;
    this.#aggregate = RESULT[this.#config.aggregation];
    this.#clock = options.clock ?? (() => performance.now());
    this.#warner = new StalenessWarner(options.logger, "pool");
    this.#kernel = new Kernel(options.capacity ?? 64);
    this.#kernel.configure(this.#config);
  }

  /** The config with its defaults; frozen. */
  get config(): ResolvedConfig {
    return this.#config;
  }

  /** How many endpoints there are. */
  get size(): number {
    return this.#endpoints.length;
  }

  /** The endpoints in the order in which they were added. */
  [Symbol.iterator](): IterableIterator<Endpoint> {
    return this.#endpoints[Symbol.iterator]();
  }

  /**
   * Adds an endpoint. It has no reading, so it is no candidate until its first one.
   *
   * @param id any text that is not empty, usually its address.
   * @throws EndpointError when the id is taken. @throws ConfigError with every fault of `options`.
   * @throws KernelError when there is no memory for it; nothing has changed then.
   */
  add(id: string, options: EndpointOptions = {}): Endpoint {
    if (typeof id !== "string" || id === "") {
      throw new EndpointError(`an endpoint id is a text, got ${describeValue(id)}`);
    }
    if (this.#byId.has(id)) {
      throw new EndpointError(
        `endpoint ${describeValue(id)} is in the pool already: change it with ` +
          "get(id).update(...), or remove it first",
      );
    }
    const endpoint = new Endpoint(id, resolveEndpointOptions(options), this.#host);
    const index = this.#endpoints.length;
    const moved = this.#kernel.reserve(index + 1);
    endpoint.index = index;
    this.#endpoints.push(endpoint);
    this.#byId.set(id, endpoint);
    this.#writeRow(endpoint);
    this.#kernel.score(moved ? 0 : index, index + 1);
    this.#changed();
    return endpoint;
  }

  /** The endpoint with this id, or undefined. */
  get(id: string): Endpoint | undefined {
    return this.#byId.get(id);
  }

  /** Removes an endpoint. False when there was none with this id. */
  remove(id: string): boolean {
    const endpoint = this.#byId.get(id);
    if (endpoint === undefined) return false;
    const { index } = endpoint;
    this.#byId.delete(id);
    this.#endpoints.splice(index, 1);
    endpoint.index = -1;
    const { rows } = this.#kernel;
    rows.copyWithin(index * ROW, (index + 1) * ROW, (this.#endpoints.length + 1) * ROW);
    for (let i = index; i < this.#endpoints.length; i++) {
      (this.#endpoints[i] as Endpoint).index = i; // i is below the length
    }
    this.#kernel.score(index, this.#endpoints.length);
    this.#changed();
    return true;
  }

  /**
   * Hands in a sample that was read just now, or at its `updateTime`. False when it changed
   * nothing: it is unusable (which is counted), or older than what is known.
   *
   * @throws EndpointError when no endpoint has this id.
   */
  report(id: string, sample: Sample | null | undefined): boolean {
    const endpoint = this.#byId.get(id);
    if (endpoint === undefined) throw unknownEndpoint(id);
    const now = this.#clock();
    return this.#report(endpoint, sample, now, now);
  }

  /**
   * Notes that a reading begins now, which may take a while. Its sample will count from this time.
   *
   * @throws EndpointError when no endpoint has this id.
   */
  beginReading(id: string): Reading {
    const endpoint = this.#byId.get(id);
    if (endpoint === undefined) throw unknownEndpoint(id);
    const startedAt = this.#clock();
    return {
      startedAt,
      report: (sample) => {
        if (endpoint.index < 0) return false;
        return this.#report(endpoint, sample, startedAt, this.#clock());
      },
    };
  }

  /** Saturation of the pool under the configured aggregation; 1 for an empty pool. */
  saturation(): number {
    this.#refresh(Known.Saturation, this.#clock());
    return this.#saturation;
  }

  /**
   * The endpoints that may take the next request, in order; all of them when none passes. The
   * array is the pool's own: it is valid until the pool changes and must not be kept.
   */
  candidates(): readonly Endpoint[] {
    this.#refresh(Known.Candidates, this.#clock());
    return this.#passing();
  }

  /** The whole judgement; what it carries may be kept. */
  evaluate(): Evaluation<Endpoint> {
    return this.#evaluateAt(this.#clock());
  }

  /** Plain data of the pool and each endpoint, for dashboards and tests. */
  snapshot(): PoolSnapshot {
    const now = this.#clock();
    return takeSnapshot(this.#endpoints, this.#config, this.#evaluateAt(now), now);
  }

  /** Calls `listener` after changes, many changes at once; not for the passing of time. */
  subscribe(listener: () => void): Unsubscribe {
    return this.#subscribers.add(listener);
  }

  /**
   * For whoever feeds the pool every `ms`: sets S to `ms` where the config did not say what S is.
   *
   * @param ms a number > 0.
   * @returns S as it is now, in ms.
   */
  setDefaultStaleness(ms: number): number {
    if (!this.#stalenessGiven) {
      const { metricsStalenessThreshold } = resolveConfig({ metricsStalenessThreshold: ms });
      this.#config = Object.freeze({ ...this.#config, metricsStalenessThreshold });
      this.#kernel.configure(this.#config);
      this.#changed();
    }
    return this.#config.metricsStalenessThreshold;
  }

  #report(
    endpoint: Endpoint,
    sample: Sample | null | undefined,
    startedAt: number,
    now: number,
  ): boolean {
    const fault = findFault(sample);
    const time = sample?.updateTime ?? startedAt;
    if (fault !== undefined || !Number.isFinite(time)) {
      endpoint.unusableCount++;
      endpoint.lastFault = fault ?? `updateTime must be finite, got ${describeValue(time)}`;
      return false;
    }
    if (StalenessWarner.isFarOff(now, time)) this.#warner.noteTime(now, time);
    // A time ahead of the clock says that the clock was set back; then the newest report counts.
    if (time < endpoint.updateTime && endpoint.updateTime <= now) return false;
    const { engines, index } = endpoint;
    const good = sample as Sample; // findFault has seen that there is one
    endpoint.take(good, time);
    const at = index * ROW;
    const { rows } = this.#kernel;
    rows[at + WAITING] = good.waitingQueueSize as number;
    rows[at + KV] = good.kvCacheUsagePercent ?? 0; // no reading: the queue alone decides
    rows[at + UPDATE_TIME] = time;
    if (engines !== endpoint.engines) this.#writeRow(endpoint);
    this.#kernel.score(index, index + 1);
    this.#changed();
    return true;
  }

  #writeRow(endpoint: Endpoint): void {
    const { rows } = this.#kernel;
    const at = endpoint.index * ROW;
    rows[at + WAITING] = endpoint.waiting;
    rows[at + KV] = endpoint.kv || 0; // no reading: the queue alone decides
    rows[at + UPDATE_TIME] = endpoint.updateTime;
    rows[at + WEIGHT] = endpoint.weight;
    const { queueDepthThreshold, kvCacheUtilThreshold, headroom, engines } = endpoint;
    const q = queueDepthThreshold * engines;
    writeLimits(rows, endpoint.index, q, kvCacheUtilThreshold, headroom);
  }

  #changed(): void {
    this.#known = Known.Nothing;
    this.#evaluation = undefined;
    this.#subscribers.notify();
  }

  #refresh(wanted: Known, now: number): void {
    if (this.#known >= wanted && this.#computedAt <= now && now < this.#validUntil) return;
    const n = this.#endpoints.length;
    if (wanted === Known.Candidates) {
      this.#kernel.select(n, now);
      this.#listCandidates();
    } else {
      this.#kernel.reduce(n, now);
    }
    const { result } = this.#kernel;
    this.#known = wanted;
    this.#evaluation = undefined;
    this.#computedAt = now;
    this.#validUntil = result[RESULT.validUntil] as number; // the block is 16 long
    this.#saturation = result[this.#aggregate] as number;
    if (result[RESULT.fresh] !== n) this.#warnStale(now);
  }

  /** Refills the array that `candidates` hands out, so that a decision makes no garbage. */
  #listCandidates(): void {
    const { result, candidates } = this.#kernel;
    const count = result[RESULT.candidates] as number;
    const list = this.#candidates;
    list.length = count;
    for (let i = 0; i < count; i++) {
      list[i] = this.#endpoints[candidates[i] as number] as Endpoint; // the kernel's own indices
    }
  }

  #warnStale(now: number): void {
    const { stale, unusable } = readResult(this.#kernel.result);
    const { metricsStalenessThreshold } = this.#config;
    this.#warner.noteStale(now, stale, unusable, this.size, metricsStalenessThreshold);
  }

  #evaluateAt(now: number): Evaluation<Endpoint> {
    this.#refresh(Known.Candidates, now);
    if (this.#evaluation === undefined) {
      const n = this.#endpoints.length;
      this.#kernel.settle(n, now);
      this.#evaluation = Object.freeze({
        saturation: this.#saturation,
        candidates: [...this.#passing()],
        failedOpen: this.#candidates.length === 0,
        scores: this.#kernel.effective.slice(0, n),
        ...readResult(this.#kernel.result),
      });
    }
    return this.#evaluation;
  }

  #passing(): readonly Endpoint[] {
    return this.#candidates.length === 0 ? this.#endpoints : this.#candidates;
  }
}

function unknownEndpoint(id: unknown): EndpointError {
  return new EndpointError(
    `no endpoint ${describeValue(id)} in the pool: add it first, or read it from the pool with get`,
  );
}
