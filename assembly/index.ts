// The kernel's exports. This file only wires; README.md beside it is the ABI.

import { Column, RESULT_PTR, ROWS_PTR } from "./layout";
import { reducePool, settle } from "./reduce";
import { score } from "./score";

export { configure } from "./reduce";
export { capacityOf, columnPtr, reserve } from "./layout";
export { score, settle };

/** Version of the layout and of the exports. */
export function abiVersion(): u32 {
  return 1;
}

/** First byte of row 0. */
export function rowsPtr(): usize {
  return ROWS_PTR;
}

/** First byte of the result block. */
export function resultPtr(): usize {
  return RESULT_PTR;
}

/** Saturation and counts of the first `n` endpoints at `now`, into the result block. */
export function reduce(n: u32, now: f64): void {
  reducePool(n, now, Column.PASSES, false);
}

/**
 * As `reduce`, and the candidate indices too. `filter` says what a candidate must be besides
 * fresh: 0 under both limits, 1 under the limit of the KV cache, 2 nothing else.
 */
export function select(n: u32, now: f64, filter: u32): void {
  const column = filter == 0 ? Column.PASSES : filter == 1 ? Column.PASSES_KV : Column.USABLE;
  reducePool(n, now, column, true);
}

/** `score`, `select` and `settle` in one crossing, for a host that packs rows on every call. */
export function evaluate(n: u32, now: f64): void {
  score(0, n);
  select(n, now, 0);
  settle(n, now);
}
