// The engines of a scenario, the faults that befall them, and what only the simulation knows: what has
// been sent to each engine by all routers, which the oracle may see.

import { Engine } from "./engine";
import type { EventQueue } from "./events";
import type { FaultKind } from "./scenario";
import type { ResolvedEndpoint, ResolvedFault } from "./scenario-reader";

/** An engine with everything that is true of it. */
export class Member {
  readonly id: string;
  readonly index: number;
  readonly spec: ResolvedEndpoint;
  readonly engine: Engine;
  /** How many faults of each kind it has now; they may overlap. */
  readonly faults: Record<FaultKind, number> = { dies: 0, hangs: 0, slow: 0, "scrape-outage": 0 };
  /** Requests that any router has sent to it and that have not ended, wires included. */
  inFlight = 0;
  /** Prompt tokens of those of them whose first token is not there yet. */
  pendingTokens = 0;
  /** Requests sent, and of those sent in the present window. */
  sent = 0;
  sentInWindow = 0;
  window = 0;
  /** Requests that came back whole, and that failed. */
  completed = 0;
  failed = 0;

  constructor(index: number, spec: ResolvedEndpoint, queue: EventQueue) {
    this.id = spec.id;
    this.index = index;
    this.spec = spec;
    this.engine = new Engine(queue, spec.model);
  }
}

/** All engines. */
export class Fleet {
  readonly members: readonly Member[];
  readonly byId: ReadonlyMap<string, Member>;

  constructor(
    endpoints: readonly ResolvedEndpoint[],
    faults: readonly ResolvedFault[],
    queue: EventQueue,
  ) {
    this.members = endpoints.map((spec, i) => new Member(i, spec, queue));
    this.byId = new Map(this.members.map((member) => [member.id, member]));
    for (const fault of faults) {
      for (const i of fault.endpoints) {
        const member = this.members[i] as Member; // the reader has checked the numbers
        queue.at(fault.at, () => this.#begin(fault, member));
        if (fault.until < Number.POSITIVE_INFINITY) {
          queue.at(fault.until, () => this.#end(fault, member));
        }
      }
    }
  }

  #begin({ kind, factor }: ResolvedFault, member: Member): void {
    const { engine, faults } = member;
    faults[kind]++;
    if (kind === "dies" && faults.dies === 1) engine.die();
    else if (kind === "hangs") engine.hang();
    else if (kind === "slow") engine.slowness *= factor;
  }

  #end({ kind, factor }: ResolvedFault, member: Member): void {
    const { engine, faults } = member;
    faults[kind]--;
    if (kind === "slow") engine.slowness = faults.slow === 0 ? 1 : engine.slowness / factor;
    if (kind !== "dies" && kind !== "hangs") return;
    if (faults.dies > 0 || (faults.hangs > 0 && kind === "hangs")) return;
    engine.recover();
    if (faults.hangs > 0) engine.hang();
  }
}
