// The endpoints as vessels, as many lines of them as fit; the rest is drawn when it is scrolled to.

import type { ShownState } from "../../dashboard/wire";
import { type VesselState, Vessels } from "../shared/vessels";
import { ownShare, type ShownEndpoint } from "./model";
import { type Part, Windowed } from "./windowed";

/** The same as in page.css. */
const LINE_PX = 138;
const GAP_PX = 6;
const LEAST_PX = 48;
const MOST_PX = 84;

/** A word above a vessel that is no candidate. */
const NOTES: Readonly<Record<ShownState, string>> = {
  ok: "",
  "held-off": "held off",
  "queue-full": "queue",
  "kv-full": "KV",
  stale: "stale",
  future: "clock",
  unusable: "no data",
};

/** The vessels. */
export class Hulls {
  readonly #list: HTMLElement;
  readonly #scroller: HTMLElement;
  readonly #vessels: Vessels;
  readonly #windowed: Windowed;
  #endpoints: readonly ShownEndpoint[] = [];
  #selected: string | undefined;
  #first = 0;

  /** @param onSelect an endpoint was clicked. */
  constructor(scroller: HTMLElement, onSelect: (id: string) => void) {
    this.#scroller = scroller;
    this.#list = scroller.querySelector("ul") as HTMLElement; // it stands in dashboard.html
    scroller.tabIndex = 0; // it is scrolled by keyboard, too
    this.#vessels = new Vessels(this.#list);
    const perLine = (width: number) => Math.floor((width + GAP_PX) / (LEAST_PX + GAP_PX));
    this.#windowed = new Windowed(scroller, { linePx: LINE_PX, perLine }, (part) =>
      this.#draw(part),
    );
    this.#list.addEventListener("click", ({ target }) => {
      const index = this.#vessels.indexOf(target as Element); // clicks come from elements
      const endpoint = index < 0 ? undefined : this.#endpoints[this.#first + index];
      if (endpoint !== undefined) onSelect(endpoint.id);
    });
  }

  /** Shows these endpoints, one of them marked. */
  show(endpoints: readonly ShownEndpoint[], selected: string | undefined): void {
    this.#endpoints = endpoints;
    this.#selected = selected;
    this.#windowed.setCount(endpoints.length);
  }

  #draw({ first, end, beforePx, afterPx }: Part): void {
    this.#first = first;
    const shown = this.#endpoints.slice(first, end);
    const { style } = this.#list;
    style.paddingTop = `${beforePx}px`;
    style.paddingBottom = `${afterPx}px`;
    const columns = Math.min(this.#windowed.perLine, Math.max(1, this.#endpoints.length));
    style.gridTemplateColumns = `repeat(${columns}, minmax(0, ${MOST_PX}px))`;
    this.#vessels.setNames(shown.map(({ shortName }) => ({ name: shortName })));
    this.#vessels.show(shown.map((endpoint) => this.#stateOf(endpoint)));
    const { length } = this.#endpoints;
    const what = length === 0 ? "none" : `${first + 1} to ${end} of ${length}`;
    this.#list.setAttribute("aria-label", `Endpoints, ${what}: the level is the score`);
    this.#scroller.classList.toggle("one-line", length <= this.#windowed.perLine);
  }

  #stateOf(endpoint: ShownEndpoint): VesselState {
    const { id, score, state } = endpoint;
    return {
      score,
      own: ownShare(endpoint),
      note: NOTES[state],
      isOut: state !== "ok",
      isSelected: id === this.#selected,
    };
  }
}
