// Virtual time that keeps pace with a real clock, so that engines of the simulator take as long as real ones.

import { EventQueue } from "../sim/events";

/** An event queue that is driven by a clock. */
export class LiveTime {
  /** What the simulator plans with. Outside of `run`, its time lags behind. */
  readonly queue = new EventQueue();
  readonly #clock: () => number;
  readonly #start: number;
  readonly #listeners = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;

  /** @param clock ms. Default `performance.now`. */
  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock;
    this.#start = clock();
  }

  /** Changes something that has to do with time: what is due has happened before, what comes is waited for. */
  run<T>(change: () => T): T {
    this.#catchUp();
    const result = change();
    this.#arm();
    return result;
  }

  /** Calls back after anything may have happened. Returns the function that ends it. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Time stands still from now on. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#listeners.clear();
  }

  #catchUp(): void {
    const { queue } = this;
    let isThere = false;
    queue.at(this.#clock() - this.#start, () => {
      isThere = true;
    });
    while (!isThere) queue.step();
    for (const listener of [...this.#listeners]) listener();
  }

  #arm(): void {
    clearTimeout(this.#timer);
    const { nextAt } = this.queue;
    if (nextAt === Number.POSITIVE_INFINITY) return;
    const ms = nextAt - (this.#clock() - this.#start);
    this.#timer = setTimeout(() => this.run(() => undefined), Math.max(0, ms));
  }
}
