// The pool in a line of figures, and what somebody should be told at once.

import type { GateView, Head } from "../../dashboard/wire";
import { element, setText } from "./dom";
import type { ShownEndpoint } from "./model";
import { count, decimal, span, UNKNOWN } from "./text";

const NAMES = [
  "Saturation",
  "Candidates",
  "Fresh readings",
  "Served now",
  "Held back",
  "Oldest unanswered",
];

/** The figures. */
export class Summary {
  readonly #values: readonly HTMLElement[];
  readonly #warning: HTMLElement;

  constructor(list: HTMLElement, warning: HTMLElement) {
    this.#warning = warning;
    this.#values = NAMES.map((name) => {
      const value = element("dd", { class: "number" });
      list.append(element("div", {}, [element("dt", { text: name }), value]));
      return value;
    });
  }

  show(head: Head, endpoints: readonly ShownEndpoint[], gates: readonly GateView[]): void {
    const { fresh, live, oldestUnstartedMs } = head;
    const passing = endpoints.filter(({ state }) => state === "ok").length;
    const texts = [
      decimal(head.saturation, 2),
      `${count(passing)} of ${count(endpoints.length)}`,
      `${count(fresh)} of ${count(endpoints.length)}`,
      live === null ? UNKNOWN : count(live),
      count(gates.reduce((sum, { waiting }) => sum + waiting, 0)),
      span(oldestUnstartedMs),
    ];
    for (const [i, text] of texts.entries()) setText(this.#values[i] as HTMLElement, text);
    this.#values[0]?.classList.toggle("over", head.saturation >= 1);
    setText(this.#warning, warningOf(head, endpoints, gates));
  }
}

function warningOf(
  { failedOpen }: Head,
  endpoints: readonly ShownEndpoint[],
  gates: readonly GateView[],
): string {
  if (gates.some(({ closing }) => closing)) return "The router is closing.";
  if (endpoints.length === 0) return "There is no endpoint: every request is refused.";
  if (failedOpen) return "No endpoint passes, so that all of them count as candidates (fail-open).";
  return "";
}
