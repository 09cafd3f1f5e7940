// Values over time in bounded memory: a long recording must not need more than a short one.

const MAX_BINS = 4096;

/** Values in bins of equal time; bins are merged in pairs when there are too many. */
export class Series {
  #binMs = 1;
  #sums: number[] = [];
  #weights: number[] = [];

  /** The value held from `at` on, for `ms`. */
  add(at: number, value: number, ms: number): void {
    let from = at;
    let rest = ms;
    while (rest > 0) {
      while (Math.floor(from / this.#binMs) >= MAX_BINS) this.#merge();
      const bin = Math.max(0, Math.floor(from / this.#binMs));
      const room = Math.max((bin + 1) * this.#binMs - from, 1e-9);
      const part = Math.min(rest, room);
      this.#sums[bin] = (this.#sums[bin] ?? 0) + Math.min(value, 1e6) * part;
      this.#weights[bin] = (this.#weights[bin] ?? 0) + part;
      from += part;
      rest -= part;
    }
  }

  /** Means of `count` equal parts of the time; NaN where there is nothing. */
  means(count: number): number[] {
    const size = Math.max(1, Math.ceil(this.#sums.length / count));
    const parts: number[] = [];
    for (let at = 0; at < this.#sums.length; at += size) {
      const sum = addUp(this.#sums.slice(at, at + size));
      parts.push(sum / addUp(this.#weights.slice(at, at + size)));
    }
    return parts;
  }

  #merge(): void {
    const pairs = (values: number[]) =>
      Array.from(
        { length: Math.ceil(values.length / 2) },
        (_, i) => (values[2 * i] ?? 0) + (values[2 * i + 1] ?? 0),
      );
    this.#sums = pairs(this.#sums);
    this.#weights = pairs(this.#weights);
    this.#binMs *= 2;
  }
}

function addUp(values: readonly (number | undefined)[]): number {
  let sum = 0;
  for (const value of values) sum += value ?? 0;
  return sum;
}

/** A distribution weighted by time, kept to three significant digits. */
export class WeightedValues {
  readonly #weights = new Map<number, number>();
  #sum = 0;
  #weight = 0;
  #max = 0;

  /** Adds a value that held for `ms`. */
  add(value: number, ms: number): void {
    const key = Number(value.toPrecision(3));
    this.#weights.set(key, (this.#weights.get(key) ?? 0) + ms);
    this.#sum += value * ms;
    this.#weight += ms;
    this.#max = Math.max(this.#max, value);
  }

  /** Mean over time; 0 when there was none. */
  get mean(): number {
    return this.#weight > 0 ? this.#sum / this.#weight : 0;
  }

  /** The greatest value. */
  get max(): number {
    return this.#max;
  }

  /** The value that was not exceeded in this share of the time. */
  quantile(share: number): number {
    let left = share * this.#weight;
    const sorted = [...this.#weights].sort(([a], [b]) => a - b);
    for (const [value, weight] of sorted) {
      left -= weight;
      if (left <= 0) return value;
    }
    return this.#max;
  }
}
