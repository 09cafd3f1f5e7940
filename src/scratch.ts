// Kernels for those who pack on every call. One is enough, unless a callback of the caller's enters
// a detector again while it packs; then each nesting gets its own.

import type { ResolvedConfig } from "./config";
import { Kernel, ROW, WEIGHT, writeLimits } from "./kernel";

const FIRST_CAPACITY = 64;
const idle: ScratchKernel[] = [];

/** A kernel whose rows remember whose limits they carry, so that those are not written each time. */
export class ScratchKernel extends Kernel {
  #limitsOf: ResolvedConfig | undefined;
  #limitsIn = 0;

  /** Gives the first `n` rows the config's limits and the weight 1. */
  writeSharedLimits(config: ResolvedConfig, n: number): void {
    if (this.#limitsOf !== config) {
      this.#limitsOf = config;
      this.#limitsIn = 0;
    }
    const { queueDepthThreshold: q, kvCacheUtilThreshold: k, headroom: h } = config;
    for (; this.#limitsIn < n; this.#limitsIn++) {
      writeLimits(this.rows, this.#limitsIn, q, k, h);
      this.rows[this.#limitsIn * ROW + WEIGHT] = 1;
    }
  }

  /** The rows are about to carry limits of their own. */
  forgetLimits(): void {
    this.#limitsOf = undefined;
  }
}

/** A kernel with room for `n` endpoints that nobody else uses until it is returned. */
export function borrowKernel(n: number): ScratchKernel {
  const kernel = idle.pop();
  if (kernel === undefined) return new ScratchKernel(Math.max(n, FIRST_CAPACITY));
  try {
    kernel.reserve(n);
  } catch (error) {
    idle.push(kernel);
    throw error;
  }
  return kernel;
}

/** Gives a kernel back. */
export function returnKernel(kernel: ScratchKernel): void {
  idle.push(kernel);
}
