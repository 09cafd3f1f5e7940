// Endpoints as vessels that fill: the score as the level, the load line at 1. The dashboard and the
// simulator draw the same. Only what changed is written to the page.

/** The level at which a vessel is full to the brim. */
const BRIM = 1.5;

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
  readonly #water = document.createElement("span");
  #shown = "";

  constructor(name: string) {
    this.element.className = "vessel";
    this.#sent.className = "sent";
    const hull = document.createElement("span");
    hull.className = "hull";
    this.#water.className = "water";
    const line = document.createElement("span");
    line.className = "load-line";
    hull.append(this.#water, line);
    const label = document.createElement("span");
    label.className = "name";
    label.textContent = name;
    label.title = name;
    this.element.append(this.#sent, hull, label);
  }

  show({ score, sent, isHerd = false }: VesselState): void {
    const level = Math.min(1, score / BRIM).toFixed(3);
    const state = `${level} ${sent} ${isHerd} ${score > 1}`;
    if (state === this.#shown) return;
    this.#shown = state;
    this.#water.style.transform = `scaleY(${level})`;
    this.#sent.textContent = sent === undefined || sent === 0 ? "" : `+${sent}`;
    this.#sent.classList.toggle("herd", isHerd);
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
  setNames(names: readonly string[]): void {
    const joined = names.join("\n");
    if (joined === this.#names) return;
    this.#names = joined;
    this.#vessels = names.map((name) => new Vessel(name));
    this.#list.replaceChildren(...this.#vessels.map(({ element }) => element));
  }

  show(states: readonly VesselState[]): void {
    for (const [i, state] of states.entries()) this.#vessels[i]?.show(state);
  }
}
