// The kernel, typed: one instance owns one memory. The only file that knows the ABI in
// assembly/README.md.

import { instantiateSync } from "@assemblyscript/loader";
import type { ResolvedConfig } from "./config";
import { KernelError } from "./errors";
import { kernelModule } from "./kernel-module";

/** f64 per endpoint row. */
export const ROW = 8;
/** Indices of the columns in a row. */
export const WAITING = 0;
export const KV = 1;
export const QUEUE_THRESHOLD = 2;
export const KV_THRESHOLD = 3;
export const QUEUE_LIMIT = 4;
export const KV_LIMIT = 5;
export const UPDATE_TIME = 6;
export const WEIGHT = 7;

/** Indices in the result block. */
export const RESULT = {
  mean: 0,
  capped: 1,
  weighted: 2,
  max: 3,
  fresh: 4,
  stale: 5,
  unusable: 6,
  candidates: 7,
  validUntil: 8,
} as const;
const RESULT_LENGTH = 16;

/** Columns of the kernel that the host reads. */
const EFFECTIVE_COLUMN = 4;
const CANDIDATES_COLUMN = 5;
const ABI_VERSION = 1;
/** The kernel's own limit, from its 32-bit addresses. */
const MAX_CAPACITY = 1 << 24;

/** The exports, as assembly/README.md describes them. */
interface KernelExports extends Record<string, unknown> {
  readonly memory: WebAssembly.Memory;
  abiVersion(): number;
  reserve(wanted: number): number;
  capacityOf(): number;
  rowsPtr(): number;
  resultPtr(): number;
  columnPtr(column: number): number;
  configure(stalenessMs: number, scoredUntilMs: number, ignore: number): void;
  score(from: number, to: number): void;
  reduce(n: number, now: number): void;
  select(n: number, now: number, filter: number): void;
  settle(n: number, now: number): void;
  evaluate(n: number, now: number): void;
}

/** One kernel instance: rows in, result block and candidates out. */
export class Kernel {
  /** Telemetry, `ROW` f64 per endpoint. Replaced by `reserve` when it grows. */
  rows!: Float64Array;
  /** The result block, see `RESULT`. */
  result!: Float64Array;
  /** Indices of the candidates after `select` or `evaluate`. */
  candidates!: Uint32Array;
  /** Scores as they counted, after `settle` or `evaluate`. */
  effective!: Float64Array;
  /** Scores rows `from` (included) to `to` (excluded). The export itself, as the next four are. */
  readonly score: KernelExports["score"];
  /** Saturation and counts of the first `n` rows at `now`, into `result`. */
  readonly reduce: KernelExports["reduce"];
  /** As `reduce`, and `candidates` too. */
  readonly select: KernelExports["select"];
  /** Writes `effective` for the first `n` rows at `now`. */
  readonly settle: KernelExports["settle"];
  /** `score`, `select` and `settle` over the first `n` rows, in one crossing. */
  readonly evaluate: KernelExports["evaluate"];
  readonly #exports: KernelExports;

  /** @throws KernelError when WebAssembly cannot run here. */
  constructor(capacity: number) {
    const { exports } = instantiateSync<KernelExports>(kernelModule());
    this.#exports = exports;
    this.score = exports.score;
    this.reduce = exports.reduce;
    this.select = exports.select;
    this.settle = exports.settle;
    this.evaluate = exports.evaluate;
    const version = exports.abiVersion();
    if (version !== ABI_VERSION) {
      throw new KernelError(`kernel.wasm has ABI ${version}, this package needs ${ABI_VERSION}`);
    }
    this.reserve(capacity);
  }

  /** Endpoints that fit without growing. */
  get capacity(): number {
    return this.#exports.capacityOf();
  }

  /**
   * Makes room for `capacity` endpoints; rows stay, views are made anew.
   *
   * @returns whether columns moved, so that the rows must be scored again.
   * @throws KernelError when the host has no more memory; nothing has changed then.
   */
  reserve(capacity: number): boolean {
    const { capacityOf, reserve } = this.#exports;
    const before = capacityOf();
    if (capacity <= before && before > 0) return false;
    // Doubling keeps a pool that grows by one from moving its columns every time.
    const doubled = Math.min(Math.max(capacity, 2 * before, 1), MAX_CAPACITY);
    if (!(capacity <= MAX_CAPACITY && (reserve(doubled) || reserve(capacity)))) {
      throw new KernelError(
        `no memory for ${capacity} endpoints: the kernel holds at most ${MAX_CAPACITY}, and ` +
          "128 bytes for each",
      );
    }
    this.#makeViews();
    return true;
  }

  /** Sets S, the staleness policy and how long a reading is held. */
  configure(config: ResolvedConfig): void {
    const staleness = config.metricsStalenessThreshold;
    const held = config.stalenessPolicy === "hold" ? config.holdFor : 0;
    this.#exports.configure(staleness, staleness + held, +(config.stalenessPolicy === "ignore"));
  }

  /** The one place where views are made: after every growth, on the buffer that is there now. */
  #makeViews(): void {
    const { memory, capacityOf, rowsPtr, resultPtr, columnPtr } = this.#exports;
    const capacity = capacityOf();
    const buffer = memory.buffer;
    this.rows = new Float64Array(buffer, rowsPtr(), capacity * ROW);
    this.result = new Float64Array(buffer, resultPtr(), RESULT_LENGTH);
    this.effective = new Float64Array(buffer, columnPtr(EFFECTIVE_COLUMN) >>> 0, capacity);
    this.candidates = new Uint32Array(buffer, columnPtr(CANDIDATES_COLUMN) >>> 0, capacity);
  }
}

/**
 * Writes one endpoint's thresholds and limits (R7) into its row.
 *
 * @param row index of the endpoint.
 * @param q Q in requests, @param k K as a fraction, @param h headroom as a fraction.
 */
export function writeLimits(
  rows: Float64Array,
  row: number,
  q: number,
  k: number,
  h: number,
): void {
  const at = row * ROW;
  rows[at + QUEUE_THRESHOLD] = q;
  rows[at + KV_THRESHOLD] = k;
  rows[at + QUEUE_LIMIT] = q * (1 + h);
  rows[at + KV_LIMIT] = Math.min(1, k * (1 + h));
}
