// The last values of something that goes on for ever. Each has a number, so that whoever has seen some of
// them can ask for the rest.

/** Some values in a row. */
export interface Slice<T> {
  /** How many there have been up to the last of `items`. */
  readonly total: number;
  /** Oldest first. */
  readonly items: readonly T[];
}

/** Keeps the last `limit` values. */
export class Ring<T> {
  readonly #limit: number;
  #items: T[] = [];
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How many there have been. */
  get total(): number {
    return this.#total;
  }

  /** Those that are kept, oldest first. */
  get items(): readonly T[] {
    return this.#items;
  }

  add(value: T): void {
    this.#total++;
    this.#items.push(value);
    if (this.#items.length > this.#limit) this.#items.shift();
  }

  /** What came after the first `seen`, as far as it is kept. */
  since(seen: number): Slice<T> {
    const count = Math.min(this.#items.length, this.#total - seen);
    return { total: this.#total, items: count > 0 ? this.#items.slice(-count) : [] };
  }

  /** Takes what is new in a slice of another ring; what is known already is left out. */
  catchUp({ total, items }: Slice<T>): void {
    const isNew = Math.min(items.length, total - this.#total);
    if (isNew > 0) for (const item of items.slice(-isNew)) this.add(item);
    this.#total = Math.max(this.#total, total);
  }
}
