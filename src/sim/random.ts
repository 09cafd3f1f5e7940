// Seeded random numbers: one generator (sfc32, by Chris Doty-Humphrey), and as many independent streams of a
// seed as there are names, so that a policy that draws more numbers meets the same traffic.

import { stableExp, stableLog } from "../stable-math";

/** One stream of random numbers. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;
  #spareNormal = Number.NaN;

  /**
   * @param seed any integer.
   * @param stream its name; the same seed and name give the same numbers everywhere.
   */
  constructor(seed: number, stream: string) {
    let hash = 0x811c9dc5;
    for (const unit of `${seed}/${stream}`) {
      hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), 0x01000193);
    }
    this.#a = hash | 0;
    this.#b = seed | 0;
    this.#c = Math.imul(hash, 0x9e3779b1) | 0;
    // The first numbers still show the seed.
    for (let i = 0; i < 16; i++) this.#next32();
  }

  /** Uniform in [0, 1), 53 bits. An arrow, so that it can be handed on by itself. */
  readonly next = (): number => {
    const high = this.#next32() >>> 5;
    const low = this.#next32() >>> 6;
    return (high * 67108864 + low) / 9007199254740992;
  };

  /** An integer in [0, n). */
  below(n: number): number {
    return Math.floor(this.next() * n);
  }

  /** Exponential with this mean. */
  exponential(mean: number): number {
    return -mean * stableLog(1 - this.next());
  }

  /** Normal with mean 0 and deviation 1 (polar method of Marsaglia). */
  normal(): number {
    if (!Number.isNaN(this.#spareNormal)) {
      const spare = this.#spareNormal;
      this.#spareNormal = Number.NaN;
      return spare;
    }
    for (;;) {
      const x = 2 * this.next() - 1;
      const y = 2 * this.next() - 1;
      const square = x * x + y * y;
      if (square >= 1 || square === 0) continue;
      const factor = Math.sqrt((-2 * stableLog(square)) / square);
      this.#spareNormal = y * factor;
      return x * factor;
    }
  }

  /**
   * Lognormal with this mean and coefficient of variation (deviation / mean).
   *
   * sigma^2 = ln(1 + cv^2), mu = ln(mean) - sigma^2 / 2
   */
  lognormal(mean: number, cv: number): number {
    const variance = stableLog(1 + cv * cv);
    const mu = stableLog(mean) - variance / 2;
    return stableExp(mu + Math.sqrt(variance) * this.normal());
  }

  /**
   * Gamma with this mean and coefficient of variation; cv 1 is the exponential (Marsaglia and Tsang,
   * "A simple method for generating gamma variables", 2000).
   */
  gamma(mean: number, cv: number): number {
    if (cv === 0) return mean;
    const shape = 1 / (cv * cv);
    const scale = mean / shape;
    if (shape >= 1) return scale * this.#gamma(shape);
    const boost = stableExp(stableLog(1 - this.next()) / shape);
    return scale * boost * this.#gamma(shape + 1);
  }

  #gamma(shape: number): number {
    const d = shape - 1 / 3;
    const c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = this.normal();
      const v = 1 + c * x;
      if (v <= 0) continue;
      const cube = v * v * v;
      const u = 1 - this.next();
      if (stableLog(u) < 0.5 * x * x + d - d * cube + d * stableLog(cube)) return d * cube;
    }
  }

  #next32(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return sum;
  }
}
