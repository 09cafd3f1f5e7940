// UtilizationDetector: the rules over the caller's own endpoint objects. It packs their metrics into
// scratch rows and asks the kernel, so the rules stand in one place; its cost is the packing.

import { type DetectorConfig, type ResolvedConfig, resolveConfig, type Thresholds } from "./config";
import { ConfigError, describeValue } from "./errors";
import { type Evaluation, readResult, type SaturationSource } from "./evaluation";
import { type Kernel, KV, RESULT, ROW, UPDATE_TIME, WAITING, WEIGHT, writeLimits } from "./kernel";
import type { Logger } from "./logger";
import { borrowKernel, returnKernel, type ScratchKernel } from "./scratch";
import { StalenessWarner } from "./staleness-warner";
import { Subscribers } from "./subscribers";

/** What is known of one endpoint. Anything that is not a number makes it unusable (R1). */
export interface EndpointMetrics {
  /** Requests that wait, >= 0. */
  readonly waitingQueueSize: number;
  /** Share of the KV cache in use, a fraction 0..1 whatever the name says. */
  readonly kvCacheUsagePercent: number;
  /** When that was read: ms on the detector's clock, or a Date. */
  readonly updateTime: number | Date;
}

/** How a detector reads its endpoints and the time. */
export interface DetectorOptions<E> {
  /** Name of this detector in `typedName` and in warnings. Default "utilization-detector". */
  readonly name?: string | undefined;
  /** Now, in ms, on the clock of the `updateTime`s. Default `Date.now`. */
  readonly clock?: (() => number) | undefined;
  /** Is told about staleness (at most once per 30 s) and odd settings. Default: nobody. */
  readonly logger?: Logger | undefined;
  /** Reads an endpoint's metrics. Default: its property `metrics`. */
  readonly metricsOf?: ((endpoint: E) => EndpointMetrics | null | undefined) | undefined;
  /**
   * Thresholds and weight of an endpoint that differs from the config. A value outside its range
   * is not used, and the logger is told once.
   */
  readonly thresholdsOf?: ((endpoint: E) => Thresholds | null | undefined) | undefined;
}

/** A detector seen as a source of saturation; `notify` tells subscribers that endpoints changed. */
export interface DetectorSource<E> extends SaturationSource<E> {
  notify(): void;
}

/** The type under which this detector is configured. */
export const UTILIZATION_DETECTOR = "utilization-detector";

/**
 * Says how saturated a list of endpoints is, and which of them may take the next request.
 *
 * @example
 * const detector = new UtilizationDetector({ queueDepthThreshold: 5 });
 * const { saturation, candidates } = detector.evaluate(endpoints);
 */
export class UtilizationDetector<E = { readonly metrics?: EndpointMetrics | null }> {
  readonly typedName: { readonly type: typeof UTILIZATION_DETECTOR; readonly name: string };
  /** The config with its defaults; frozen. */
  readonly config: ResolvedConfig;
  readonly #clock: () => number;
  readonly #metricsOf: (endpoint: E) => EndpointMetrics | null | undefined;
  readonly #thresholdsOf: ((endpoint: E) => Thresholds | null | undefined) | undefined;
  readonly #logger: Logger | undefined;
  readonly #warner: StalenessWarner;
  #warnedThresholds = false;

  /** @throws ConfigError with every fault of `config`. */
  constructor(config?: DetectorConfig, options: DetectorOptions<E> = {}) {
    const name = options.name ?? UTILIZATION_DETECTOR;
    this.typedName = Object.freeze({ type: UTILIZATION_DETECTOR, name });
    this.config = resolveConfig(config, options.logger);
    this.#clock = options.clock ?? Date.now;
    this.#metricsOf = options.metricsOf ?? metricsProperty;
    this.#thresholdsOf = options.thresholdsOf;
    this.#logger = options.logger;
    this.#warner = new StalenessWarner(options.logger, name);
  }

  /**
   * A detector from its JSON parameters, as text or as a value.
   *
   * @throws ConfigError when the text is not JSON, or with every fault of the config.
   */
  static fromJSON<E = { readonly metrics?: EndpointMetrics | null }>(
    name: string,
    json: unknown,
    options: Omit<DetectorOptions<E>, "name"> = {},
  ): UtilizationDetector<E> {
    const value = typeof json === "string" ? parseJSON(json) : json;
    // resolveConfig checks every key and value of what is only claimed to be a config here.
    return new UtilizationDetector<E>((value ?? {}) as DetectorConfig, { ...options, name });
  }

