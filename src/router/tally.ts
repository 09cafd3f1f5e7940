// Counters and histograms as prom-client prints them, counted more cheaply: a request touches about ten, and
// prom-client hashes its labels each time.

import {
  Counter,
  Histogram,
  type MetricObjectWithValues,
  type MetricType,
  type MetricValueWithName,
  type Registry,
} from "prom-client";

/** What a metric is called, and what it means. */
export interface Described {
  readonly registry: Registry;
  readonly name: string;
  readonly help: string;
  /** What is counted apart; undefined: nothing is. */
  readonly label?: string | undefined;
}

/** Counts, by one label or by none. */
export class Tally {
  readonly #counts = new Map<string, number>();

  constructor({ registry, name, help, label }: Described) {
    const counts = this.#counts;
    if (label === undefined) counts.set("", 0);
    new Counter({
      ...{ name, help, labelNames: label === undefined ? [] : [label], registers: [registry] },
      collect() {
        this.reset();
        for (const [value, count] of counts) {
          if (label === undefined) this.inc(count);
          else this.inc({ [label]: value }, count);
        }
      },
    });
  }

  /** @param value of the label; empty where there is none. */
  add(value: string, count = 1): void {
    this.#counts.set(value, (this.#counts.get(value) ?? 0) + count);
  }
}

/** A histogram, by one label or by none. */
export class Spread extends Histogram<string> {
  readonly #name: string;
  readonly #help: string;
  readonly #label: string | undefined;
  readonly #bounds: readonly number[];
  /** Per value of the label: a count per bucket, one for what is above them, and the sum. */
  readonly #counts = new Map<string, Float64Array>();

  /** @param bounds upper bounds of the buckets, ascending. */
  constructor({ registry, name, help, label }: Described, bounds: readonly number[]) {
    const labelNames = label === undefined ? [] : [label];
    super({ name, help, labelNames, buckets: [...bounds], registers: [registry] });
    this.#name = name;
    this.#help = help;
    this.#label = label;
    this.#bounds = bounds;
  }

  /** Counts a number. @param value of the label; empty where there is none. */
  count(number: number, value = ""): void {
    const bounds = this.#bounds;
    let counts = this.#counts.get(value);
    if (counts === undefined) {
      counts = new Float64Array(bounds.length + 2);
      this.#counts.set(value, counts);
    }
    let i = 0;
    while (i < bounds.length && number > (bounds[i] as number)) i++; // i is below the length
    counts[i] = (counts[i] as number) + 1;
    counts[bounds.length + 1] = (counts[bounds.length + 1] as number) + number;
  }

  override async get(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    const values = [...this.#counts].flatMap(([value, counts]) => this.#series(value, counts));
    // prom-client says what it is by a word, and its types by a number.
    const type = "histogram" as unknown as MetricType;
    const collect = () => undefined;
    return { name: this.#name, help: this.#help, type, aggregator: "sum", values, collect };
  }

  /** prom-client prints from here, though its types do not say so. */
  getForPromString(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    return this.get();
  }

  /** A bucket counts what is in it and in all below. */
  #series(value: string, counts: Float64Array): MetricValueWithName<string>[] {
    const labels = this.#label === undefined ? {} : { [this.#label]: value };
    let total = 0;
    const buckets = [...this.#bounds, "+Inf"].map((le, i) => {
      total += counts[i] ?? 0;
      return { value: total, labels: { le, ...labels }, metricName: `${this.#name}_bucket` };
    });
    const sum = counts[this.#bounds.length + 1] ?? 0;
    return [
      ...buckets,
      { value: sum, labels, metricName: `${this.#name}_sum` },
      { value: total, labels, metricName: `${this.#name}_count` },
    ];
  }
}
