// A list of listeners that are told once per turn, however much has changed in it.

import type { Unsubscribe } from "./evaluation";

/** Coalesced listeners. */
export class Subscribers {
  readonly #listeners = new Set<{ readonly call: () => void }>();
  #scheduled = false;

  /** Adds a listener; the same function added twice is called twice. */
  add(call: () => void): Unsubscribe {
    const entry = { call };
    this.#listeners.add(entry);
    return () => {
      this.#listeners.delete(entry);
    };
  }

  /** Something changed: the listeners run in a microtask, once. */
  notify(): void {
    if (this.#scheduled || this.#listeners.size === 0) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      // A listener that throws is an uncaught error of its own; the others are still called.
      for (const entry of [...this.#listeners]) {
        queueMicrotask(() => {
          if (this.#listeners.has(entry)) entry.call();
        });
      }
    });
  }
}