  /** Saturation of the endpoints under the configured aggregation; 1 for none of them. */
  saturation(endpoints: readonly E[]): number {
    return this.#judge(endpoints, (kernel) => {
      return this.#saturationIn(kernel);
    });
  }

  /** The endpoints that may take a request, in order; the very array given when none passes. */
  filter(endpoints: E[]): E[];
  filter(endpoints: readonly E[]): readonly E[];
  filter(endpoints: readonly E[]): readonly E[] {
    return this.#judge(endpoints, (kernel) => {
      return candidatesIn(kernel, endpoints);
    });
  }

  /** Both answers and what they rest on. */
  evaluate(endpoints: readonly E[]): Evaluation<E> {
    return this.#judge(endpoints, (kernel, n) => {
      const { result } = kernel;
      return {
        saturation: this.#saturationIn(kernel),
        candidates: candidatesIn(kernel, endpoints),
        failedOpen: result[RESULT.candidates] === 0,
        scores: kernel.effective.slice(0, n),
        ...readResult(result),
      };
    });
  }

  /**
   * This detector over the endpoints that `list` gives at each call, as a `SaturationSource`.
   * Call `notify` on it after the endpoints' metrics changed, so that subscribers hear of it.
   */
  over(list: () => readonly E[]): DetectorSource<E> {
    const subscribers = new Subscribers();
    return {
      saturation: () => this.saturation(list()),
      evaluate: () => this.evaluate(list()),
      subscribe: (listener) => subscribers.add(listener),
      notify: () => subscribers.notify(),
    };
  }

  /** Judges the endpoints in a kernel that is nobody else's for the time of `read`. */
  #judge<R>(endpoints: readonly E[], read: (kernel: Kernel, n: number) => R): R {
    const n = endpoints.length;
    const kernel = borrowKernel(n);
    try {
      kernel.configure(this.config);
      const now = this.#clock();
      this.#pack(kernel.rows, endpoints, n);
      if (this.#thresholdsOf === undefined) kernel.writeSharedLimits(this.config, n);
      else this.#packLimits(kernel, endpoints, n, this.#thresholdsOf);
      kernel.evaluate(n, now);
      if (kernel.result[RESULT.fresh] !== n) this.#warn(kernel, n, now);
      return read(kernel, n);
    } finally {
      returnKernel(kernel);
    }
  }

  #pack(rows: Float64Array, endpoints: readonly E[], n: number): void {
    const metricsOf = this.#metricsOf;
    for (let i = 0, at = 0; i < n; i++, at += ROW) {
      const metrics = metricsOf(endpoints[i] as E); // i is below the length
      if (metrics === null || metrics === undefined) {
        rows[at + UPDATE_TIME] = Number.NaN;
        continue;
      }
      const { waitingQueueSize, kvCacheUsagePercent, updateTime } = metrics;
      // Only numbers are readings: a Float64Array would turn null into 0 and "5" into 5.
      rows[at + WAITING] = typeof waitingQueueSize === "number" ? waitingQueueSize : Number.NaN;
      rows[at + KV] = typeof kvCacheUsagePercent === "number" ? kvCacheUsagePercent : Number.NaN;
      rows[at + UPDATE_TIME] = typeof updateTime === "number" ? updateTime : toTime(updateTime);
    }
  }

  #packLimits(
    kernel: ScratchKernel,
    endpoints: readonly E[],
    n: number,
    thresholdsOf: (endpoint: E) => Thresholds | null | undefined,
  ): void {
    kernel.forgetLimits();
    for (let i = 0; i < n; i++) {
      this.#packOwn(kernel.rows, i, thresholdsOf(endpoints[i] as E)); // i is below the length
    }
  }

  #packOwn(rows: Float64Array, i: number, own: Thresholds | null | undefined): void {
    const { queueDepthThreshold, kvCacheUtilThreshold, headroom } = this.config;
    const q = own?.queueDepthThreshold ?? queueDepthThreshold;
    const k = own?.kvCacheUtilThreshold ?? kvCacheUtilThreshold;
    const h = own?.headroom ?? headroom;
    const weight = own?.weight ?? 1;
    // Number.isFinite is false for what is no number.
    const qRight = Number.isInteger(q) && q > 0;
    const kRight = Number.isFinite(k) && k > 0 && k <= 1;
    const hRight = Number.isFinite(h) && h >= 0;
    const weightRight = Number.isFinite(weight) && weight > 0;
    if (!(qRight && kRight && hRight && weightRight)) this.#warnThresholds(own);
    writeLimits(
      rows,
      i,
      qRight ? q : queueDepthThreshold,
      kRight ? k : kvCacheUtilThreshold,
      hRight ? h : headroom,
    );
    rows[i * ROW + WEIGHT] = weightRight ? weight : 1;
  }

  /** Once, since thresholds rarely change and this is the request path. */
  #warnThresholds(own: unknown): void {
    if (this.#warnedThresholds) return;
    this.#warnedThresholds = true;
    this.#logger?.warn(
      `${this.typedName.name}: thresholdsOf gave ${describeValue(own)}; what is outside its ` +
        "range was not used (queueDepthThreshold integer > 0, kvCacheUtilThreshold in (0, 1], " +
        "headroom >= 0, weight > 0)",
    );
  }

  /** Says what is not fresh, and whether the times look as if they were from another clock. */
  #warn(kernel: Kernel, n: number, now: number): void {
    if (this.#logger === undefined) return;
    const { stale, unusable } = readResult(kernel.result);
    this.#warner.noteStale(now, stale, unusable, n, this.config.metricsStalenessThreshold);
    for (let i = 0; i < n; i++) {
      const time = kernel.rows[i * ROW + UPDATE_TIME] ?? Number.NaN;
      if (!StalenessWarner.isFarOff(now, time)) continue;
      this.#warner.noteTime(now, time);
      return;
    }
  }

  #saturationIn(kernel: Kernel): number {
    return kernel.result[RESULT[this.config.aggregation]] ?? 1;
  }
}

function candidatesIn<E>(kernel: Kernel, endpoints: readonly E[]): readonly E[] {
  const count = kernel.result[RESULT.candidates] ?? 0;
  if (count === 0) return endpoints;
  const picked = new Array<E>(count);
  for (let i = 0; i < count; i++) picked[i] = endpoints[kernel.candidates[i] ?? 0] as E;
  return picked;
}

function metricsProperty(endpoint: unknown): EndpointMetrics | null | undefined {
  return (endpoint as { metrics?: EndpointMetrics | null } | null | undefined)?.metrics;
}

function toTime(value: unknown): number {
  return value instanceof Date ? value.getTime() : Number.NaN;
}

function parseJSON(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ConfigError([{ path: "", value: text, rule: `must be JSON (${why})` }]);
  }
}
