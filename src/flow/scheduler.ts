// The flow controller without promises or timers: who waits, who is next, who has waited too long.
// The controller drives it in real time, the simulator in virtual time.

import type { Aggregation } from "../config";
import type { Lease } from "../lease";
import type { LeasingSource } from "../max-of";
import { stableExp } from "../stable-math";
import { Band } from "./band";
import { Heap } from "./heap";
import {
  type Refusal,
  type RefusalReason,
  Ticket,
  type TicketOutcome,
  type TicketRequest,
} from "./ticket";

/** What is gated: saturation, and the leases that a dispatch takes. A pool is one. */
export type AdmissionSource = LeasingSource;

/** How much may wait, and when it is held back. */
export interface SchedulerOptions {
  /** Per band, highest first: how many requests may wait. */
  readonly bandLimits: readonly number[];
  /** Per band: the saturation at which it is held back. */
  readonly ceilings: readonly number[];
  /** How many requests may wait in all. */
  readonly maxRequests: number;
  readonly aggregation: Aggregation;
  /** Refuse what cannot be dispatched at once. */
  readonly shed: boolean;
}

/** What a band has done so far. */
export interface BandCounts {
  admitted: number;
  refused: Record<RefusalReason, number>;
  /** Waiting that ended, admitted or not, in ms. */
  waitedMs: number;
  longestWaitMs: number;
}

const STATUS: Readonly<Record<RefusalReason, 429 | 503 | undefined>> = {
  saturated: 429,
  "ttl-expired": 429,
  "no-endpoints": 503,
  "shutting-down": 503,
  cancelled: undefined,
};
/** Time over which the drain rate is averaged, in ms. */
const DRAIN_WINDOW_MS = 5000;
const SHORTEST_RETRY_S = 1;
const LONGEST_RETRY_S = 30;

