// Kinds of options that the scenario's readers share.

import type { Field } from "../config";
import type { ConfigFault } from "../errors";

/** A number that satisfies `isRight`. */
export function numberField(rule: string, isRight: (value: number) => boolean): Field<number> {
  return {
    rule,
    read: (value) =>
      typeof value === "number" && Number.isFinite(value) && isRight(value) ? value : undefined,
  };
}

/** An integer from `min` to `max`. */
export function integerField(unit: string, min: number, max: number): Field<number> {
  const rule = `an integer from ${min} to ${max} (${unit})`;
  return numberField(rule, (v) => Number.isInteger(v) && v >= min && v <= max);
}

/** A value that is read elsewhere. */
export const ANY: Field<object> = { rule: "given", read: (value) => value as object }; // checked there
/** True or false. */
export const BOOLEAN: Field<boolean> = {
  rule: "true or false",
  read: (value) => (typeof value === "boolean" ? value : undefined),
};
/** A text. */
export const TEXT: Field<string> = {
  rule: "a text",
  read: (value) => (typeof value === "string" ? value : undefined),
};

/** A list at `path`; an empty or missing one is a fault. */
export function readList(input: unknown, path: string, faults: ConfigFault[]): unknown[] {
  if (Array.isArray(input) && input.length > 0) return input;
  faults.push({ path, value: input, rule: "must be a list with at least one entry" });
  return [];
}
