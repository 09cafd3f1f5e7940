// The controls: a field for every part of the scenario, made from fields.ts, and the faults beside them.

import type { ConfigFault } from "../../errors";
import { type FieldSpec, GROUPS, type GroupSpec } from "./fields";
import { type Tree, valueAt, withValue } from "./tree";

/** What the form tells. */
export interface FormHost {
  /** The scenario was changed to this. */
  changed(tree: Tree): void;
  /** A trace was chosen for a tenant. */
  traceChosen(tenant: number, file: File): void;
}

/** The form. */
export class ScenarioForm {
  readonly #root: HTMLElement;
  readonly #faultList: HTMLElement;
  readonly #host: FormHost;
  readonly #open = new Set(GROUPS.filter(({ isOpen }) => isOpen).map(({ title }) => title));
  #tree: Tree = {};

  constructor(root: HTMLElement, faultList: HTMLElement, host: FormHost) {
    this.#root = root;
    this.#faultList = faultList;
    this.#host = host;
  }

  /** Shows a scenario. */
  show(tree: Tree): void {
    this.#tree = tree;
    this.#root.replaceChildren(...GROUPS.map((group) => this.#makeGroup(group)));
  }

  /** Shows faults beside their fields, and those without a field above all. */
  showFaults(faults: readonly Pick<ConfigFault, "path" | "rule">[]): void {
    for (const field of this.#root.querySelectorAll("[aria-invalid]")) {
      field.removeAttribute("aria-invalid");
      field.removeAttribute("aria-describedby");
    }
    for (const note of this.#root.querySelectorAll(".fault")) note.remove();
    const rest: string[] = [];
    for (const [i, { path, rule }] of faults.entries()) {
      const field = this.#findField(path);
      if (field === null) {
        rest.push(`${path}: ${rule}`);
        continue;
      }
      const note = element("span", { className: "fault", id: `fault-${i}`, textContent: rule });
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", note.id);
      field.closest("label")?.append(note);
      const details = field.closest("details");
      if (details !== null) details.open = true;
    }
    const lines =
      faults.length === 0 ? [] : [`This cannot be run yet: ${faults.length} to put right.`];
    this.#faultList.replaceChildren(
      ...[...lines, ...rest].map((line) => element("p", { className: "fault", textContent: line })),
    );
  }

  /** The field of a path, or of what holds it: `prompt` is shown as `prompt.mean`. */
  #findField(path: string): HTMLElement | null {
    const exact = this.#root.querySelector<HTMLElement>(`[data-path="${CSS.escape(path)}"]`);
    return exact ?? this.#root.querySelector<HTMLElement>(`[data-path="${CSS.escape(path)}.mean"]`);
  }

  #makeGroup({ title, fields, list }: GroupSpec): HTMLElement {
    const details = element("details", { open: this.#open.has(title) });
    details.addEventListener("toggle", () => {
      if (details.open) this.#open.add(title);
      else this.#open.delete(title);
    });
    details.append(element("summary", { textContent: title }));
    if (list === undefined) {
      details.append(this.#makeFields(fields, ""));
      return details;
    }
    const entries = valueAt(this.#tree, list.path);
    const all = Array.isArray(entries) ? entries : [];
    for (const i of all.keys())
      details.append(this.#makeEntry(list.path, list.entry, fields, i, all));
    const add = element("button", {
      type: "button",
      textContent: `Add ${list.entry.toLowerCase()}`,
    });
    add.addEventListener("click", () => this.#change(list.path, [...all, list.blank], true));
    details.append(add);
    return details;
  }

  #makeEntry(path: string, name: string, fields: readonly FieldSpec[], i: number, all: unknown[]) {
    const set = element("fieldset", {});
    set.append(element("legend", { textContent: `${name} ${i + 1}` }));
    set.append(this.#makeFields(fields, `${path}.${i}.`));
    if (path === "traffic") set.append(this.#makeTraceInput(i));
    if (all.length > 1 || path === "faults") {
      const remove = element("button", {
        type: "button",
        textContent: `Remove ${name.toLowerCase()} ${i + 1}`,
      });
      const rest = all.filter((_, k) => k !== i);
      remove.addEventListener("click", () =>
        this.#change(path, rest.length > 0 ? rest : undefined, true),
      );
      set.append(remove);
    }
    return set;
  }

  #makeTraceInput(tenant: number): HTMLElement {
    const trace = valueAt(this.#tree, `traffic.${tenant}.trace`);
    const count = Array.isArray(trace) ? ` (${trace.length} requests)` : "";
    const label = element("label", {
      textContent: `Trace: Azure, BurstGPT or Mooncake file${count}`,
    });
    const input = element("input", { type: "file", accept: ".csv,.jsonl,.json,.txt" });
    input.addEventListener("change", () => {
      const [file] = input.files ?? [];
      if (file !== undefined) this.#host.traceChosen(tenant, file);
    });
    label.append(input);
    return label;
  }

  #makeFields(fields: readonly FieldSpec[], prefix: string): HTMLElement {
    const box = element("div", { className: "fields" });
    box.append(...fields.map((field) => this.#makeField(field, prefix + field.path)));
    return box;
  }

  #makeField(spec: FieldSpec, path: string): HTMLElement {
    const { kind, label: text, isWide = false } = spec;
    const label = element("label", {
      className: `${kind === "check" ? "check" : ""} ${isWide ? "wide" : ""}`,
    });
    const value = shownValue(this.#tree, path);
    const field = makeInput(spec, value);
    field.dataset.path = path;
    field.addEventListener("change", () => this.#change(path, readInput(spec, field), false));
    if (kind === "check") label.append(field, text);
    else label.append(text, field);
    return label;
  }

  #change(path: string, value: unknown, redraw: boolean): void {
    let tree = this.#tree;
    // A length that was one number becomes a mean when its parts are set.
    for (const part of ["prompt", "output"]) {
      const holder = path.replace(/\.[^.]+$/, "");
      const fixed = valueAt(tree, holder);
      if (holder.endsWith(`.${part}`) && typeof fixed === "number") {
        tree = withValue(tree, holder, { mean: fixed, cv: 0 });
      }
    }
    if (path.startsWith("flow.") && valueAt(tree, "flow") === true)
      tree = withValue(tree, "flow", {});
    if (path.startsWith("flow.ceilings.")) {
      tree = withValue(tree, "flow.ceilings.policy", "priority-holdback");
      for (const end of ["min", "max"]) {
        if (valueAt(tree, `flow.ceilings.${end}`) === undefined)
          tree = withValue(tree, `flow.ceilings.${end}`, 1);
      }
    }
    tree = withValue(tree, path, value);
    this.#tree = tree;
    this.#host.changed(tree);
    if (redraw) this.show(tree);
  }
}

/** What a field shows of a tree: a length that is one number is its mean; any flow is on. */
function shownValue(tree: Tree, path: string): unknown {
  const value = valueAt(tree, path);
  if (path === "flow") return value !== undefined && value !== false;
  if (value === undefined && path.endsWith(".mean")) {
    const fixed = valueAt(tree, path.slice(0, -".mean".length));
    return typeof fixed === "number" ? fixed : undefined;
  }
  return value;
}

type Input = HTMLInputElement | HTMLSelectElement;

function makeInput(spec: FieldSpec, value: unknown): Input {
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

function readInput({ kind, unset, path }: FieldSpec, field: Input): unknown {
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
function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]>,
): HTMLElementTagNameMap[K] {
  return Object.assign(document.createElement(tag), properties);
}
