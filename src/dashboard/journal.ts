// What is remembered for the dashboard: a point each second over some minutes, and the last requests that
// did not get an answer. Both are short and do not grow, so that they are kept while nobody looks, too.

import { Ring } from "./ring";

/** One second. `null`: there was nothing to measure. */
export type HistoryPoint = readonly [
  saturation: number,
  /** As the fullest gate sees it. */
  gateSaturation: number,
  ttftMeanMs: number | null,
  ttftMaxMs: number | null,
  /** Requests that are held back. */
  held: number,
  /** Requests that wait at the endpoints, as last read. */
  queued: number,
];

/** A request that got no answer of an endpoint, or not all of it. */
export interface Drop {
  /** When it ended, on the pool's clock, in ms. */
  readonly time: number;
  /** A word, such as `saturated` or `client-gone`. */
  readonly reason: string;
  /** HTTP status that it was answered with; null: none. */
  readonly status: number | null;
  /** The reason at length; empty when there is no more to say. */
  readonly message: string;
  /** Its model's gate and its band; null where it did not come so far. */
  readonly model: string | null;
  readonly band: string | null;
  /** How long it was there, in ms. */
  readonly lastedMs: number;
}

/** What is measured each second. */
export interface Measures {
  readonly saturation: number;
  readonly gateSaturation: number;
  readonly held: number;
  readonly queued: number;
}

/** Time between two points, in ms. */
export const STEP_MS = 1000;
/** So many points are kept: five minutes. */
export const HISTORY_STEPS = 300;
/** So many drops are kept. */
export const DROPS_KEPT = 50;

/** History and drops. */
export class Journal {
  readonly history = new Ring<HistoryPoint>(HISTORY_STEPS);
  readonly drops = new Ring<Drop>(DROPS_KEPT);
  readonly #measure: () => Measures;
  #timer: ReturnType<typeof setInterval> | undefined;
  #ttfts = 0;
  #ttftSumMs = 0;
  #ttftMaxMs = 0;

  /** @param measure asked each second. */
  constructor(measure: () => Measures) {
    this.#measure = measure;
  }

  /** Begins to measure. It holds no process open. */
  start(): void {
    this.#timer ??= setInterval(() => this.record(), STEP_MS).unref();
  }

  /** Ends measuring. */
  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** A request's first byte has come. */
  addTtft(ms: number): void {
    this.#ttfts++;
    this.#ttftSumMs += ms;
    this.#ttftMaxMs = Math.max(this.#ttftMaxMs, ms);
  }

  /** Writes the point of the second that is over. */
  record(): void {
    const { saturation, gateSaturation, held, queued } = this.#measure();
    const isSilent = this.#ttfts === 0;
    this.history.add([
      round(saturation),
      round(gateSaturation),
      isSilent ? null : round(this.#ttftSumMs / this.#ttfts),
      isSilent ? null : round(this.#ttftMaxMs),
      held,
      Math.round(queued),
    ]);
    this.#ttfts = this.#ttftSumMs = this.#ttftMaxMs = 0;
  }
}

/** Three decimals are more than anybody sees. */
export function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
