// One request from its arrival to its end: waits at the router, goes over the wire, runs, and comes back;
// may be tried again elsewhere, and may be given up by its client.

import type { Ticket } from "../flow/ticket";
import type { Lease } from "../lease";
import type { Member } from "./fleet";
import type { Job } from "./job";
import type { TrafficRequest } from "./traffic";

/** Where a request is. */
export type FlightState = "waiting" | "sent" | "completed" | "rejected" | "timed-out";

/** Where a request is, and what was seen of it. Times in ms. */
export class Flight {
  readonly request: TrafficRequest;
  state: FlightState = "waiting";
  ticket: Ticket | undefined;
  lease: Lease | undefined;
  member: Member | undefined;
  job: Job | undefined;
  /** Endpoints that failed it. */
  readonly failedOn = new Set<string>();
  /** Its present try; what an earlier one still has under way does not count. */
  attempt = 0;
  /** Its engine has made its first token. */
  hasToken = false;
  /** When its first byte reached the router; NaN: not yet. */
  firstByteAt = Number.NaN;
  endedAt = Number.NaN;

  constructor(request: TrafficRequest) {
    this.request = request;
  }

  get isOver(): boolean {
    return this.state !== "waiting" && this.state !== "sent";
  }
}
