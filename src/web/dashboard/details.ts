// All that is known of one endpoint, and why it is or is not a candidate.

import { element, setText } from "./dom";
import type { ShownEndpoint } from "./model";
import { count, decimal, percent, UNKNOWN } from "./text";

const FACTS: readonly (readonly [name: string, text: (endpoint: ShownEndpoint) => string])[] = [
  ["Score", ({ score }) => decimal(score, 3)],
  ["Waiting now", (e) => `${decimal(e.projectedWaiting, 1)}, full at ${e.queueLimit}`],
  ["KV cache now", (e) => `${percent(e.projectedKv)}, full at ${percent(e.kvLimit)}`],
  ["As last read", (e) => `${decimal(e.waiting)} waiting, ${decimal(e.running)} running`],
  ["KV as last read", ({ kv }) => (kv === null ? "not told" : percent(kv))],
  [
    "Own requests",
    ({ leases, unstarted }) =>
      unstarted === 0 ? `${leases}` : `${leases}, of which ${unstarted} without a first byte`,
  ],
  ["Others' requests", ({ others }) => decimal(others)],
  ["Rank", ({ rank }) => `${decimal(rank, 2)}; the least is chosen`],
  [
    "Pace",
    ({ slow }) => (slow === 1 ? "as the median" : `${decimal(slow, 2)} x the median's time`),
  ],
  ["Last read", ({ ageS }) => (ageS === null ? "never" : `${decimal(ageS, 1)} s ago`)],
  ["Unusable reports", (e) => `${e.unusableReports}${e.lastFault && `, last: ${e.lastFault}`}`],
  [
    "KV capacity",
    (e) => (e.kvCapacityTokens === null ? UNKNOWN : `${count(e.kvCapacityTokens)} tokens`),
  ],
  ["Engines, weight", ({ engines, weight }) => `${engines}, ${weight}`],
  ["Labels", ({ labels }) => labels || UNKNOWN],
];

/** The panel. */
export class Details {
  readonly #title = element("h3", { id: "details-title" });
  readonly #reason = element("p", { class: "reason" });
  readonly #list = element("dl");
  readonly #values: readonly HTMLElement[];

  constructor(host: HTMLElement) {
    this.#values = FACTS.map(() => element("dd"));
    for (const [i, [name]] of FACTS.entries()) {
      const value = this.#values[i] as HTMLElement; // one for each
      this.#list.append(element("div", {}, [element("dt", { text: name }), value]));
    }
    host.append(this.#title, this.#reason, this.#list);
    this.show(undefined, false);
  }

  /** @param isKnown false: an endpoint that was selected has gone. */
  show(endpoint: ShownEndpoint | undefined, isGone: boolean): void {
    this.#list.hidden = endpoint === undefined;
    if (endpoint === undefined) {
      setText(this.#title, isGone ? "It is gone" : "No endpoint selected");
      setText(this.#reason, "Select a row or a vessel to see all that is known of it.");
      this.#reason.className = "reason soft";
      return;
    }
    const { id, state, reason } = endpoint;
    setText(this.#title, id);
    setText(this.#reason, state === "ok" ? `A ${reason}.` : `No candidate: ${reason}.`);
    this.#reason.className = state === "ok" ? "reason good" : "reason fault";
    for (const [i, [, text]] of FACTS.entries()) {
      setText(this.#values[i] as HTMLElement, text(endpoint));
    }
  }
}
