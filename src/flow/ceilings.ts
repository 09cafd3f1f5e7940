// At which saturation each band is held back.

import { ConfigError } from "../errors";

/** How the bands' ceilings are set. */
export type Ceilings =
  /** The same for all, or one per band, highest first. Default 1. */
  | { readonly policy: "static"; readonly ceiling?: number | readonly number[] | undefined }
  /**
   * Lower bands are held back earlier: band i of N gets `max - i * (max - min) / (N - 1)`; with
   * one band, `max`.
   */
  | { readonly policy: "priority-holdback"; readonly min: number; readonly max: number };

/**
 * The ceiling of each of `n` bands, highest first.
 *
 * @throws ConfigError when a ceiling is no number > 0, or there is not one per band.
 */
export function resolveCeilings(ceilings: Ceilings | undefined, n: number): readonly number[] {
  if (ceilings === undefined) return Array.from({ length: n }, () => 1);
  const { policy } = ceilings;
  if (policy === "static") return staticCeilings(ceilings.ceiling ?? 1, n);
  if (policy === "priority-holdback") {
    const { min, max } = ceilings;
    if (isCeiling(min) && isCeiling(max) && min <= max) {
      const step = n > 1 ? (max - min) / (n - 1) : 0;
      return Array.from({ length: n }, (_, i) => max - i * step);
    }
    const rule = "must have 0 < min <= max";
    throw new ConfigError([{ path: "ceilings", value: ceilings, rule }]);
  }
  const rule = 'must be one of "static", "priority-holdback"';
  throw new ConfigError([{ path: "ceilings.policy", value: policy, rule }]);
}

function staticCeilings(given: number | readonly number[], n: number): readonly number[] {
  const list = typeof given === "number" ? Array.from({ length: n }, () => given) : given;
  if (Array.isArray(list) && list.length === n && list.every(isCeiling)) return [...list];
  const rule = `must be a number > 0, or one for each of the ${n} bands`;
  throw new ConfigError([{ path: "ceilings.ceiling", value: given, rule }]);
}

function isCeiling(value: unknown): value is number {
  return typeof value === "number" && value > 0 && value < Number.POSITIVE_INFINITY;
}
