// The controls: a field for every part of the scenario, made from fields.ts, and the faults beside them.

import type { ConfigFault } from "../../errors";
import { type FieldSpec, GROUPS, type GroupSpec, type ListSpec } from "./fields";
import { withChange } from "./form-changes";
import { element, makeInput, readInput, shownValue } from "./inputs";
import { type Tree, valueAt } from "./tree";

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
        rest.push(path === "" ? rule : `${path}: ${rule}`);
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
    for (const i of all.keys()) details.append(this.#makeEntry(list, fields, i, all));
    const add = element("button", {
      type: "button",
      textContent: `Add ${list.entry.toLowerCase()}`,
    });
    add.dataset.add = list.path;
    add.addEventListener("click", () => {
      this.#change(list.path, [...all, list.blank]);
      this.#redraw(`[data-path^="${list.path}.${all.length}."]`);
    });
    details.append(add);
    return details;
  }

  #makeEntry(list: ListSpec, fields: readonly FieldSpec[], i: number, all: readonly unknown[]) {
    const { path, entry: name, mayBeEmpty = false } = list;
    const set = element("fieldset", {});
    set.append(element("legend", { textContent: `${name} ${i + 1}` }));
    set.append(this.#makeFields(fields, `${path}.${i}.`));
    if (path === "traffic") set.append(this.#makeTraceInput(i));
    if (all.length > 1 || mayBeEmpty) {
      const remove = element("button", {
        type: "button",
        textContent: `Remove ${name.toLowerCase()} ${i + 1}`,
      });
      const rest = all.filter((_, k) => k !== i);
      remove.addEventListener("click", () => {
        this.#change(path, rest.length > 0 ? rest : undefined);
        this.#redraw(`[data-add="${path}"]`);
      });
      set.append(remove);
    }
    return set;
  }

  /** Shows the scenario anew; the focus, whose element is gone, goes to `selector`. */
  #redraw(selector: string): void {
    this.show(this.#tree);
    this.#root.querySelector<HTMLElement>(selector)?.focus();
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
    field.addEventListener("change", () => {
      this.#change(path, readInput(spec, field));
      // The controller's own fields say nothing once it is off, and switch it on when they are set.
      if (path === "flow") this.#redraw('[data-path="flow"]');
      else if (path.startsWith("flow.")) this.#showFlow();
    });
    if (kind === "check") label.append(field, text);
    else label.append(text, field);
    return label;
  }

  /** Whether the controller is on, without another field losing the focus. */
  #showFlow(): void {
    const box = this.#root.querySelector<HTMLInputElement>('[data-path="flow"]');
    if (box !== null) box.checked = shownValue(this.#tree, "flow") === true;
  }

  #change(path: string, value: unknown): void {
    this.#tree = withChange(this.#tree, path, value);
    this.#host.changed(this.#tree);
  }
}
