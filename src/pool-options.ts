// How a pool is set up, and the handle of a reading. Types only.

import type { Logger } from "./logger";
import type { PickFilter } from "./pick";
import type { Projection } from "./projection";
import type { Sample } from "./sample";

/** How a pool is set up. */
export interface PoolOptions {
  /** Endpoints to make room for at the start. Default 64; the pool grows by itself. */
  readonly capacity?: number | undefined;
  /** Now, in ms, on any clock that does not go backwards. Default `performance.now`. */
  readonly clock?: (() => number) | undefined;
  /** Is told about staleness (at most once per 30 s) and odd settings. Default: nobody. */
  readonly logger?: Logger | undefined;
  /** Numbers in [0, 1) that break ties. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** What an endpoint must pass to be picked. Default "kv". */
  readonly filter?: PickFilter | undefined;
  /** Whether samples are corrected by what this router has sent. Default "live". */
  readonly projection?: Projection | undefined;
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
