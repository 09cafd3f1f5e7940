// A request that waits, and the ways in which its waiting ends.

import type { GateReason } from "../evaluation";
import type { Lease } from "../lease";
import type { LeaseRequest } from "../pick";
import type { Flow } from "./band";

/**
 * Why a request was not admitted:
 * - `saturated`: there is no room to wait in (429);
 * - `ttl-expired`: it waited longer than its time to live (429);
 * - `no-endpoints`: there is nothing it could go to (503);
 * - `shutting-down`: the controller is closing (503);
 * - `cancelled`: its caller is gone.
 */
export type RefusalReason =
  | "saturated"
  | "ttl-expired"
  | "no-endpoints"
  | "shutting-down"
  | "cancelled";

/** A refusal, and what there is to say of it. */
export interface Refusal {
  readonly reason: RefusalReason;
  /** HTTP status; undefined for `cancelled`, whose caller is gone. */
  readonly status: 429 | 503 | undefined;
  /** Seconds after which trying again makes sense, 1 to 30; undefined for `cancelled`. */
  readonly retryAfterS: number | undefined;
  /** What keeps the gate shut, where the source can tell. */
  readonly gate: GateReason | undefined;
  /** How long it waited, in ms. */
  readonly waitedMs: number;
}

/** Told exactly once how the waiting ended. */
export interface TicketOutcome {
  /** @param lease undefined when the source has no leases. */
  admitted(lease: Lease | undefined, waitedMs: number): void;
  refused(refusal: Refusal): void;
  /** Its own `score` threw, or the source could not judge it. It counts as `cancelled`. */
  failed(error: unknown): void;
}

/** What a request brings. */
export interface TicketRequest extends LeaseRequest {
  /** Index of its band, 0 is the highest. */
  readonly band: number;
  /** Whose request it is. */
  readonly flow: string;
  /** By when it should be served, on the controller's clock; orders requests of one flow. */
  readonly deadline?: number | undefined;
  /** How long it may wait, in ms. */
  readonly ttlMs: number;
}

/** One waiting request. Owned by the scheduler. */
export class Ticket {
  readonly request: TicketRequest;
  readonly outcome: TicketOutcome;
  readonly enqueuedAt: number;
  readonly expiresAt: number;
  /** Its place in the order of arrival, which breaks every tie. */
  readonly order: number;
  /** Where it waits; undefined once it does not. @internal */
  flow: Flow | undefined;
  /** @internal */
  older: Ticket | undefined;
  /** @internal */
  younger: Ticket | undefined;
  /** @internal */
  deadlinePlace = -1;
  /** @internal */
  expiryPlace = -1;
  /** The round in which it could not be placed. @internal */
  blockedIn = -1;

  constructor(request: TicketRequest, outcome: TicketOutcome, now: number, order: number) {
    this.request = request;
    this.outcome = outcome;
    this.enqueuedAt = now;
    this.expiresAt = now + request.ttlMs;
    this.order = order;
  }

  get isWaiting(): boolean {
    return this.flow !== undefined;
  }
}
