// What a decision looks like from outside, and the seam between those who judge a pool (detectors,
// pools) and those who act on it (flow control, dashboards). Types, and the one-line rules on them.

import type { Aggregation } from "./config";
import { RESULT } from "./kernel";

/** One judgement of a pool. */
export interface Evaluation<E = unknown> {
  /** How loaded the pool is under the configured aggregation; 1 = at its ideal; never NaN. */
  readonly saturation: number;
  /** Endpoints that may take the next request, in the given order. */
  readonly candidates: readonly E[];
  /** Nobody passed, so `candidates` is everybody (R8). */
  readonly failedOpen: boolean;
  /** Score of each endpoint, in the given order; 1 where it is not fresh (R3). */
  readonly scores: Float64Array;
  /** How many endpoints have a reading that counts (R2). */
  readonly fresh: number;
  /** How many have a reading that is too old, or from the future. */
  readonly stale: number;
  /** How many have no reading that could be used (R1). */
  readonly unusable: number;
  /** Mean of the scores. */
  readonly mean: number;
  /** Mean of `min(score, 1)`: the share of the ideal load that is in use. */
  readonly capped: number;
  /** Mean of the scores by weight. */
  readonly weighted: number;
  /** The highest score. */
  readonly max: number;
  /** When time alone will change this judgement, on the clock that was read; Infinity: never. */
  readonly validUntil: number;
}

/** What keeps a pool from taking more. */
export interface GateReason {
  /**
   * The resource that is short. `telemetry`: there is no fresh reading to decide on; `held-off`: all
   * endpoints have just refused a request.
   */
  readonly resource: "queue" | "kv" | "telemetry" | "requests" | "tokens" | "held-off";
  /**
   * How much of it is in use: requests, a fraction, the age of the reading in ms, or tokens; of
   * `held-off`, the ms until one may be asked again.
   */
  readonly value: number;
  /** From which value on it is short. */
  readonly limit: number;
  /** The endpoint that is nearest to taking more. */
  readonly endpoint?: string | undefined;
}

/** Ends a subscription. Calling it again does nothing. */
export type Unsubscribe = () => void;

/** Something that knows how saturated a pool is. */
export interface SaturationSource<E = unknown> {
  /** Saturation now. @param aggregation default: the configured one. */
  saturation(aggregation?: Aggregation): number;
  /** The whole judgement now. */
  evaluate(): Evaluation<E>;
  /** Calls `listener` after changes, many changes at once; not for the passing of time. */
  subscribe(listener: () => void): Unsubscribe;
}

/**
 * R9: closed when `saturation >= ceiling`.
 *
 * @param ceiling a saturation; 1 is the pool's ideal load.
 */
export function isGateClosed(saturation: number, ceiling: number): boolean {
  return saturation >= ceiling;
}

/** The result block as the fields of an evaluation. */
export function readResult(
  result: Float64Array,
): Pick<
  Evaluation,
  "fresh" | "stale" | "unusable" | "mean" | "capped" | "weighted" | "max" | "validUntil"
> {
  // The block is always 16 long, so the defaults are never used.
  const at = (index: number) => result[index] ?? Number.NaN;
  return {
    fresh: at(RESULT.fresh),
    stale: at(RESULT.stale),
    unusable: at(RESULT.unusable),
    mean: at(RESULT.mean),
    capped: at(RESULT.capped),
    weighted: at(RESULT.weighted),
    max: at(RESULT.max),
    validUntil: at(RESULT.validUntil),
  };
}
