// A lease: one request that was sent to an endpoint and has not ended. The caller sees a handle with
// three verbs; the counting is done by the ledger that the lease was taken from.

import type { Endpoint } from "./endpoint";

/** What a caller may say when a request ends. */
export interface ReleaseOptions {
  /** Tokens that the answer had; > 0. Lets the pool learn how fast each endpoint generates. */
  readonly outputTokens?: number | undefined;
  /** It ended without an answer (caller gone, connection failed): nothing is learned from it. */
  readonly failed?: boolean | undefined;
}

/** Whoever counts leases. Kept narrow so that a lease cannot reach further. */
export interface LeaseKeeper {
  leaseStarted(lease: Lease): void;
  leaseEnded(lease: Lease, options: ReleaseOptions): void;
}

const NO_OPTIONS: ReleaseOptions = {};

/**
 * One request on its way. Every verb may be called again without effect, in any order.
 *
 * @example
 * using lease = pool.lease({ tokens: 800 });
 * // send to lease.endpoint.id; at the first body byte: lease.started()
 */
export class Lease {
  /** Where the request goes. */
  readonly endpoint: Endpoint;
  /** Prompt tokens of the request. @internal */
  readonly tokens: number;
  /** When it was sent, on the pool's clock. @internal */
  readonly sentAt: number;
  /** Its place in the order of all leases of the pool. @internal */
  readonly order: number;
  /** How much work lay before it when it was sent, see `rank`. @internal */
  readonly work: number;
  /** When its first byte came; NaN: not yet, or only presumed. @internal */
  startedAt = Number.NaN;
  /** @internal */
  state: LeaseState = LeaseState.Sent;
  /** Neighbours among the endpoint's leases that have not started, oldest first. @internal */
  older: Lease | undefined;
  /** @internal */
  younger: Lease | undefined;
  /** Neighbours among the pool's. @internal */
  olderInPool: Lease | undefined;
  /** @internal */
  youngerInPool: Lease | undefined;
  readonly #keeper: LeaseKeeper;

  /** @internal */
  constructor(
    keeper: LeaseKeeper,
    endpoint: Endpoint,
    tokens: number,
    sentAt: number,
    order: number,
    work: number,
  ) {
    this.#keeper = keeper;
    this.endpoint = endpoint;
    this.tokens = tokens;
    this.sentAt = sentAt;
    this.order = order;
    this.work = work;
  }

  /** The first body byte of a streamed answer has come. Do not call it for other answers. */
  started(): void {
    this.#keeper.leaseStarted(this);
  }

  /** The request has ended, in whatever way. Gives everything back at once. */
  release(options?: ReleaseOptions): void {
    this.#keeper.leaseEnded(this, options ?? NO_OPTIONS);
  }

  /** As `release`, for `using`. */
  [Symbol.dispose](): void {
    this.release();
  }
}

/** How far a request has come. @internal */
export enum LeaseState {
  /** Nothing of its answer has been seen. */
  Sent,
  /** It counts as started, though no byte was reported. */
  Presumed,
  /** Its first byte was reported. */
  Started,
  /** It has ended. */
  Ended,
}
