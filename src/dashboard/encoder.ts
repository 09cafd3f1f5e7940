// Turns what the source says into events, as the difference to the event before. It is done once, however
// many pages listen.

import type { EndpointSnapshot, PoolSnapshot } from "../snapshot";
import type { Journal } from "./journal";
import { aboutOf, type GateView, rowOf } from "./wire";

/** A pool and its flow controllers at one instant. */
export interface DashboardView {
  readonly pool: PoolSnapshot;
  /** Endpoints that are held off. */
  readonly heldOff: readonly string[];
  readonly gates: readonly GateView[];
  /** Requests that are being served; undefined where nobody counts them. */
  readonly live?: number | undefined;
}

/** Where a dashboard looks. */
export interface DashboardSource {
  snapshot(): DashboardView;
  readonly journal: Journal;
}

/** The events of one source. */
export class Encoder {
  readonly #source: DashboardSource;
  #head = "{}";
  #about = "[]";
  #rows: string[] = [];
  #gates = "[]";
  #points = 0;
  #drops = 0;

  constructor(source: DashboardSource) {
    this.#source = source;
  }

  /** Looks at the source: an event `update`, or `full` when other endpoints are there than before. */
  next(): string {
    const { pool, heldOff, gates, live = null } = this.#source.snapshot();
    const { endpoints, ...rest } = pool;
    this.#head = JSON.stringify({ ...rest, live });
    const changed = this.#setRows(endpoints, new Set(heldOff));
    const about = JSON.stringify(endpoints.map(aboutOf));
    const isOther = about !== this.#about;
    this.#about = about;
    const gatesText = JSON.stringify(gates);
    const gatesPart = gatesText === this.#gates ? "" : `"gates":${gatesText},`;
    this.#gates = gatesText;
    const news = this.#news(this.#points, this.#drops);
    this.#points = this.#source.journal.history.total;
    this.#drops = this.#source.journal.drops.total;
    if (isOther) return this.full();
    return event("update", `{"head":${this.#head},${gatesPart}${news},"rows":[${changed.join()}]}`);
  }

  /** All that was seen at the last look, as an event `full`. */
  full(): string {
    const rows = this.#rows.join();
    const parts = `"head":${this.#head},"gates":${this.#gates},${this.#news(0, 0)}`;
    return event("full", `{${parts},"about":${this.#about},"rows":[${rows}]}`);
  }

  /** @returns the rows that have changed, each with its index. */
  #setRows(endpoints: readonly EndpointSnapshot[], held: ReadonlySet<string>): string[] {
    const changed: string[] = [];
    this.#rows = endpoints.map((endpoint, i) => {
      const row = JSON.stringify(rowOf(endpoint, held.has(endpoint.id)));
      if (row !== this.#rows[i]) changed.push(`[${i},${row}]`);
      return row;
    });
    return changed;
  }

  /** History and drops after those that were seen. Whoever knows some of them already leaves those out. */
  #news(points: number, drops: number): string {
    const { history, drops: dropped } = this.#source.journal;
    const news = [history.since(points), dropped.since(drops)].map((slice) =>
      JSON.stringify(slice),
    );
    return `"history":${news[0]},"drops":${news[1]}`;
  }
}

/** JSON has no line breaks, so that one line of data holds it. */
function event(name: string, data: string): string {
  return `event: ${name}\ndata: ${data}\n\n`;
}
