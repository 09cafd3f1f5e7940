// What the page knows: the last state of everything, put together from events.

import { DROPS_KEPT, type Drop, HISTORY_STEPS, type HistoryPoint } from "../../dashboard/journal";
import { Ring } from "../../dashboard/ring";
import {
  type About,
  type FullEvent,
  type GateView,
  type Head,
  type Row,
  type ShownState,
  STATES,
  type UpdateEvent,
} from "../../dashboard/wire";
import { shortNames } from "./text";

/** An endpoint as the page shows it. */
export interface ShownEndpoint {
  readonly id: string;
  /** What tells its id from all others. */
  readonly shortName: string;
  readonly labels: string;
  readonly weight: number;
  readonly queueLimit: number;
  readonly kvLimit: number;
  readonly kvCapacityTokens: number | null;
  readonly engines: number;
  readonly state: ShownState;
  readonly reason: string;
  readonly score: number;
  readonly projectedWaiting: number | null;
  readonly projectedKv: number | null;
  readonly waiting: number | null;
  readonly kv: number | null;
  readonly running: number | null;
  readonly leases: number;
  readonly unstarted: number;
  readonly others: number;
  readonly rank: number;
  readonly slow: number;
  readonly ageS: number | null;
  readonly unusableReports: number;
  readonly lastFault: string;
}

/** The state of everything. */
export class Model {
  head: Head | undefined;
  endpoints: ShownEndpoint[] = [];
  gates: readonly GateView[] = [];
  history = new Ring<HistoryPoint>(HISTORY_STEPS);
  drops = new Ring<Drop>(DROPS_KEPT);
  #about: readonly About[] = [];
  #names: readonly string[] = [];

  /** Everything anew, perhaps of another router than before. */
  takeFull({ head, about, rows, gates, history, drops }: FullEvent): void {
    this.head = head;
    this.gates = gates;
    this.#about = about;
    this.#names = shortNames(about.map(([id]) => id));
    this.endpoints = rows.map((row, i) => this.#endpoint(i, row));
    this.history = new Ring(HISTORY_STEPS);
    this.history.catchUp(history);
    this.drops = new Ring(DROPS_KEPT);
    this.drops.catchUp(drops);
  }

  /** What has changed. */
  takeUpdate({ head, rows, gates, history, drops }: UpdateEvent): void {
    this.head = head;
    if (gates !== undefined) this.gates = gates;
    for (const [i, row] of rows) this.endpoints[i] = this.#endpoint(i, row);
    this.history.catchUp(history);
    this.drops.catchUp(drops);
  }

  #endpoint(i: number, row: Row): ShownEndpoint {
    const [id, labels, weight, queueLimit, kvLimit, kvCapacityTokens, engines] = this.#about[
      i
    ] as About; // rows and abouts come together
    return {
      ...{ id, labels, weight, queueLimit, kvLimit, kvCapacityTokens, engines },
      shortName: this.#names[i] ?? id,
      state: STATES[row[0]] ?? "unusable",
      reason: row[1] === 0 ? "candidate" : row[1].replace(/^ok\b/, "candidate"),
      score: row[2],
      projectedWaiting: row[3],
      projectedKv: row[4],
      waiting: row[5],
      kv: row[6],
      running: row[7],
      leases: row[8],
      unstarted: row[9],
      others: row[10],
      rank: row[11],
      slow: row[12],
      ageS: row[13],
      unusableReports: row[14],
      lastFault: row[15] === 0 ? "" : row[15],
    };
  }
}

/** Which part of an endpoint's requests is this router's own, 0 to 1. */
export function ownShare({ leases, others }: ShownEndpoint): number {
  return leases === 0 ? 0 : leases / (leases + others);
}
