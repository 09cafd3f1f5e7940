// ConcurrencyDetector: saturation from what this router has in flight, instead of telemetry. It reads
// the leases of a pool, and needs no sample at all.

import { type Aggregation, type Fields, oneOf, readFields } from "./config";
import type { Endpoint } from "./endpoint";
import { ConfigError, type ConfigFault } from "./errors";
import type { Evaluation, GateReason, SaturationSource, Unsubscribe } from "./evaluation";
import type { Lease } from "./lease";
import { hasId, type LeaseRequest } from "./pick";
import type { EndpointPool } from "./pool";

/** What is counted: requests, their prompt tokens, or whichever of the two is nearer its limit. */
export type ConcurrencyMode = "requests" | "tokens" | "hybrid";

/** Options of a `ConcurrencyDetector`. */
export interface ConcurrencyConfig {
  /** What is counted. Default "requests". */
  readonly mode?: ConcurrencyMode | undefined;
  /** Requests in flight at one endpoint at its ideal load, integer > 0. Default 100. */
  readonly maxConcurrency?: number | undefined;
  /** Prompt tokens in flight at one endpoint at its ideal load, > 0. Default 1,000,000. */
  readonly maxTokenConcurrency?: number | undefined;
  /** How far above the ideal one endpoint may burst, a fraction >= 0. Default 0. */
  readonly headroom?: number | undefined;
}

/** A checked config with every default filled in; frozen. */
export interface ResolvedConcurrencyConfig {
  readonly mode: ConcurrencyMode;
  readonly maxConcurrency: number;
  readonly maxTokenConcurrency: number;
  readonly headroom: number;
}

/** The type under which this detector is configured. */
export const CONCURRENCY_DETECTOR = "concurrency-detector";

const FIELDS: Fields<ResolvedConcurrencyConfig> = {
  mode: oneOf<ConcurrencyMode>("requests", "tokens", "hybrid"),
  maxConcurrency: {
    rule: "an integer > 0 (requests)",
    read: (value) => (Number.isInteger(value) && Number(value) > 0 ? Number(value) : undefined),
  },
  maxTokenConcurrency: finite("a number > 0 (tokens)", (value) => value > 0),
  headroom: finite("a fraction >= 0 (0.2 is 20 %)", (value) => value >= 0),
};
const DEFAULTS: ResolvedConcurrencyConfig = {
  mode: "requests",
  maxConcurrency: 100,
  maxTokenConcurrency: 1e6,
  headroom: 0,
};

/**
 * Says how saturated a pool is by the leases it has given.
 *
 * @example
 * const detector = new ConcurrencyDetector(pool, { maxConcurrency: 64 });
 * const controller = new FlowController(maxOf(pool, detector));
 */
export class ConcurrencyDetector implements SaturationSource<Endpoint> {
  readonly typedName: { readonly type: typeof CONCURRENCY_DETECTOR; readonly name: string };
  /** The config with its defaults; frozen. */
  readonly config: ResolvedConcurrencyConfig;
  readonly #pool: EndpointPool;

  /** @throws ConfigError with every fault of `config`. */
  constructor(
    pool: EndpointPool,
    config: ConcurrencyConfig = {},
    options: { readonly name?: string | undefined } = {},
  ) {
    const faults: ConfigFault[] = [];
    const given = readFields(FIELDS, config, "", faults);
    if (faults.length > 0) throw new ConfigError(faults);
    this.config = Object.freeze({ ...DEFAULTS, ...given });
    this.typedName = Object.freeze({
      type: CONCURRENCY_DETECTOR,
      name: options.name ?? CONCURRENCY_DETECTOR,
    });
    this.#pool = pool;
  }

  /** How many endpoints there are. */
  get size(): number {
    return this.#pool.size;
  }

