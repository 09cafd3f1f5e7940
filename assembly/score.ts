// Score on write: one endpoint's row becomes its derived columns. Both resources are divided and
// compared in one vector operation each.

import {
  Column,
  QUEUE_LIMIT,
  QUEUE_THRESHOLD,
  ROWS_PTR,
  ROW_BYTES,
  UPDATE_TIME,
  WAITING,
  WEIGHT,
  columnPtr,
} from "./layout";

/** Scores rows `from` (included) to `to` (excluded). */
export function score(from: u32, to: u32): void {
  const scores = columnPtr(Column.SCORE);
  const passes = columnPtr(Column.PASSES);
  const passesKv = columnPtr(Column.PASSES_KV);
  const usables = columnPtr(Column.USABLE);
  const times = columnPtr(Column.UPDATE_TIME);
  const weights = columnPtr(Column.WEIGHT);
  const zero = f64x2.splat(0);
  const infinity = f64x2.splat(Infinity);
  let row = ROWS_PTR + (<usize>from) * ROW_BYTES;
  const end = ROWS_PTR + (<usize>to) * ROW_BYTES;
  let at = (<usize>from) << 3;
  while (row < end) {
    const load = v128.load(row, WAITING);
    const time = f64.load(row, UPDATE_TIME);
    const ratios = f64x2.div(load, v128.load(row, QUEUE_THRESHOLD));
    const worst = f64.max(f64x2.extract_lane(ratios, 0), f64x2.extract_lane(ratios, 1));
    const counts = v128.and(f64x2.ge(load, zero), f64x2.lt(load, infinity));
    // `worst == worst` refuses 0/0 from a threshold of 0, so that a sum can never become NaN.
    // Without branches: which rows pass is not predictable.
    const usable =
      i32(i64x2.all_true(counts)) & i32(f64.abs(time) < Infinity) & i32(worst == worst);
    // Bit 0: the queue is under its limit; bit 1: the KV cache is.
    const under = i64x2.bitmask(f64x2.lt(load, v128.load(row, QUEUE_LIMIT)));
    f64.store(scores + at, select<f64>(worst, 1, usable));
    i64.store(passes + at, -(<i64>(usable & under & (under >> 1))));
    i64.store(passesKv + at, -(<i64>(usable & (under >> 1))));
    i64.store(usables + at, -(<i64>usable));
    f64.store(times + at, select<f64>(time, NaN, usable));
    f64.store(weights + at, f64.load(row, WEIGHT));
    row += ROW_BYTES;
    at += 8;
  }
}
