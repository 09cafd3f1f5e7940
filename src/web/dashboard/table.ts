// The endpoints as a grid of which only the visible rows are in the page. The arrow keys move a selection,
// which stays at its endpoint however the list is sorted.

import { element, setText } from "./dom";
import type { SortName } from "./list";
import type { ShownEndpoint } from "./model";
import { decimal, percent, UNKNOWN, withoutScheme } from "./text";
import { type Part, Windowed } from "./windowed";

/** The same as in page.css. */
const ROW_PX = 32;
const HEAD_PX = 36;

interface Column {
  readonly name: SortName;
  readonly title: string;
  readonly hint: string;
  readonly text: (endpoint: ShownEndpoint) => string;
  /** Shown where there is little room, too. */
  readonly isNarrow?: boolean;
}

const COLUMNS: readonly Column[] = [
  {
    ...{ name: "id", title: "Endpoint", hint: "its id", isNarrow: true },
    text: ({ id }) => withoutScheme(id),
  },
  {
    ...{ name: "state", title: "State", hint: "why it is or is not a candidate", isNarrow: true },
    text: ({ reason }) => reason,
  },
  {
    ...{ name: "score", title: "Score", hint: "1 is its ideal load", isNarrow: true },
    text: ({ score }) => decimal(score, 2),
  },
  {
    ...{ name: "waiting", title: "Waiting", hint: "requests that wait now, by projection" },
    text: ({ projectedWaiting: waiting, queueLimit }) =>
      waiting === null ? UNKNOWN : `${decimal(waiting, waiting < 10 ? 1 : 0)} / ${queueLimit}`,
  },
  {
    ...{ name: "kv", title: "KV", hint: "share of its KV cache in use now, by projection" },
    text: ({ projectedKv }) => percent(projectedKv),
  },
  {
    ...{ name: "running", title: "Running", hint: "requests that run, as last read" },
    text: ({ running }) => decimal(running),
  },
  {
    ...{ name: "own", title: "Own", hint: "requests of this router" },
    text: ({ leases, unstarted }) => (unstarted > 0 ? `${leases} (${unstarted})` : `${leases}`),
  },
  {
    ...{ name: "others", title: "Others", hint: "requests of others, by the last reading" },
    text: ({ others }) => decimal(others),
  },
  {
    ...{ name: "rank", title: "Rank", hint: "work before the next request; the least is chosen" },
    text: ({ rank }) => decimal(rank, 2),
  },
  {
    ...{ name: "age", title: "Read", hint: "age of its last good reading" },
    text: ({ ageS }) => (ageS === null ? "never" : `${decimal(ageS, ageS < 100 ? 1 : 0)} s`),
  },
];

/** What the table tells. */
export interface TableListener {
  selected(id: string | undefined): void;
  sorted(name: SortName): void;
}

/** The grid. */
export class EndpointTable {
  readonly #listener: TableListener;
  readonly #table = element("table", { role: "grid", tabindex: "0", "aria-label": "Endpoints" });
  readonly #body = element("tbody");
  readonly #before = element("td");
  readonly #after = element("td");
  readonly #heads = new Map<SortName, HTMLElement>();
  readonly #windowed: Windowed;
  #list: readonly ShownEndpoint[] = [];
  #selected: string | undefined;

