// What is held back and why, and which requests got no answer.

import type { Drop } from "../../dashboard/journal";
import type { GateView } from "../../dashboard/wire";
import { element, setChildren, setText } from "./dom";
import { count, decimal, span } from "./text";

const HEADS: readonly (readonly [title: string, isNarrow: boolean])[] = [
  ["Band", true],
  ["Ceiling", false],
  ["Waiting", true],
  ["Flows", false],
  ["Admitted", true],
  ["Refused", true],
  ["Mean wait", false],
  ["Longest wait", true],
];

/** One table per gate. */
export class GateTables {
  readonly #host: HTMLElement;

  constructor(host: HTMLElement) {
    this.#host = host;
  }

  show(gates: readonly GateView[]): void {
    while (this.#host.children.length > gates.length) this.#host.lastElementChild?.remove();
    while (this.#host.children.length < gates.length) this.#host.append(makeTable());
    for (const [i, gate] of gates.entries()) {
      const table = this.#host.children[i] as HTMLTableElement; // made above
      setText(table.caption as HTMLElement, captionOf(gate));
      setChildren(table.tBodies[0] as HTMLElement, gate.bands.map(rowOf), makeRow);
    }
  }
}

function makeTable(): HTMLTableElement {
  const heads = HEADS.map(([text, isNarrow]) =>
    element("th", { scope: "col", class: isNarrow ? "" : "wide", text }),
  );
  return element("table", { class: "gate" }, [
    element("caption"),
    element("thead", {}, [element("tr", {}, heads)]),
    element("tbody"),
  ]);
}

function makeRow(): HTMLElement {
  const cells = HEADS.map(([, isNarrow], i) =>
    i === 0 ? element("th", { scope: "row" }) : element("td", { class: isNarrow ? "" : "wide" }),
  );
  return element("tr", {}, cells);
}

function captionOf({ model, saturation, drainRate, closing }: GateView): string {
  const who = model === "*" ? "All models" : `Model ${model}`;
  const state = closing ? "closing, nothing new is let in" : `saturation ${decimal(saturation, 2)}`;
  return `${who}: ${state}, ${decimal(drainRate, 1)} let through a second`;
}

function rowOf({
  name,
  ceiling,
  waiting,
  flows,
  admitted,
  refused,
  ...times
}: GateView["bands"][number]): string[] {
  const reasons = Object.entries(refused).filter(([, times]) => times > 0);
  const total = reasons.reduce((sum, [, times]) => sum + times, 0);
  const ended = admitted + total;
  const why = reasons.map(([reason, times]) => `${count(times)} ${reason}`).join(", ");
  return [
    name,
    decimal(ceiling, 2),
    count(waiting),
    count(flows),
    count(admitted),
    reasons.length > 1 ? `${count(total)}: ${why}` : why || "0",
    span(ended === 0 ? null : times.waitedMs / ended),
    span(times.longestWaitMs),
  ];
}

/** The last drops, those of one kind together. */
export class DropList {
  readonly #list = element("ul", { class: "drops" });
  readonly #none = element("p", { class: "soft", text: "None." });

  constructor(host: HTMLElement) {
    host.append(this.#none, this.#list);
  }

  /** @param now on the clock of the drops, in ms. */
  show(drops: readonly Drop[], now: number): void {
    const kinds = new Map<string, { drop: Drop; times: number }>();
    for (const drop of drops) {
      const { reason, status, model, band } = drop;
      const key = JSON.stringify([reason, status, model, band]);
      const times = (kinds.get(key)?.times ?? 0) + 1;
      kinds.delete(key); // the last one of a kind decides its place
      kinds.set(key, { drop, times });
    }
    this.#none.hidden = kinds.size > 0;
    const rows = [...kinds.values()]
      .reverse()
      .map(({ drop, times }) => [
        `${span(Math.max(0, Math.floor((now - drop.time) / 1000)) * 1000)} ago`,
        `${drop.status ?? ""} ${drop.reason}${times > 1 ? ` (${times} times)` : ""}`.trim(),
        [drop.message, whereOf(drop)].filter(Boolean).join("; "),
      ]);
    setChildren(this.#list, rows, () =>
      element("li", {}, [
        element("span", { class: "soft number" }),
        element("b"),
        element("span", { class: "message" }),
      ]),
    );
  }
}

function whereOf({ model, band, status, lastedMs }: Drop): string {
  const parts = [
    model === null || model === "*" ? "" : `model ${model}`,
    band === null ? "" : `band ${band}`,
    // Where the router has answered, its words say how long it took.
    status === null ? `after ${span(lastedMs)}` : "",
  ];
  return parts.filter(Boolean).join(", ");
}
