// EndpointPool: the endpoints of one model, what was last read of them, what this router has sent
// them, and the decision. It scores on write and reduces on read, and nothing is computed twice.

import { Board, List } from "./board";
import { choose } from "./choose";
import {
  type Aggregation,
  type DetectorConfig,
  type EndpointOptions,
  type ResolvedConfig,
  resolveConfig,
  resolveEndpointOptions,
  resolvePoolOptions,
} from "./config";
import { Endpoint, type EndpointHost, findFault } from "./endpoint";
import { describeValue, EndpointError } from "./errors";
import {
  type Evaluation,
  type GateReason,
  readResult,
  type SaturationSource,
  type Unsubscribe,
} from "./evaluation";
import { RESULT } from "./kernel";
import type { Lease } from "./lease";
import { type LeaseHost, Leases } from "./leases";
import type { Mark } from "./ledger";
import { LoadWriter } from "./load-writer";
import type { Logger } from "./logger";
import type { LeaseRequest, Pick, PickFilter } from "./pick";
import type { PoolOptions, Reading } from "./pool-options";
import type { Sample } from "./sample";
import { explainGate, type PoolSnapshot, takeSnapshot } from "./snapshot";
import { StalenessWarner } from "./staleness-warner";
import { Subscribers } from "./subscribers";

const LISTS: Readonly<Record<PickFilter, List>> = {
  limits: List.Limits,
  kv: List.Kv,
  none: List.Fresh,
};

/**
 * Endpoints, what is known of them, and the decision.
 *
 * @example
 * const pool = new EndpointPool({ queueDepthThreshold: 5 });
 * pool.add("http://10.0.0.7:8000");
 * pool.report("http://10.0.0.7:8000", { waitingQueueSize: 2, kvCacheUsagePercent: 0.4 });
 * pool.saturation(); // 0.5
 * const lease = pool.lease({ tokens: 800 });
 */
export class EndpointPool implements SaturationSource<Endpoint> {
  readonly #clock: () => number;
  readonly #random: () => number;
  readonly #warner: StalenessWarner;
  readonly #subscribers = new Subscribers();
  readonly #board: Board;
  readonly #byId = new Map<string, Endpoint>();
  readonly #endpoints: Endpoint[] = [];
  readonly #candidates: Endpoint[] = [];
  #stalenessGiven: boolean;
  readonly #logger: Logger | undefined;
  readonly #pickList: List;
  readonly #host: EndpointHost & LeaseHost = {
    config: () => this.#config,
    now: () => this.#clock(),
    endpointChanged: (endpoint) => {
      if (endpoint.index >= 0) {
        this.#loads.writeLimits(endpoint, this.#clock());
        this.#changed();
      }
    },
    loadChanged: (endpoint, now) => {
      if (endpoint.index < 0) return;
      this.#loads.write(endpoint, now);
      this.#changed();
    },
    pacesChanged: (now) => {
      for (const endpoint of this.#endpoints) this.#loads.write(endpoint, now);
      this.#changed();
    },
  };
  readonly #leases = new Leases(this.#host);
  readonly #loads: LoadWriter;
  #candidatesListed = false;
  #config: ResolvedConfig;
  #evaluation: Evaluation<Endpoint> | undefined;

