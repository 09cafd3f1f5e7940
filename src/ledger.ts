// What a router knows of its own requests on one endpoint: how many, how large, how far, and what of
// that the last sample had seen already. The projection is computed from here; nothing here decides.

import type { Lease } from "./lease";
import { stableExp } from "./stable-math";

/** What of an endpoint's own requests was known when a reading began. */
export interface Mark {
  /** When the reading began, on the pool's clock. */
  readonly time: number;
  /** Leases up to this order had been sent. */
  readonly order: number;
  readonly own: number;
  readonly unstarted: number;
  readonly tokens: number;
}

/** Samples without any load after which a gauge over its limit is doubted. */
export const IDLE_SAMPLES = 3;

/** Time over which the rate of starts is averaged, in ms. */
const RATE_WINDOW_MS = 2000;
/** A shortest time to first byte is believed for one to two of these, in ms. */
const SHORTEST_WINDOW_MS = 30_000;

/** The counts of one endpoint. Owned by the `Leases` of its pool, which alone writes them. */
export class Ledger {
  /** Live leases. */
  own = 0;
  /** Live leases of which nothing has been seen. */
  unstarted = 0;
  /** Prompt tokens of live leases. */
  tokens = 0;
  /** Prompt tokens of live leases of which nothing has been seen. */
  pending = 0;
  /** The oldest and youngest of the unstarted. */
  oldest: Lease | undefined;
  youngest: Lease | undefined;

  /** The counts when the last sample's reading began, see `Mark`. */
  markTime = 0;
  markOrder = 0;
  markOwn = 0;
  markUnstarted = 0;
  markTokens = 0;
  /** Unstarted leases that had been sent by then. */
  unstartedBefore = 0;
  /** Live leases that have started since then: their delays against it, summed, in ms. */
  lateStarts = 0;
  /** Ended leases that had started before then: how long they had been generating by then, in ms. */
  freedMs = 0;

  /** Consecutive samples without waiting, running or own requests. */
  idleSamples = 0;

  /** Time that starts took without a queue, in ms, summed with a decay of RATE_WINDOW_MS. */
  #startTimes = 0;
  #startTimesAt = 0;
  #shortest = Number.POSITIVE_INFINITY;
  #shortestBefore = Number.POSITIVE_INFINITY;
  #shortestSince = 0;

  /** Whether the projection can differ from the sample at all. */
  get hasNews(): boolean {
    return this.own > 0 || this.markOwn > 0 || this.idleSamples >= IDLE_SAMPLES;
  }

  /** Live leases that have started, or are presumed to have. */
  get started(): number {
    return this.own - this.unstarted;
  }

  /** The counts now, for a reading that begins at `time` when `order` leases have been sent. */
  markNow(time: number, order: number): Mark {
    const { own, unstarted, tokens } = this;
    return { time, order, own, unstarted, tokens };
  }

  /** A sample counts from now on; its reading began at `mark`. */
  settle(mark: Mark): void {
    this.markTime = mark.time;
    this.markOrder = mark.order;
    this.markOwn = mark.own;
    this.markUnstarted = mark.unstarted;
    this.markTokens = mark.tokens;
    let after = 0;
    for (let lease = this.youngest; lease !== undefined && lease.order > mark.order; after++) {
      lease = lease.older;
    }
    this.#clearSince(this.unstarted - after);
  }

  /**
   * As `settle` for a sample that was read at `time`, without garbage. Requests that were sent
   * since and have not started are known; of others sent since, the sample's age hides that.
   */
  settleAt(time: number, order: number): void {
    this.markTime = time;
    this.markOrder = order;
    this.markOwn = this.own;
    this.markUnstarted = this.unstarted;
    this.markTokens = this.tokens;
    for (let lease = this.youngest; lease !== undefined && lease.sentAt > time; ) {
      this.markOrder = lease.order - 1;
      this.markOwn--;
      this.markUnstarted--;
      this.markTokens -= lease.tokens;
      lease = lease.older;
    }
    this.#clearSince(this.markUnstarted);
  }

  #clearSince(unstartedBefore: number): void {
    this.unstartedBefore = unstartedBefore;
    this.lateStarts = 0;
    this.freedMs = 0;
  }

  /** Notes a start that was seen. @param firstByteMs since the request was sent. */
  countStart(now: number, firstByteMs: number): void {
    if (now - this.#shortestSince >= SHORTEST_WINDOW_MS) {
      this.#shortestBefore = this.#shortest;
      this.#shortest = Number.POSITIVE_INFINITY;
      this.#shortestSince = now;
    }
    this.#shortest = Math.min(this.#shortest, firstByteMs);
    this.#addStartTime(now, Math.min(this.#shortest, this.#shortestBefore));
  }

  /** Notes a start that was only presumed. @param afterMs since the request was sent. */
  countPresumedStart(now: number, afterMs: number): void {
    this.#addStartTime(now, afterMs);
  }

  /**
   * How many requests are unstarted here without any queue, by Little's law: the rate of starts
   * times the time that a start takes without a queue. 0 before the first start.
   */
  unstartedWithoutQueue(now: number): number {
    return this.#decayed(now) / RATE_WINDOW_MS;
  }

  #addStartTime(now: number, ms: number): void {
    this.#startTimes = this.#decayed(now) + ms;
    this.#startTimesAt = now;
  }

  #decayed(now: number): number {
    return this.#startTimes * stableExp(-Math.max(0, now - this.#startTimesAt) / RATE_WINDOW_MS);
  }
}
