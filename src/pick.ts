// The words of `pick` and `lease`: what a caller may ask for, and what it is told of the choice.

import type { Endpoint } from "./endpoint";

/** What an endpoint must pass to be picked, besides having a fresh reading. */
export type PickFilter = "limits" | "kv" | "none";

/** A set of endpoint ids. */
export type EndpointIds = ReadonlySet<string> | readonly string[];

/** One request that looks for an endpoint. */
export interface LeaseRequest {
  /** Its prompt in tokens, >= 0, as well as the caller can tell. Default: the mean so far. */
  readonly tokens?: number | undefined;
  /** An endpoint that wins while it is a candidate, for affinity. A full one never does. */
  readonly prefer?: string | undefined;
  /** Endpoints that are out of the question, such as those that have just refused it. */
  readonly exclude?: EndpointIds | undefined;
  /** The only endpoints that come into question. */
  readonly among?: EndpointIds | undefined;
  /**
   * The caller's own judgement of an endpoint that passed, given its rank: the least wins, NaN
   * and Infinity never do.
   */
  readonly score?: ((endpoint: Endpoint, rank: number) => number) | undefined;
}

/**
 * Why an endpoint was picked:
 * - `least-rank`: the least work lies before the request there;
 * - `preferred`: it was asked for, and is a candidate;
 * - `over-queue-limit`: the least work too, but its queue is at its limit;
 * - `failed-open`: nobody passes, and it is the least bad.
 */
export type PickReason = "least-rank" | "preferred" | "over-queue-limit" | "failed-open";

/** Where a request should go. */
export interface Pick {
  readonly endpoint: Endpoint;
  /** Work that lies before the request; 1 = an idle endpoint of the pool's median pace. */
  readonly rank: number;
  /** Nobody passed the filter. */
  readonly failedOpen: boolean;
  readonly reason: PickReason;
}

/** Whether an id is in a set that may be absent. */
export function hasId(ids: EndpointIds, id: string): boolean {
  return Array.isArray(ids) ? ids.includes(id) : (ids as ReadonlySet<string>).has(id);
}
