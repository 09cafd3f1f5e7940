// A long list of which only the visible part is drawn. All items are equally tall.

/** How a list lies in its scroller. */
export interface WindowOptions {
  /** From one line to the next, in px. */
  readonly linePx: number;
  /** What stands above the lines and does not scroll away, in px. */
  readonly headPx?: number;
  /** Items in a line; default: one. */
  readonly perLine?: (widthPx: number) => number;
}

/** A part of a list. */
export interface Part {
  readonly first: number;
  /** The item behind the last one. */
  readonly end: number;
  /** Room to leave before and after, in px. */
  readonly beforePx: number;
  readonly afterPx: number;
}

/** Lines that are drawn beyond what is visible, so that a short scroll shows no gap. */
const SPARE_LINES = 2;

/** Tells which part of a list is to be drawn. */
export class Windowed {
  readonly #scroller: HTMLElement;
  readonly #options: WindowOptions;
  readonly #draw: (part: Part) => void;
  #count = 0;
  #frame = 0;

  /** @param draw called when another part, or the same one anew, is to be drawn. */
  constructor(scroller: HTMLElement, options: WindowOptions, draw: (part: Part) => void) {
    this.#scroller = scroller;
    this.#options = options;
    this.#draw = draw;
    scroller.addEventListener("scroll", () => this.#soon(), { passive: true });
    new ResizeObserver(() => this.#soon()).observe(scroller);
  }

  /** Items in a line at present. */
  get perLine(): number {
    return Math.max(1, this.#options.perLine?.(this.#scroller.clientWidth) ?? 1);
  }

  /** Whole lines that are visible at a time. */
  get visibleLines(): number {
    const { linePx, headPx = 0 } = this.#options;
    return Math.max(1, Math.floor((this.#scroller.clientHeight - headPx) / linePx));
  }

  /** The list has so many items; draws. */
  setCount(count: number): void {
    this.#count = count;
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const { linePx } = this.#options;
    const perLine = this.perLine;
    const lines = Math.ceil(count / perLine);
    const { scrollTop, clientHeight } = this.#scroller;
    const wanted = Math.floor(scrollTop / linePx) - SPARE_LINES;
    const shown = Math.ceil(clientHeight / linePx) + 2 * SPARE_LINES;
    const firstLine = Math.max(0, Math.min(wanted, lines - shown));
    const endLine = Math.min(lines, firstLine + shown);
    this.#draw({
      first: firstLine * perLine,
      end: Math.min(count, endLine * perLine),
      beforePx: firstLine * linePx,
      afterPx: (lines - endLine) * linePx,
    });
  }

  /** Scrolls as little as is needed to show an item. */
  reveal(index: number): void {
    const { linePx, headPx = 0 } = this.#options;
    const top = Math.floor(index / this.perLine) * linePx;
    const room = this.#scroller.clientHeight - headPx - linePx;
    const { scrollTop } = this.#scroller;
    if (top < scrollTop) this.#scroller.scrollTop = top;
    else if (top > scrollTop + room) this.#scroller.scrollTop = top - room;
    this.setCount(this.#count);
  }

  #soon(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => this.setCount(this.#count));
  }
}
