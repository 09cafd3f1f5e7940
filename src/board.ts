// The packed side of a pool: the kernel's rows, the ranks beside them, and the last answer, which
// counts until a row is written or time alone changes it. It knows indices, not endpoints.

import type { ResolvedConfig } from "./config";
import { Kernel, KV, RESULT, ROW, UPDATE_TIME, WAITING, WEIGHT, writeLimits } from "./kernel";

/** What a candidate must be besides fresh: the kernel's `filter`. `Any`: whichever list is there will do. */
export enum List {
  Any = -1,
  Limits = 0,
  Kv = 1,
  Fresh = 2,
}

/** Rows, ranks and the last answer of one pool. */
export class Board {
  readonly #kernel: Kernel;
  readonly #usual: List;
  /** Rank of each endpoint for a request of no tokens, and what each token adds. */
  #ranks: Float64Array;
  #slopes: Float64Array;
  #known = false;
  #listed = List.Any;
  #computedAt = 0;
  #validUntil = 0;

  /** @param usual the list that is made where any will do: of the picks that are likely to follow. */
  constructor(capacity: number, config: ResolvedConfig, usual: List) {
    this.#usual = usual;
    this.#kernel = new Kernel(capacity);
    this.#kernel.configure(config);
    this.#ranks = new Float64Array(this.#kernel.capacity);
    this.#slopes = new Float64Array(this.#kernel.capacity);
  }

  /** See `Kernel.result`. */
  get result(): Float64Array {
    return this.#kernel.result;
  }

  /** Indices of the last list; as many as `result` says. */
  get candidates(): Uint32Array {
    return this.#kernel.candidates;
  }

  /** When time alone will change the last answer. */
  get validUntil(): number {
    return this.#validUntil;
  }

  /** Sets S and the staleness policy. */
  configure(config: ResolvedConfig): void {
    this.#kernel.configure(config);
    this.forget();
  }

  /**
   * Makes room for one more row behind `n` rows.
   *
   * @throws KernelError when there is no memory; nothing has changed then.
   */
  reserve(n: number): void {
    if (!this.#kernel.reserve(n + 1)) return;
    const { capacity } = this.#kernel;
    const [ranks, slopes] = [this.#ranks, this.#slopes];
    this.#ranks = new Float64Array(capacity);
    this.#slopes = new Float64Array(capacity);
    this.#ranks.set(ranks);
    this.#slopes.set(slopes);
    this.#kernel.score(0, n);
  }

  /** Closes the gap that row `index` of `n` leaves. */
  remove(index: number, n: number): void {
    const next = index + 1;
    this.#kernel.rows.copyWithin(index * ROW, next * ROW, n * ROW);
    this.#ranks.copyWithin(index, next, n);
    this.#slopes.copyWithin(index, next, n);
    this.#kernel.score(index, n - 1);
    this.forget();
  }

  /** Writes thresholds and weight of a row; `writeLoad` must follow. */
  writeLimits(index: number, q: number, k: number, h: number, weight: number): void {
    const { rows } = this.#kernel;
    writeLimits(rows, index, q, k, h);
    rows[index * ROW + WEIGHT] = weight;
  }

  /** Writes the load of a row and scores it. NaN makes it unusable. */
  writeLoad(index: number, waiting: number, kv: number, time: number): void {
    const { rows } = this.#kernel;
    const at = index * ROW;
    rows[at + WAITING] = waiting;
    rows[at + KV] = kv;
    rows[at + UPDATE_TIME] = time;
    this.#kernel.score(index, index + 1);
    this.#known = false;
  }

  /** Writes the rank of a row. */
  writeRank(index: number, rank: number, perToken: number): void {
    this.#ranks[index] = rank;
    this.#slopes[index] = perToken;
  }

  /** Rank of a row for a request of `tokens`. */
  rank(index: number, tokens: number): number {
    return (this.#ranks[index] as number) + (this.#slopes[index] as number) * tokens;
  }

  /** The last answer does not count any more. */
  forget(): void {
    this.#known = false;
  }

  /**
   * Makes `result` and `candidates` the answer for `n` rows at `now`.
   *
   * @param until when something outside the rows will change them.
   * @returns whether it had to compute.
   */
  judge(n: number, now: number, list: List, until: number): boolean {
    const counts = this.#known && this.#computedAt <= now && now < this.#validUntil;
    const isAny = list === List.Any;
    if (counts && (isAny || list === this.#listed)) return false;
    this.#listed = isAny ? this.#usual : list;
    this.#kernel.select(n, now, this.#listed);
    this.#known = true;
    this.#computedAt = now;
    this.#validUntil = Math.min(until, this.#kernel.result[RESULT.validUntil] as number);
    return true;
  }

  /** Scores of the first `n` rows as they count at `now`. */
  scores(n: number, now: number): Float64Array {
    this.#kernel.settle(n, now);
    return this.#kernel.effective.slice(0, n);
  }

  /** Waiting requests of a row as they were written last. */
  waiting(index: number): number {
    return this.#kernel.rows[index * ROW + WAITING] as number;
  }

  /** KV usage of a row as it was written last. */
  kv(index: number): number {
    return this.#kernel.rows[index * ROW + KV] as number;
  }
}
