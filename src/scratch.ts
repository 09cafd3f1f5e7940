// Kernels for those who pack on every call. One is enough, unless a callback of the caller's enters
// a detector again while it packs; then each nesting gets its own.

import { Kernel } from "./kernel";

const FIRST_CAPACITY = 64;
const idle: Kernel[] = [];

/** A kernel with room for `n` endpoints that nobody else uses until it is returned. */
export function borrowKernel(n: number): Kernel {
  const kernel = idle.pop();
  if (kernel === undefined) return new Kernel(Math.max(n, FIRST_CAPACITY));
  try {
    kernel.reserve(n);
  } catch (error) {
    idle.push(kernel);
    throw error;
  }
  return kernel;
}

/** Gives a kernel back. */
export function returnKernel(kernel: Kernel): void {
  idle.push(kernel);
}
