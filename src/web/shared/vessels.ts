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
  readonly #water = document.createElement("span");
  readonly #own = document.createElement("span");
  readonly #name = document.createElement("span");
  #shown = "";

  constructor() {
    this.element.className = "vessel";
    this.#note.className = "sent";
    const hull = document.createElement("span");
    hull.className = "hull";
    this.#water.className = "water";
    this.#own.className = "own";
    const line = document.createElement("span");
    line.className = "load-line";
    hull.append(this.#water, this.#own, line);
    this.#name.className = "name";
    this.element.append(this.#note, hull, this.#name);
  }

  rename(name: string): void {
    if (this.#name.textContent === name) return;
    this.#name.textContent = name;
    this.#name.title = name;
  }

  show(state: VesselState): void {
    const { score, sent, isHerd = false, own = 0, isOut = false, isSelected = false } = state;
    const level = Math.min(1, score / BRIM).toFixed(3);
    const ownLevel = (Number(level) * own).toFixed(3);
    const note = state.note ?? (sent === undefined || sent === 0 ? "" : `+${sent}`);
    const shown = `${level} ${ownLevel} ${note} ${isHerd} ${score > 1} ${isOut} ${isSelected}`;
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#water.style.transform = `scaleY(${level})`;
    this.#own.style.transform = `scaleY(${ownLevel})`;
    this.#note.textContent = note;
    this.#note.classList.toggle("herd", isHerd);
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
  setNames(names: readonly string[]): void {
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
