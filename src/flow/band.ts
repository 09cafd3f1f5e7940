// A priority band: round robin over its flows, and within a flow by deadline, then first come, first
// served. A flow with nothing waiting leaves no trace, so that millions of tenant names cost nothing.

import { Heap } from "./heap";
import type { Ticket } from "./ticket";

/** So many requests of a flow that have nowhere to go are looked past. */
const BLOCKED_AT_MOST = 32;

/** The waiting requests of one flow. */
export class Flow {
  readonly name: string;
  /** Neighbours in the band's ring. */
  next: Flow;
  previous: Flow;
  size = 0;
  #oldest: Ticket | undefined;
  #youngest: Ticket | undefined;
  readonly #deadlines = new Heap<Ticket>(isSooner, (ticket, place) => {
    ticket.deadlinePlace = place;
  });

  constructor(name: string) {
    this.name = name;
    this.next = this;
    this.previous = this;
  }

  /**
   * Who is next: the nearest deadline, else the oldest that is not blocked in this round. Behind
   * too many that are blocked, the flow waits.
   */
  first(round: number): Ticket | undefined {
    const urgent = this.#deadlines.first;
    if (urgent !== undefined && urgent.blockedIn !== round) return urgent;
    let ticket = this.#oldest;
    for (let i = 0; i < BLOCKED_AT_MOST && ticket?.blockedIn === round; i++)
      ticket = ticket.younger;
    return ticket?.blockedIn === round ? undefined : ticket;
  }

  add(ticket: Ticket): void {
    this.size++;
    ticket.flow = this;
    if (ticket.request.deadline !== undefined) {
      this.#deadlines.add(ticket);
      return;
    }
    ticket.older = this.#youngest;
    if (this.#youngest === undefined) this.#oldest = ticket;
    else this.#youngest.younger = ticket;
    this.#youngest = ticket;
  }

  remove(ticket: Ticket): void {
    this.size--;
    ticket.flow = undefined;
    if (ticket.deadlinePlace >= 0) {
      this.#deadlines.remove(ticket.deadlinePlace);
      return;
    }
    const { older, younger } = ticket;
    if (older === undefined) this.#oldest = younger;
    else older.younger = younger;
    if (younger === undefined) this.#youngest = older;
    else younger.older = older;
    ticket.older = ticket.younger = undefined;
  }
}

function isSooner(a: Ticket, b: Ticket): boolean {
  const [x = 0, y = 0] = [a.request.deadline, b.request.deadline];
  return x < y || (x === y && a.order < b.order);
}

/** The waiting requests of one band. */
export class Band {
  size = 0;
  readonly #flows = new Map<string, Flow>();
  /** The flow whose turn it is. */
  #turn: Flow | undefined;

  /** How many flows have requests waiting. */
  get flows(): number {
    return this.#flows.size;
  }

  add(ticket: Ticket): void {
    const name = ticket.request.flow;
    let flow = this.#flows.get(name);
    if (flow === undefined) {
      flow = new Flow(name);
      this.#flows.set(name, flow);
      this.#join(flow);
    }
    flow.add(ticket);
    this.size++;
  }

  remove(ticket: Ticket): void {
    const { flow } = ticket;
    if (flow === undefined) return;
    flow.remove(ticket);
    this.size--;
    if (flow.size > 0) return;
    this.#flows.delete(flow.name);
    this.#leave(flow);
  }

  /** The request whose turn it is, of the first flow that has one that is not blocked. */
  peek(round: number): Ticket | undefined {
    let flow = this.#turn;
    for (let i = this.#flows.size; i > 0 && flow !== undefined; i--) {
      const ticket = flow.first(round);
      if (ticket !== undefined) {
        this.#turn = flow;
        return ticket;
      }
      flow = flow.next;
    }
    return undefined;
  }

  /** The flow's request was placed: the next flow has its turn. */
  pass(flow: Flow): void {
    this.#turn = flow.next;
  }

  /** A new flow comes behind all others. */
  #join(flow: Flow): void {
    const turn = this.#turn;
    if (turn === undefined) {
      this.#turn = flow;
      return;
    }
    flow.next = turn;
    flow.previous = turn.previous;
    turn.previous.next = flow;
    turn.previous = flow;
  }

  #leave(flow: Flow): void {
    if (flow.next === flow) {
      this.#turn = undefined;
      return;
    }
    flow.previous.next = flow.next;
    flow.next.previous = flow.previous;
    if (this.#turn === flow) this.#turn = flow.next;
  }
}
