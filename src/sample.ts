// The shape in which telemetry travels from a reader to a pool. Types only: this is the seam between
// `telemetry/`, which makes samples, and the core, which judges them.

/**
 * One reading of an endpoint. `null` and `undefined` mean "the source does not say", never zero.
 *
 * @example
 * const sample: Sample = { waitingQueueSize: 3, kvCacheUsagePercent: 0.42, runningRequests: 12 };
 */
export interface Sample {
  /** Requests that wait for a place in the batch, >= 0. Unknown makes the sample unusable. */
  readonly waitingQueueSize: number | null | undefined;
  /**
   * Share of the KV cache in use, a fraction 0..1 whatever the name says. `null`: this engine has no
   * such reading, so the queue alone decides. `undefined` or NaN: unusable.
   */
  readonly kvCacheUsagePercent: number | null | undefined;
  /** Requests in the running batch, >= 0. */
  readonly runningRequests?: number | null | undefined;
  /** Size of the KV cache in tokens, > 0. */
  readonly kvCapacityTokens?: number | null | undefined;
  /** How many engines this reading stands for (data parallel ranks, models), >= 1. Default 1. */
  readonly engines?: number | null | undefined;
  /** The longest queue of any single engine behind this endpoint, in requests. */
  readonly worstEngineQueueSize?: number | null | undefined;
  /** When the reading was started, on the pool's own clock, in ms. Default: now. */
  readonly updateTime?: number | null | undefined;
}
