// Virtual time: what happens when, in order, and at equal times in the order in which it was planned.

interface Event {
  readonly time: number;
  readonly order: number;
  readonly run: () => void;
}

/** A clock that jumps from event to event. */
export class EventQueue {
  readonly #heap: Event[] = [];
  #now = 0;
  #order = 0;

  /** Now, in ms since the start. */
  get now(): number {
    return this.#now;
  }

  /** Events that are planned. */
  get size(): number {
    return this.#heap.length;
  }

  /** When the next event is, in ms; Infinity when none is planned. */
  get nextAt(): number {
    return this.#heap[0]?.time ?? Number.POSITIVE_INFINITY;
  }

  /** Plans `run` for a time in ms; a time that has passed means now. */
  at(time: number, run: () => void): void {
    const heap = this.#heap;
    const event = { time: Math.max(time, this.#now), order: this.#order++, run };
    let i = heap.length;
    heap.push(event);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const above = heap[parent] as Event; // a parent is in the heap
      if (!isBefore(event, above)) break;
      heap[i] = above;
      i = parent;
    }
    heap[i] = event;
  }

  /** Plans `run` for `ms` from now. */
  after(ms: number, run: () => void): void {
    this.at(this.#now + ms, run);
  }

  /** Runs the next event. False when there is none. */
  step(): boolean {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined) return false;
    if (heap.length > 0) this.#sink(last);
    this.#now = first.time;
    first.run();
    return true;
  }

  #sink(event: Event): void {
    const heap = this.#heap;
    const n = heap.length;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= n) break;
      const right = child + 1;
      // Both are below n.
      if (right < n && isBefore(heap[right] as Event, heap[child] as Event)) child = right;
      const below = heap[child] as Event;
      if (!isBefore(below, event)) break;
      heap[i] = below;
      i = child;
    }
    heap[i] = event;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.time < b.time || (a.time === b.time && a.order < b.order);
}
