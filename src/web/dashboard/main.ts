// The dashboard: events come in, and what has changed is drawn with the next frame.

import "../shared/base.css";
import "./page.css";
import { STATES } from "../../dashboard/wire";
import { Charts } from "./charts";
import { Details } from "./details";
import { byId, setText } from "./dom";
import { Feed, type FeedState } from "./feed";
import { DropList, GateTables } from "./flow";
import { Hulls } from "./hulls";
import { type ListOptions, listOf, SORTS, type SortName, type StateFilter } from "./list";
import { Model } from "./model";
import { Summary } from "./summary";
import { EndpointTable } from "./table";
import { count, span } from "./text";

const EVENTS = "dashboard/events";

/** The page. */
class Dashboard {
  readonly #model = new Model();
  readonly #summary = new Summary(byId("summary"), byId("warning"));
  readonly #charts = new Charts(byId("charts"));
  readonly #hulls = new Hulls(byId("hulls"), (id) => this.#table.select(id));
  readonly #table = new EndpointTable(byId("rows"), {
    selected: (id) => {
      this.#selected = id;
      this.#drawSelection();
    },
    sorted: (name) => this.#sortBy(name),
  });
  readonly #details = new Details(byId("details"));
  readonly #gates = new GateTables(byId("gates"));
  readonly #drops = new DropList(byId("drops"));
  readonly #pause = byId<HTMLButtonElement>("pause");
  readonly #sort = byId<HTMLSelectElement>("sort");
  readonly #state = byId<HTMLSelectElement>("state");
  #options: ListOptions = { text: "", state: "all", sort: "pool", isReversed: false };
  #list = listOf([], this.#options);
  #selected: string | undefined;
  #isPaused = false;
  #frame = 0;
  /** Points that are on the charts. */
  #points = -1;

  constructor() {
    for (const [name, { label }] of Object.entries(SORTS)) this.#sort.add(new Option(label, name));
    this.#state.add(new Option("all", "all"));
    this.#state.add(new Option("no candidate", "out"));
    for (const name of STATES) this.#state.add(new Option(name, name));
    this.#wire();
    this.#setOptions({});
    new Feed(EVENTS, {
      full: (event) => {
        this.#model.takeFull(event);
        this.#points = -1;
        byId("main").hidden = false;
        this.#soon();
      },
      update: (event) => {
        this.#model.takeUpdate(event);
        this.#soon();
      },
      state: (state, lastAt) => this.#showState(state, lastAt),
    });
  }

  #wire(): void {
    const filter = byId<HTMLInputElement>("filter");
    filter.addEventListener("input", () => this.#setOptions({ text: filter.value }));
    this.#state.addEventListener("change", () => {
      this.#setOptions({ state: this.#state.value as StateFilter }); // its options are these
    });
    this.#sort.addEventListener("change", () => {
      this.#setOptions({ sort: this.#sort.value as SortName, isReversed: false }); // as above
    });
    byId("direction").addEventListener("click", () => {
      this.#setOptions({ isReversed: !this.#options.isReversed });
    });
    this.#pause.addEventListener("click", () => {
      this.#isPaused = !this.#isPaused;
      this.#pause.setAttribute("aria-pressed", String(this.#isPaused));
      this.#soon();
    });
  }

  /** A heading was pressed: its column decides, or is turned round. */
  #sortBy(name: SortName): void {
    const { sort, isReversed } = this.#options;
    this.#setOptions({ sort: name, isReversed: sort === name && !isReversed });
  }

  #setOptions(change: Partial<ListOptions>): void {
    this.#options = { ...this.#options, ...change };
    const { sort, isReversed } = this.#options;
    const isDescending = SORTS[sort].isLargestFirst !== isReversed;
    this.#sort.value = sort;
    setText(byId("direction"), isDescending ? "Descending" : "Ascending");
    this.#table.setSort(sort, isDescending);
    this.#drawList();
  }

  #soon(): void {
    if (this.#frame !== 0 || this.#isPaused) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  #draw(): void {
    const { head, endpoints, gates, history, drops } = this.#model;
    if (head === undefined) return;
    document.body.classList.toggle("pool-only", head.live === null);
    this.#summary.show(head, endpoints, gates);
    this.#drawList();
    this.#gates.show(gates);
    this.#drops.show(drops.items, head.time);
    if (this.#points === history.total) return;
    this.#points = history.total;
    this.#charts.show(history.items);
  }

  #drawList(): void {
    const { endpoints } = this.#model;
    this.#list = listOf(endpoints, this.#options);
    const [shown, all] = [this.#list.length, endpoints.length];
    setText(byId("count"), shown === all ? count(all) : `${count(shown)} of ${count(all)}`);
    this.#table.show(this.#list);
    this.#drawSelection();
  }

  #drawSelection(): void {
    this.#hulls.show(this.#list, this.#selected);
    const endpoint = this.#model.endpoints.find(({ id }) => id === this.#selected);
    this.#details.show(endpoint, this.#selected !== undefined && endpoint === undefined);
  }

  #showState(state: FeedState, lastAt: number | undefined): void {
    const connection = byId("connection");
    const isOld = state === "lost" && lastAt !== undefined;
    const texts = {
      connecting: "Connecting",
      live: "Live",
      lost: "Connection lost, trying again",
    };
    setText(connection, texts[state]);
    connection.dataset.state = state;
    // Apart from the status, which would be read aloud every second.
    setText(byId("since"), isOld ? `last news ${span(performance.now() - lastAt)} ago` : "");
    document.body.classList.toggle("old", state === "lost");
  }
}

new Dashboard();
