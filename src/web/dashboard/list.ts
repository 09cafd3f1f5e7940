// Which endpoints are shown, and in which order. Pure.

import type { ShownState } from "../../dashboard/wire";
import type { ShownEndpoint } from "./model";

/** A way to sort. */
export interface Sort {
  readonly label: string;
  /** What it sorts by; unknown values come last. */
  readonly of: (endpoint: ShownEndpoint) => number | string | null;
  /** The interesting end comes first. */
  readonly isLargestFirst: boolean;
}

/** Ways to sort, by name; `pool` is the order of the configuration. */
export const SORTS = {
  pool: { label: "pool order", of: () => 0, isLargestFirst: false },
  id: { label: "name", of: ({ id }) => id, isLargestFirst: false },
  state: { label: "state", of: ({ state }) => WORST.indexOf(state), isLargestFirst: false },
  score: { label: "score", of: ({ score }) => score, isLargestFirst: true },
  waiting: { label: "waiting", of: (e) => e.projectedWaiting, isLargestFirst: true },
  kv: { label: "KV cache", of: ({ projectedKv }) => projectedKv, isLargestFirst: true },
  running: { label: "running", of: ({ running }) => running, isLargestFirst: true },
  own: { label: "own requests", of: ({ leases }) => leases, isLargestFirst: true },
  others: { label: "others' requests", of: ({ others }) => others, isLargestFirst: true },
  rank: { label: "rank", of: ({ rank }) => rank, isLargestFirst: false },
  slow: { label: "slowness", of: ({ slow }) => slow, isLargestFirst: true },
  age: { label: "age of reading", of: ({ ageS }) => ageS, isLargestFirst: true },
} satisfies Readonly<Record<string, Sort>>;

/** A name of `SORTS`. */
export type SortName = keyof typeof SORTS;

/** What nobody wants to miss comes first. */
const WORST: readonly ShownState[] = [
  "unusable",
  "future",
  "stale",
  "held-off",
  "kv-full",
  "queue-full",
  "ok",
];

/** Which endpoints: all, those that are no candidates, or those of one state. */
export type StateFilter = "all" | "out" | ShownState;

/** What a list shows. */
export interface ListOptions {
  /** Words that id, labels or reason must contain, all of them. */
  readonly text: string;
  readonly state: StateFilter;
  readonly sort: SortName;
  readonly isReversed: boolean;
}

/** The endpoints that are shown, in their order; those that are equal keep the pool's. */
export function listOf(
  endpoints: readonly ShownEndpoint[],
  { text, state, sort, isReversed }: ListOptions,
): ShownEndpoint[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = endpoints.filter((endpoint) => {
    if (state === "out" ? endpoint.state === "ok" : state !== "all" && endpoint.state !== state) {
      return false;
    }
    if (words.length === 0) return true;
    const haystack = `${endpoint.id} ${endpoint.labels} ${endpoint.reason}`.toLowerCase();
    return words.every((word) => haystack.includes(word));
  });
  if (sort === "pool") return isReversed ? shown.reverse() : shown;
  const { of, isLargestFirst }: Sort = SORTS[sort];
  const sign = isLargestFirst === isReversed ? 1 : -1;
  return shown.sort((a, b) => compare(of(a), of(b), sign));
}

function compare(a: number | string | null, b: number | string | null, sign: number): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (typeof a === "string" && typeof b === "string") return sign * collator.compare(a, b);
  return sign * (Number(a) - Number(b));
}

const collator = new Intl.Collator("en", { numeric: true });
