// Endpoints as vessels that fill: the score as the level, the load line at 1. The dashboard and the
// simulator draw the same. Only what changed is written to the page.

/** The level at which a vessel is full to the brim. */
const BRIM = 1.5;

/** What stands under a vessel. */
export interface VesselName {
  readonly name: string;
  /** A second line, such as its GPU. */
  readonly detail?: string;
}

/** What a vessel shows. */
export interface VesselState {
  /** 1 is the load line. */
  readonly score: number;
  /** Requests that were sent to it just now; undefined shows nothing. */
  readonly sent?: number;
  /** So many requests just now are a herd. */
  readonly isHerd?: boolean;
}

/** One vessel on the page. */
class Vessel {
  readonly element = document.createElement("li");
  readonly #sent = document.createElement("span");
  readonly #hull = document.createElement("span");
  readonly #water = document.createElement("span");
  readonly #over = document.createElement("span");
  #shown = "";

  constructor({ name, detail = "" }: VesselName) {
    this.element.className = "vessel";
    this.#sent.className = "sent";
    this.#hull.className = "hull";
    this.#hull.setAttribute("role", "img");
    this.#water.className = "water";
    this.#over.className = "over-by";
    const line = document.createElement("span");
    line.className = "load-line";
    this.#hull.append(this.#water, line, this.#over);
    const label = document.createElement("span");
    label.className = "name";
    label.append(name, document.createElement("br"), detail);
    label.title = `${name} ${detail}`.trim();
    this.element.append(this.#sent, this.#hull, label);
  }

  show({ score, sent, isHerd = false }: VesselState): void {
    const level = Math.min(1, score / BRIM).toFixed(3);
    const load = score.toFixed(score < 10 ? 1 : 0);
    const state = `${level} ${load} ${sent} ${isHerd} ${score > 1}`;
    if (state === this.#shown) return;
    this.#shown = state;
    this.#water.style.transform = `scaleY(${level})`;
    this.#sent.textContent = sent === undefined || sent === 0 ? "" : `+${sent}`;
    this.#sent.classList.toggle("herd", isHerd);
    // A full vessel looks the same at 2 and at 20, so the load is written where it is above the line.
    this.#over.textContent = score > 1 ? load : "";
    this.#hull.setAttribute("aria-label", `load ${load}`);
    this.element.classList.toggle("over", score > 1);
  }
}

/** A row of vessels inside `list`, a `ul`. */
export class Vessels {
  readonly #list: HTMLElement;
  #vessels: Vessel[] = [];
  #names = "";

  constructor(list: HTMLElement) {
    this.#list = list;
  }

  /** Makes one vessel per name; those that are there already stay. */
  setNames(names: readonly VesselName[]): void {
    const joined = JSON.stringify(names);
    if (joined === this.#names) return;
    this.#names = joined;
    this.#vessels = names.map((name) => new Vessel(name));
    this.#list.replaceChildren(...this.#vessels.map(({ element }) => element));
  }

  show(states: readonly VesselState[]): void {
    for (const [i, state] of states.entries()) this.#vessels[i]?.show(state);
  }
}