/** Holds requests back while the pool is saturated. */
export class FlowScheduler {
  readonly #source: AdmissionSource;
  readonly #options: SchedulerOptions;
  readonly #bands: readonly Band[];
  readonly #counts: readonly BandCounts[];
  readonly #expiries = new Heap<Ticket>(isDueFirst, (ticket, place) => {
    ticket.expiryPlace = place;
  });
  #order = 0;
  #round = 0;
  #isPumping = false;
  #pumpAgain = false;
  #isClosing = false;
  #drained = 0;
  #drainedAt = 0;

  constructor(source: AdmissionSource, options: SchedulerOptions) {
    this.#source = source;
    this.#options = options;
    this.#bands = options.bandLimits.map(() => new Band());
    this.#counts = options.bandLimits.map(() => ({
      admitted: 0,
      refused: {
        saturated: 0,
        "ttl-expired": 0,
        "no-endpoints": 0,
        "shutting-down": 0,
        cancelled: 0,
      },
      waitedMs: 0,
      longestWaitMs: 0,
    }));
  }

  /** Requests that wait. */
  get waiting(): number {
    return this.#expiries.size;
  }

  /** Counts per band, highest first. */
  get counts(): readonly Readonly<BandCounts>[] {
    return this.#counts;
  }

  /** Requests and flows that wait in a band. */
  waitingIn(band: number): { readonly requests: number; readonly flows: number } {
    const { size = 0, flows = 0 } = this.#bands[band] ?? {};
    return { requests: size, flows };
  }

  /** When the next request's time to live ends; Infinity when none waits. */
  get nextExpiry(): number {
    return this.#expiries.first?.expiresAt ?? Number.POSITIVE_INFINITY;
  }

  /**
   * A request arrives: it is dispatched, waits, or is refused before this returns.
   *
   * @returns its ticket, for `cancel`.
   */
  enqueue(request: TicketRequest, outcome: TicketOutcome, now: number): Ticket {
    const ticket = new Ticket(request, outcome, now, ++this.#order);
    if (this.#isClosing) {
      this.#refuse(ticket, "shutting-down", now);
      return ticket;
    }
    this.#expire(now);
    const band = this.#bands[request.band] as Band; // callers check the band
    const isFull =
      band.size >= (this.#options.bandLimits[request.band] ?? 0) ||
      this.waiting >= this.#options.maxRequests;
    band.add(ticket);
    this.#expiries.add(ticket);
    this.pump(now);
    // In a full band, only what need not wait is let in.
    const mayWait = !this.#options.shed && !isFull && request.ttlMs > 0;
    if (ticket.isWaiting && !mayWait) {
      this.#remove(ticket);
      const reason = request.ttlMs > 0 ? "saturated" : "ttl-expired";
      this.#refuse(ticket, this.#isEmptyPool() ? "no-endpoints" : reason, now);
    }
    return ticket;
  }

  /**
   * Places a request that has not been enqueued, while nobody waits and its band's gate is open.
   *
   * @returns its lease; undefined when it has to be enqueued. Sources without leases give none.
   */
  tryPlace(request: TicketRequest, now: number): Lease | undefined {
    const { ceilings, aggregation } = this.#options;
    if (this.#isClosing || this.waiting > 0) return undefined;
    if (this.#source.saturation(aggregation) >= (ceilings[request.band] ?? 1)) return undefined;
    const lease = this.#source.lease?.(request);
    if (lease === undefined) return undefined;
    this.#drained = this.#drainedBy(now) + 1;
    this.#drainedAt = now;
    (this.#counts[request.band] as BandCounts).admitted++; // callers check the band
    return lease;
  }

  /** Its caller is gone: its place is free at once. False when it does not wait any more. */
  cancel(ticket: Ticket, now: number): boolean {
    if (!ticket.isWaiting) return false;
    this.#remove(ticket);
    this.#refuse(ticket, "cancelled", now);
    return true;
  }

  /** Dispatches while the gate is open, and refuses what has waited too long. */
  pump(now: number): void {
    // An outcome may call back into the scheduler; its changes are seen by one more round.
    this.#pumpAgain = true;
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      while (this.#pumpAgain) {
        this.#pumpAgain = false;
        this.#expire(now);
        this.#dispatch(now);
      }
    } finally {
      this.#isPumping = false;
    }
  }

  /** From now on nothing new is taken. */
  stop(): void {
    this.#isClosing = true;
  }

  /** Refuses everything that waits. */
  refuseAll(reason: RefusalReason, now: number): void {
    for (let ticket = this.#expiries.first; ticket !== undefined; ticket = this.#expiries.first) {
      this.#remove(ticket);
      this.#refuse(ticket, reason, now);
    }
  }

  /** Admissions per second, averaged over some seconds. */
  drainRate(now: number): number {
    return (this.#drainedBy(now) / DRAIN_WINDOW_MS) * 1000;
  }

  #dispatch(now: number): void {
    const { ceilings, aggregation } = this.#options;
    this.#round++;
    for (const [i, band] of this.#bands.entries()) {
      while (band.size > 0) {
        // A gated band gates those below it.
        if (this.#source.saturation(aggregation) >= (ceilings[i] ?? 1)) return;
        const ticket = band.peek(this.#round);
        if (ticket === undefined) break;
        if (!this.#place(ticket, band, now)) return;
      }
    }
  }

  /** Gives a request its lease. False when no other can be placed either. */
  #place(ticket: Ticket, band: Band, now: number): boolean {
    const { flow } = ticket;
    if (flow === undefined) return false;
    let lease: Lease | undefined;
    try {
      lease = this.#source.lease?.(ticket.request);
    } catch (error) {
      // A score of the caller's own threw: its fault, and nobody else's.
      this.#remove(ticket);
      this.#countWait(ticket, now);
      (this.#counts[ticket.request.band] as BandCounts).refused.cancelled++;
      ticket.outcome.failed(error);
      return true;
    }
    if (this.#source.lease !== undefined && lease === undefined) {
      if (this.#isEmptyPool()) return false;
      // Nothing it may go to is there now; others may have luck.
      ticket.blockedIn = this.#round;
      return true;
    }
    band.pass(flow);
    this.#remove(ticket);
    this.#drained = this.#drainedBy(now) + 1;
    this.#drainedAt = now;
    const waitedMs = this.#countWait(ticket, now);
    (this.#counts[ticket.request.band] as BandCounts).admitted++;
    ticket.outcome.admitted(lease, waitedMs);
    return true;
  }

  #expire(now: number): void {
    for (let ticket = this.#expiries.first; ticket !== undefined; ticket = this.#expiries.first) {
      // What has just come is tried once, even if it may not wait at all.
      if (ticket.expiresAt > now || ticket.enqueuedAt === now) return;
      this.#remove(ticket);
      this.#refuse(ticket, this.#isEmptyPool() ? "no-endpoints" : "ttl-expired", now);
    }
  }

  #remove(ticket: Ticket): void {
    this.#bands[ticket.request.band]?.remove(ticket);
    this.#expiries.remove(ticket.expiryPlace);
  }

  #refuse(ticket: Ticket, reason: RefusalReason, now: number): void {
    const waitedMs = this.#countWait(ticket, now);
    (this.#counts[ticket.request.band] as BandCounts).refused[reason]++;
    const status = STATUS[reason];
    const refusal: Refusal = {
      reason,
      status,
      retryAfterS: status === undefined ? undefined : this.#retryAfter(ticket.request.band, now),
      gate: status === 429 ? this.#source.closedBy?.(this.#options.aggregation) : undefined,
      waitedMs,
    };
    ticket.outcome.refused(refusal);
  }

  #countWait(ticket: Ticket, now: number): number {
    const waitedMs = Math.max(0, now - ticket.enqueuedAt);
    const counts = this.#counts[ticket.request.band] as BandCounts; // callers check the band
    counts.waitedMs += waitedMs;
    counts.longestWaitMs = Math.max(counts.longestWaitMs, waitedMs);
    return waitedMs;
  }

  /** Seconds until what waits in this band and above it is likely to have been served. */
  #retryAfter(band: number, now: number): number {
    let ahead = 1;
    for (let i = 0; i <= band; i++) ahead += this.#bands[i]?.size ?? 0;
    const seconds = Math.ceil(ahead / this.drainRate(now));
    return Math.min(LONGEST_RETRY_S, Math.max(SHORTEST_RETRY_S, seconds));
  }

  #drainedBy(now: number): number {
    return this.#drained * stableExp(-Math.max(0, now - this.#drainedAt) / DRAIN_WINDOW_MS);
  }

  #isEmptyPool(): boolean {
    return (this.#source.size ?? this.#source.evaluate().scores.length) === 0;
  }
}

function isDueFirst(a: Ticket, b: Ticket): boolean {
  return a.expiresAt < b.expiresAt || (a.expiresAt === b.expiresAt && a.order < b.order);
}