  /**
   * @throws ConfigError with every fault of `config` and `options`.
   * @throws KernelError when WebAssembly cannot run here.
   */
  constructor(config?: DetectorConfig, options: PoolOptions = {}) {
    this.#config = resolveConfig(config, options.logger);
    const { capacity, filter, projection } = resolvePoolOptions(options);
    this.#stalenessGiven = config?.metricsStalenessThreshold !== undefined;
    this.#pickList = LISTS[filter];
    this.#clock = options.clock ?? (() => performance.now());
    this.#random = options.random ?? Math.random;
    this.#logger = options.logger;
    this.#warner = new StalenessWarner(options.logger, "pool");
    this.#board = new Board(capacity, this.#config, this.#pickList);
    this.#loads = new LoadWriter(this.#board, this.#leases, projection === "live");
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
    // A copy, so that a loop may remove what it sees.
    return [...this.#endpoints][Symbol.iterator]();
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
    const endpoint = new Endpoint(id, resolveEndpointOptions(options), this.#host, this.#random());
    this.#board.reserve(this.size);
    endpoint.index = this.size;
    this.#endpoints.push(endpoint);
    this.#byId.set(id, endpoint);
    this.#leases.pace.add(endpoint.pace);
    this.#loads.writeLimits(endpoint, this.#clock());
    this.#changed();
    return endpoint;
  }

  /** The endpoint with this id, or undefined. */
  get(id: string): Endpoint | undefined {
    return this.#byId.get(id);
  }

  /**
   * Removes an endpoint. Its leases go on, and count nowhere any more: an endpoint that is added
   * under the same id later starts clean. False when there was none with this id.
   */
  remove(id: string): boolean {
    const endpoint = this.#byId.get(id);
    if (endpoint === undefined) return false;
    const { index } = endpoint;
    this.#loads.rank(); // so that nobody who is gone waits for it
    this.#board.remove(index, this.size);
    this.#byId.delete(id);
    this.#endpoints.splice(index, 1);
    endpoint.index = -1;
    for (let i = index; i < this.size; i++) {
      (this.#endpoints[i] as Endpoint).index = i; // i is below the length
    }
    this.#leases.pace.remove(endpoint.pace);
    this.#leases.forget(endpoint, this.#clock());
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
    const endpoint = this.#known(id);
    const now = this.#clock();
    return this.#report(endpoint, sample, now, now, undefined);
  }

  /**
   * Notes that a reading begins now, which may take a while. Its sample will count from this time,
   * and what is sent meanwhile counts beside it.
   *
   * @throws EndpointError when no endpoint has this id.
   */
  beginReading(id: string): Reading {
    const endpoint = this.#known(id);
    const startedAt = this.#clock();
    const mark = endpoint.ledger.markNow(startedAt, this.#leases.order);
    return {
      startedAt,
      report: (sample) => {
        if (endpoint.index < 0) return false;
        return this.#report(endpoint, sample, startedAt, this.#clock(), mark);
      },
    };
  }

  /**
   * Saturation of the pool; 1 for an empty pool.
   *
   * @param aggregation default: the configured one.
   */
  saturation(aggregation: Aggregation = this.#config.aggregation): number {
    this.#judge(List.Any, this.#clock());
    return this.#board.result[RESULT[aggregation]] as number; // the block has all of them
  }

  /**
   * The endpoints that may take the next request, in order; all of them when none passes. The
   * array is the pool's own: it is valid until the pool changes and must not be kept.
   */
  candidates(): readonly Endpoint[] {
    return this.#passing(this.#clock());
  }

  /** The whole judgement; what it carries may be kept. */
  evaluate(): Evaluation<Endpoint> {
    return this.#evaluate(this.#clock());
  }

  /**
   * The best endpoint for a request now, without sending it; undefined when there is none that
   * comes into question.
   */
  pick(request: LeaseRequest = {}): Pick | undefined {
    return this.#choose(request, this.#clock());
  }

  /** Picks an endpoint and takes a lease on it, in one step; undefined as for `pick`. */
  lease(request: LeaseRequest = {}): Lease | undefined {
    const now = this.#clock();
    const pick = this.#choose(request, now);
    return pick === undefined ? undefined : this.#send(pick.endpoint, request.tokens, now);
  }

  /**
   * Takes a lease on an endpoint that the caller has chosen.
   *
   * @throws EndpointError when no endpoint has this id.
   */
  acquire(id: string, options: { readonly tokens?: number | undefined } = {}): Lease {
    return this.#send(this.#known(id), options.tokens, this.#clock());
  }

  /** Plain data of the pool and each endpoint, for dashboards and tests. */
  snapshot(): PoolSnapshot {
    const now = this.#clock();
    const evaluation = this.#evaluate(now);
    this.#loads.rank();
    const oldest = this.#leases.oldestUnstarted;
    return takeSnapshot(this.#endpoints, this.#board, this.#config, evaluation, now, {
      oldestUnstartedMs: oldest === undefined ? null : now - oldest.sentAt,
      meanPromptTokens: this.#leases.meanPrompt,
    });
  }

  /** When time alone will change what the pool says, on its clock; Infinity: never. */
  validUntil(): number {
    this.#judge(List.Any, this.#clock());
    return this.#board.validUntil;
  }

  /** Now, on the pool's clock, in ms. */
  now(): number {
    return this.#clock();
  }

  /**
   * What stands between the pool and more load: the fuller resource of the least loaded endpoint,
   * or of the most loaded one under the aggregation `max`. Undefined for an empty pool.
   *
   * @param among ids of the endpoints to look at. Default: all.
   */
  closedBy(
    aggregation: Aggregation = this.#config.aggregation,
    among?: ReadonlySet<string>,
  ): GateReason | undefined {
    const now = this.#clock();
    const { scores } = this.#evaluate(now);
    const isWorst = aggregation === "max";
    return explainGate(this.#endpoints, this.#board, this.#config, scores, now, isWorst, among);
  }

  /** Calls `listener` after changes, many changes at once; not for the passing of time. */
  subscribe(listener: () => void): Unsubscribe {
    return this.#subscribers.add(listener);
  }

  /**
   * Other options from now on; endpoints, samples and leases stay. Where S was not given and is not
   * now, it stays what `setDefaultStaleness` made it.
   *
   * @throws ConfigError with every fault; nothing has changed then.
   */
  reconfigure(config: DetectorConfig): void {
    const next = resolveConfig(config, this.#logger);
    const isGiven = config.metricsStalenessThreshold !== undefined;
    const keepsDefault = !isGiven && !this.#stalenessGiven;
    const { metricsStalenessThreshold } = keepsDefault ? this.#config : next;
    this.#config = Object.freeze({ ...next, metricsStalenessThreshold });
    this.#stalenessGiven = isGiven;
    this.#board.configure(this.#config);
    const now = this.#clock();
    for (const endpoint of this.#endpoints) this.#loads.writeLimits(endpoint, now);
    this.#changed();
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
      this.#board.configure(this.#config);
      this.#changed();
    }
    return this.#config.metricsStalenessThreshold;
  }

  #known(id: string): Endpoint {
    const endpoint = this.#byId.get(id);
    if (endpoint !== undefined) return endpoint;
    throw new EndpointError(
      `no endpoint ${describeValue(id)} in the pool: add it first, or ask the pool with get`,
    );
  }

  #report(
    endpoint: Endpoint,
    sample: Sample | null | undefined,
    startedAt: number,
    now: number,
    mark: Mark | undefined,
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
    const { engines, ledger } = endpoint;
    endpoint.take(sample as Sample, time); // findFault has seen that there is one
    if (mark === undefined) ledger.settleAt(time, this.#leases.order);
    else ledger.settle(mark);
    endpoint.countIdle();
    if (engines !== endpoint.engines) this.#loads.writeLimits(endpoint, now);
    else this.#loads.write(endpoint, now);
    this.#changed();
    return true;
  }

  #changed(): void {
    this.#board.forget();
    this.#evaluation = undefined;
    this.#candidatesListed = false;
    this.#subscribers.notify();
  }

  #judge(list: List, now: number): void {
    this.#leases.presumeOld(now);
    const n = this.size;
    if (this.#board.judge(n, now, list, this.#leases.nextPresumedAt)) {
      this.#evaluation = undefined;
      this.#candidatesListed = false;
    }
    // Said of an answer from the cache too: a pool that is dead changes no more.
    const { result } = this.#board;
    if (result[RESULT.fresh] === n) return;
    const { stale, unusable } = readResult(result);
    this.#warner.noteStale(now, stale, unusable, n, this.#config.metricsStalenessThreshold);
  }

  /** Refills the array that `candidates` hands out, so that a decision makes no garbage. */
  #passing(now: number): readonly Endpoint[] {
    this.#judge(List.Limits, now);
    const list = this.#candidates;
    if (!this.#candidatesListed) {
      const { result, candidates } = this.#board;
      const count = result[RESULT.candidates] as number; // the block has it
      const n = count === 0 ? this.size : count;
      list.length = n;
      for (let i = 0; i < n; i++) {
        // Nobody passes: everybody is a candidate. Else the kernel's own indices.
        list[i] = this.#endpoints[count === 0 ? i : (candidates[i] as number)] as Endpoint;
      }
      this.#candidatesListed = true;
    }
    return list;
  }

  #evaluate(now: number): Evaluation<Endpoint> {
    const passing = this.#passing(now);
    if (this.#evaluation === undefined) {
      const result = readResult(this.#board.result);
      this.#evaluation = Object.freeze({
        ...result,
        saturation: result[this.#config.aggregation],
        candidates: [...passing],
        failedOpen: this.#board.result[RESULT.candidates] === 0,
        scores: this.#board.scores(this.size, now),
        validUntil: this.#board.validUntil,
      });
    }
    return this.#evaluation;
  }

  #choose(request: LeaseRequest, now: number): Pick | undefined {
    this.#leases.presumeOld(now);
    this.#loads.rank();
    const tokens = this.#leases.sizeOf(request.tokens);
    return choose(
      this.#endpoints,
      this.#board,
      request,
      tokens,
      this.#random,
      this.#pickList,
      (list) => this.#judge(list, now),
    );
  }

  #send(endpoint: Endpoint, tokens: number | undefined, now: number): Lease {
    const work = this.#loads.workFor(endpoint, tokens);
    return this.#leases.send(endpoint, tokens, work, now);
  }
}