  /**
   * In flight over capacity, as one fraction of the whole pool; under `hybrid` the mean over
   * endpoints of the larger ratio. 1 for an empty pool.
   *
   * @param aggregation `mean`, `weighted` and the default are that; `capped` counts each endpoint
   * up to its capacity; `max` is the fullest endpoint.
   */
  saturation(aggregation: Aggregation = "mean"): number {
    if (this.#pool.size === 0) return 1;
    let sum = 0;
    let max = 0;
    for (const endpoint of this.#pool) {
      const ratio = this.#ratio(endpoint);
      sum += aggregation === "capped" ? Math.min(ratio, 1) : ratio;
      max = Math.max(max, ratio);
    }
    return aggregation === "max" ? max : sum / this.#pool.size;
  }

  /** The endpoints that are not full, in order; all of them when all are full. */
  filter(): readonly Endpoint[] {
    const all = [...this.#pool];
    const free = all.filter((endpoint) => !this.#isFull(endpoint));
    return free.length === 0 ? all : free;
  }

  /** The whole judgement; leases are always fresh. */
  evaluate(): Evaluation<Endpoint> {
    const all = [...this.#pool];
    const free = all.filter((endpoint) => !this.#isFull(endpoint));
    const mean = this.saturation();
    return Object.freeze({
      saturation: mean,
      candidates: free.length === 0 ? all : free,
      failedOpen: free.length === 0,
      scores: Float64Array.from(all, (endpoint) => this.#ratio(endpoint)),
      fresh: all.length,
      stale: 0,
      unusable: 0,
      mean,
      capped: this.saturation("capped"),
      weighted: mean,
      max: this.saturation("max"),
      validUntil: Number.POSITIVE_INFINITY,
    });
  }

  /** As `pool.lease`, among the endpoints that are not full. */
  lease(request: LeaseRequest = {}): Lease | undefined {
    const free = this.filter();
    const { prefer, exclude } = request;
    const isWanted =
      prefer !== undefined &&
      free.some((endpoint) => endpoint.id === prefer && !this.#isFull(endpoint)) &&
      (request.among === undefined || hasId(request.among, prefer)) &&
      !(exclude !== undefined && hasId(exclude, prefer));
    // No telemetry is needed to know that it has room.
    if (isWanted) return this.#pool.acquire(prefer, request);
    if (free.length === this.#pool.size) return this.#pool.lease(request);
    const ids = free.map(({ id }) => id);
    const { among: wanted } = request;
    const among = wanted === undefined ? new Set(ids) : ids.filter((id) => hasId(wanted, id));
    return this.#pool.lease({ ...request, among });
  }

  /** Now, on the pool's clock, in ms. */
  now(): number {
    return this.#pool.now();
  }

  /** How full the least loaded endpoint is; undefined for an empty pool. */
  closedBy(): GateReason | undefined {
    let least: Endpoint | undefined;
    for (const endpoint of this.#pool) {
      if (least === undefined || this.#ratio(endpoint) < this.#ratio(least)) least = endpoint;
    }
    if (least === undefined) return undefined;
    const { maxConcurrency, maxTokenConcurrency, mode } = this.config;
    const byTokens = least.leasedTokens / maxTokenConcurrency > least.leases / maxConcurrency;
    return mode === "tokens" || (mode === "hybrid" && byTokens)
      ? {
          resource: "tokens",
          value: least.leasedTokens,
          limit: maxTokenConcurrency,
          endpoint: least.id,
        }
      : { resource: "requests", value: least.leases, limit: maxConcurrency, endpoint: least.id };
  }

  /** Calls `listener` after changes of the pool, many changes at once. */
  subscribe(listener: () => void): Unsubscribe {
    return this.#pool.subscribe(listener);
  }

  #ratio(endpoint: Endpoint): number {
    const { mode, maxConcurrency, maxTokenConcurrency } = this.config;
    const requests = endpoint.leases / maxConcurrency;
    const tokens = endpoint.leasedTokens / maxTokenConcurrency;
    if (mode === "hybrid") return Math.max(requests, tokens);
    return mode === "tokens" ? tokens : requests;
  }

  /** Full from `floor(capacity * (1 + headroom))` on. */
  #isFull(endpoint: Endpoint): boolean {
    const { mode, maxConcurrency, maxTokenConcurrency, headroom } = this.config;
    const isFullOf = (load: number, capacity: number) =>
      load >= Math.floor(capacity * (1 + headroom));
    const requests = mode !== "tokens" && isFullOf(endpoint.leases, maxConcurrency);
    return (
      requests || (mode !== "requests" && isFullOf(endpoint.leasedTokens, maxTokenConcurrency))
    );
  }
}

function finite(rule: string, isRight: (value: number) => boolean) {
  return {
    rule,
    read: (value: unknown) =>
      typeof value === "number" && Number.isFinite(value) && isRight(value) ? value : undefined,
  };
}
