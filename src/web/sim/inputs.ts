// The controls of the form: how a field is made, filled and read.

import type { FieldSpec } from "./fields";
import { type Tree, valueAt } from "./tree";

/** What a field shows of a tree: a length that is one number is its mean; any flow is on. */
export function shownValue(tree: Tree, path: string): unknown {
  const value = valueAt(tree, path);
  if (path === "flow") return value !== undefined && value !== false;
  if (value === undefined && path.endsWith(".mean")) {
    const fixed = valueAt(tree, path.slice(0, -".mean".length));
    return typeof fixed === "number" ? fixed : undefined;
  }
  return value;
}

/** A control of the form. */
export type Input = HTMLInputElement | HTMLSelectElement;

/** The control of a field. */
export function makeInput(spec: FieldSpec, value: unknown): Input {
  const { kind, options = [], unset = "", min, max, step } = spec;
  if (kind === "select") {
    const select = element("select", {});
    const none =
      options.some((one) => one.value === "") || unset === ""
        ? []
        : [{ value: "", label: `${unset} (default)` }];
    select.append(...[...none, ...options].map((one) => new Option(one.label, one.value)));
    select.value = typeof value === "string" ? value : "";
    return select;
  }
  if (kind === "check") {
    return element("input", { type: "checkbox", checked: (value ?? unset === "true") === true });
  }
  const input = element("input", {
    type: kind === "number" ? "number" : "text",
    placeholder: unset,
  });
  input.value = value === undefined ? "" : Array.isArray(value) ? value.join(", ") : String(value);
  if (kind === "number") {
    input.min = String(min ?? "");
    input.max = String(max ?? "");
    input.step = step === undefined ? "any" : String(step);
    input.inputMode = "decimal";
  }
  return input;
}

/** What a control says; undefined: nothing, so that the default holds. */
export function readInput({ kind, unset, path }: FieldSpec, field: Input): unknown {
  if (field instanceof HTMLInputElement && kind === "check") {
    return String(field.checked) === unset ? undefined : field.checked;
  }
  const text = field.value.trim();
  if (text === "") return undefined;
  if (path === "endpoints") return text.split(",").map(Number);
  const isPlain = /^-?\d+(\.\d+)?$/.test(text);
  return kind === "number" || (isPlain && path !== "name") ? Number(text) : text;
}

/** An element with these properties. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]>,
): HTMLElementTagNameMap[K] {
  return Object.assign(document.createElement(tag), properties);
}
