// Where everything lies in memory, and the one place where memory grows.
//
//   0        64             256                    256 + 64 C
//   | unused | result block | rows: C x 64 bytes   | score[C] | passes[C] | updateTime[C] | weight[C]
//                                                  | effective[C] | candidates[C] | passesKv[C]
//                                                  | usable[C] |
//
// C is the capacity. Rows stay where they are when C grows; the columns behind them move and are
// derived, so the host scores all rows again after a growth.

/** Bytes per endpoint row: eight f64, one cache line. */
export const ROW_BYTES: usize = 64;
/** Byte offsets inside a row. */
export const WAITING: usize = 0;
export const QUEUE_THRESHOLD: usize = 16;
export const QUEUE_LIMIT: usize = 32;
export const UPDATE_TIME: usize = 48;
export const WEIGHT: usize = 56;

/** First byte of the result block (16 x f64). */
export const RESULT_PTR: usize = 64;
/** First byte of row 0. */
export const ROWS_PTR: usize = 256;

/** Columns hold a multiple of this many endpoints, so that every one begins on a cache line. */
const CAPACITY_STEP: u32 = 16;
/** Above this many endpoints the layout would not fit into 32-bit addresses. */
const MAX_CAPACITY: u32 = 1 << 24;
const COLUMN_BYTES: u32 = 8;
const COLUMNS: u32 = 8;

let capacity: u32 = 0;

/** Rows that fit without growing. */
export function capacityOf(): u32 {
  return capacity;
}

/**
 * Makes room for at least `wanted` endpoints. True when there is room; false when the host has no
 * more memory, and then nothing has changed. Views are stale after a true answer.
 */
export function reserve(wanted: u32): bool {
  if (wanted <= capacity) return true;
  if (wanted > MAX_CAPACITY) return false;
  const next = (wanted + CAPACITY_STEP - 1) & ~(CAPACITY_STEP - 1);
  const bytes = (<u32>ROWS_PTR) + next * ((<u32>ROW_BYTES) + COLUMNS * COLUMN_BYTES);
  const pages = <i32>((bytes + 0xffff) >>> 16);
  const missing = pages - memory.size();
  if (missing > 0 && memory.grow(missing) < 0) return false;
  capacity = next;
  return true;
}

/** The derived columns, eight bytes an endpoint each. */
export const enum Column {
  /** f64: how loaded, 1 = at its ideal; 1 where the row is unusable. */
  SCORE,
  /** All bits set where the row is usable and under both limits, else 0. */
  PASSES,
  /** f64: time of the reading in ms; NaN where the row is unusable. */
  UPDATE_TIME,
  /** f64: weight. */
  WEIGHT,
  /** f64: the score as `settle` found it to count, 1 where the endpoint is not fresh. */
  EFFECTIVE,
  /** u32: indices of the candidates in order, as many as the result block says. */
  CANDIDATES,
  /** As PASSES, by the limit of the KV cache alone. */
  PASSES_KV,
  /** All bits set where the row is usable, else 0. */
  USABLE,
}

/** First byte of a column. */
// @ts-ignore: decorator
@inline
export function columnPtr(column: Column): usize {
  return ROWS_PTR + <usize>(capacity * ((<u32>ROW_BYTES) + (<u32>column) * COLUMN_BYTES));
}
