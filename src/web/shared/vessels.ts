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
  /** Which part of the level is this router's own, 0 to 1; undefined: it is not told apart. */
  readonly own?: number;
  /** A word above it, in place of `sent`. */
  readonly note?: string;
  /** It may not take a request. */
  readonly isOut?: boolean;
  /** It is the one that is looked at. */
  readonly isSelected?: boolean;
}

/** One vessel on the page. */
class Vessel {
  readonly element = document.createElement("li");
  readonly #note = document.createElement("span");
  readonly #hull = document.createElement("span");
  readonly #water = document.createElement("span");
  readonly #own = document.createElement("span");
  readonly #over = document.createElement("span");
  readonly #name = document.createElement("span");
  #named = "";
  #shown = "";

  constructor() {
    this.element.className = "vessel";
    this.#note.className = "sent";
    this.#hull.className = "hull";
    this.#hull.setAttribute("role", "img");
    this.#water.className = "water";
    this.#own.className = "own";
    this.#over.className = "over-by";
    const line = document.createElement("span");
    line.className = "load-line";
    this.#hull.append(this.#water, this.#own, line, this.#over);
    this.#name.className = "name";
    this.element.append(this.#note, this.#hull, this.#name);
  }

  rename({ name, detail = "" }: VesselName): void {
    const named = `${name} ${detail}`.trim();
    if (named === this.#named) return;
    this.#named = named;
    this.#name.title = named;
    this.#name.replaceChildren(name);
    if (detail !== "") this.#name.append(document.createElement("br"), detail);
  }

  show(state: VesselState): void {
    const { score, sent, isHerd = false, own = 0, isOut = false, isSelected = false } = state;
    const level = Math.min(1, score / BRIM).toFixed(3);
    const load = score.toFixed(score < 10 ? 1 : 0);
    const ownLevel = (Number(level) * own).toFixed(3);
    const note = state.note ?? (sent === undefined || sent === 0 ? "" : `+${sent}`);
    const shown = `${level} ${load} ${ownLevel} ${note} ${isHerd} ${score > 1} ${isOut} ${isSelected}`;
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#water.style.transform = `scaleY(${level})`;
    this.#own.style.transform = `scaleY(${ownLevel})`;
    this.#note.textContent = note;
    this.#note.classList.toggle("herd", isHerd);
    // A full vessel looks the same at 2 and at 20, so the load is written where it is above the line.
    this.#over.textContent = score > 1 ? load : "";
    this.#hull.setAttribute("aria-label", `load ${load}`);
    const { classList } = this.element;
    classList.toggle("over", score > 1);
    classList.toggle("out", isOut);
    classList.toggle("selected", isSelected);
  }
}

/** A row of vessels inside `list`, a `ul`. */
export class Vessels {
  readonly #list: HTMLElement;
  readonly #vessels: Vessel[] = [];

  constructor(list: HTMLElement) {
    this.#list = list;
  }

  /** One vessel per name; those that are there are used again. */
  setNames(names: readonly VesselName[]): void {
    while (this.#vessels.length > names.length) this.#vessels.pop()?.element.remove();
    while (this.#vessels.length < names.length) {
      const vessel = new Vessel();
      this.#vessels.push(vessel);
      this.#list.append(vessel.element);
    }
    for (const [i, name] of names.entries()) this.#vessels[i]?.rename(name);
  }

  show(states: readonly VesselState[]): void {
    for (const [i, state] of states.entries()) this.#vessels[i]?.show(state);
  }

  /** Whose place `element` is in; -1: in none. */
  indexOf(element: Element): number {
    return this.#vessels.findIndex((vessel) => vessel.element.contains(element));
  }
}
