// At which saturation each band is held back.

import { type Field, type Fields, oneOf, readFields } from "../config";
import { ConfigError, type ConfigFault } from "../errors";

/** How the bands' ceilings are set. */
export type Ceilings =
  /** The same for all, or one per band, highest first. Default 1. */
  | { readonly policy: "static"; readonly ceiling?: number | readonly number[] | undefined }
  /**
   * Lower bands are held back earlier: band i of N gets `max - i * (max - min) / (N - 1)`; with
   * one band, `max`.
   */
  | { readonly policy: "priority-holdback"; readonly min: number; readonly max: number };

const policy = oneOf<Ceilings["policy"]>("static", "priority-holdback");
const number: Field<number> = {
  rule: "a number > 0",
  read: (value) => (isCeiling(value) ? value : undefined),
};
const STATIC_FIELDS: Fields<{ policy: string; ceiling: number | readonly number[] }> = {
  policy,
  ceiling: {
    rule: "a number > 0, or one for each band",
    read: (value) =>
      isCeiling(value) || (Array.isArray(value) && value.every(isCeiling)) ? value : undefined,
  },
};
const HOLDBACK_FIELDS: Fields<{ policy: string; min: number; max: number }> = {
  policy,
  min: number,
  max: number,
};

/**
 * The ceiling of each of `n` bands, highest first.
 *
 * @throws ConfigError when a ceiling is no number > 0, or there is not one per band.
 */
export function resolveCeilings(ceilings: Ceilings | undefined, n: number): readonly number[] {
  if (ceilings === undefined) return Array.from({ length: n }, () => 1);
  const faults: ConfigFault[] = [];
  const given: Partial<Ceilings> | null = ceilings; // a file may say anything
  const read = given?.policy === "priority-holdback" ? readHoldback : readStatic;
  const list = read(ceilings, n, faults);
  if (faults.length > 0) throw new ConfigError(faults);
  return list;
}

function readStatic(given: unknown, n: number, faults: ConfigFault[]): readonly number[] {
  const read = readFields(STATIC_FIELDS, given, "ceilings", faults);
  if (faults.length > 0) return [];
  if (read.policy === undefined) {
    faults.push({ path: "ceilings.policy", value: undefined, rule: `must be ${policy.rule}` });
  }
  const { ceiling = 1 } = read;
  const list = typeof ceiling === "number" ? Array.from({ length: n }, () => ceiling) : ceiling;
  if (list.length !== n) {
    const rule = `must be a number > 0, or one for each of the ${n} bands`;
    faults.push({ path: "ceilings.ceiling", value: ceiling, rule });
  }
  return [...list];
}

function readHoldback(given: unknown, n: number, faults: ConfigFault[]): readonly number[] {
  const { min, max } = readFields(HOLDBACK_FIELDS, given, "ceilings", faults);
  if (min !== undefined && max !== undefined && min <= max) {
    const step = n > 1 ? (max - min) / (n - 1) : 0;
    return Array.from({ length: n }, (_, i) => max - i * step);
  }
  faults.push({ path: "ceilings", value: given, rule: "must have 0 < min <= max" });
  return [];
}

function isCeiling(value: unknown): value is number {
  return typeof value === "number" && value > 0 && value < Number.POSITIVE_INFINITY;
}