  constructor(scroller: HTMLElement, listener: TableListener) {
    this.#listener = listener;
    const spacer = (cell: HTMLElement) =>
      element("tbody", { "aria-hidden": "true" }, [element("tr", {}, [cell])]);
    this.#table.append(
      element("thead", {}, [element("tr", { "aria-rowindex": "1" }, COLUMNS.map(this.#head))]),
      spacer(this.#before),
      this.#body,
      spacer(this.#after),
    );
    scroller.append(this.#table);
    this.#windowed = new Windowed(scroller, { linePx: ROW_PX, headPx: HEAD_PX }, (part) =>
      this.#draw(part),
    );
    this.#table.addEventListener("keydown", (event) => this.#onKey(event));
    this.#body.addEventListener("click", ({ target }) => {
      const row = (target as Element).closest("tr"); // clicks come from elements
      if (row?.dataset.id !== undefined) this.select(row.dataset.id);
    });
  }

  /** Shows these endpoints. */
  show(list: readonly ShownEndpoint[]): void {
    this.#list = list;
    this.#table.setAttribute("aria-rowcount", String(list.length + 1));
    this.#windowed.setCount(list.length);
  }

  /** Marks a column as the one that is sorted by. */
  setSort(name: SortName, isDescending: boolean): void {
    for (const [column, head] of this.#heads) {
      const how = isDescending ? "descending" : "ascending";
      head.setAttribute("aria-sort", column === name ? how : "none");
    }
  }

  /** Selects an endpoint; undefined: none. */
  select(id: string | undefined): void {
    this.#selected = id;
    const index = this.#list.findIndex((endpoint) => endpoint.id === id);
    if (index >= 0) this.#windowed.reveal(index);
    else this.#windowed.setCount(this.#list.length);
    this.#listener.selected(id);
  }

  readonly #head = ({ name, title, hint, isNarrow }: Column): HTMLElement => {
    const button = element("button", { type: "button", text: title, title: hint });
    button.addEventListener("click", () => this.#listener.sorted(name));
    const head = element("th", { scope: "col", class: classOf(name, isNarrow) }, [button]);
    this.#heads.set(name, head);
    return head;
  };

  #makeRow(): HTMLTableRowElement {
    const cells = COLUMNS.map(({ name, isNarrow }) =>
      element("td", { class: classOf(name, isNarrow) }),
    );
    return element("tr", {}, cells);
  }

  #draw({ first, end, beforePx, afterPx }: Part): void {
    this.#before.style.height = `${beforePx}px`;
    this.#after.style.height = `${afterPx}px`;
    const body = this.#body;
    while (body.rows.length > end - first) body.deleteRow(-1);
    while (body.rows.length < end - first) body.append(this.#makeRow());
    let active = "";
    for (let i = first; i < end; i++) {
      const row = body.rows[i - first] as HTMLTableRowElement; // made above
      const endpoint = this.#list[i] as ShownEndpoint; // a part lies within the list
      this.#drawRow(row, endpoint, i);
      if (endpoint.id === this.#selected) active = row.id;
    }
    if (active === "") this.#table.removeAttribute("aria-activedescendant");
    else this.#table.setAttribute("aria-activedescendant", active);
  }

  #drawRow(row: HTMLTableRowElement, endpoint: ShownEndpoint, index: number): void {
    const { id, state, score } = endpoint;
    if (row.dataset.id !== id) {
      row.dataset.id = id;
      (row.cells[0] as HTMLElement).title = id; // every row has all cells
    }
    row.id = `row-${index}`;
    row.setAttribute("aria-rowindex", String(index + 2));
    row.setAttribute("aria-selected", String(id === this.#selected));
    row.className = `${state === "ok" ? "" : "out"} ${score > 1 ? "over" : ""}`;
    for (const [i, { text }] of COLUMNS.entries()) {
      setText(row.cells[i] as HTMLElement, text(endpoint));
    }
  }

  #onKey(event: KeyboardEvent): void {
    if (event.target !== this.#table) return; // keys on the headings' buttons are theirs
    const { length } = this.#list;
    const at = this.#list.findIndex(({ id }) => id === this.#selected);
    const page = this.#windowed.visibleLines;
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: Math.max(0, at - 1),
      PageDown: at + page,
      PageUp: Math.max(0, at - page),
      Home: 0,
      End: length - 1,
    };
    const next = steps[event.key];
    if (event.key === "Escape") this.select(undefined);
    else if (next === undefined || length === 0) return;
    else this.select(this.#list[Math.min(length - 1, next)]?.id);
    event.preventDefault();
  }
}

function classOf(name: string, isNarrow = false): string {
  return `c-${name}${isNarrow ? "" : " wide"}`;
}
