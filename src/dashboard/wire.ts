// What goes over the wire to the dashboard's page. An endpoint is a row of values without names, and what
// seldom changes goes apart, so that a thousand endpoints twice a second stay small. The page imports this too.

import type { BandStats } from "../flow/controller";
import type { EndpointSnapshot, PoolSnapshot } from "../snapshot";
import type { Drop, HistoryPoint } from "./journal";
import { round } from "./journal";
import type { Slice } from "./ring";

/** Why an endpoint is a candidate ("ok") or not, in the order of their numbers on the wire. */
export const STATES = [
  "ok",
  "held-off",
  "queue-full",
  "kv-full",
  "stale",
  "future",
  "unusable",
] as const;

/** Why an endpoint is a candidate or not. */
export type ShownState = (typeof STATES)[number];

/** What seldom changes of an endpoint. */
export type About = readonly [
  id: string,
  labels: string,
  weight: number,
  queueLimit: number,
  kvLimit: number,
  kvCapacityTokens: number | null,
  engines: number,
];

/** What changes all the time. `null`: unknown. */
export type Row = readonly [
  state: number,
  /** 0: "ok". */
  reason: string | 0,
  score: number,
  projectedWaiting: number | null,
  projectedKv: number | null,
  waiting: number | null,
  kv: number | null,
  running: number | null,
  leases: number,
  unstarted: number,
  others: number,
  rank: number,
  slow: number,
  ageS: number | null,
  unusableReports: number,
  lastFault: string | 0,
];

/** The pool as a whole. */
export type Head = Omit<PoolSnapshot, "endpoints"> & {
  /** Requests that are being served; null: not counted. */
  readonly live: number | null;
};

/** A flow controller: its model, or `*`, and its bands. */
export interface GateView {
  readonly model: string;
  readonly waiting: number;
  readonly saturation: number;
  /** Admissions per second. */
  readonly drainRate: number;
  readonly closing: boolean;
  readonly bands: readonly BandStats[];
}

/** The event `full`: everything. */
export interface FullEvent {
  readonly head: Head;
  readonly about: readonly About[];
  readonly rows: readonly Row[];
  readonly gates: readonly GateView[];
  readonly history: Slice<HistoryPoint>;
  readonly drops: Slice<Drop>;
}

/** The event `update`: what has changed since the event before. */
export interface UpdateEvent {
  readonly head: Head;
  /** Each with the index of its endpoint before it. */
  readonly rows: readonly (readonly [index: number, row: Row])[];
  /** Undefined: as before. */
  readonly gates?: readonly GateView[];
  readonly history: Slice<HistoryPoint>;
  readonly drops: Slice<Drop>;
}

/** What seldom changes of an endpoint. */
export function aboutOf(endpoint: EndpointSnapshot): About {
  const { id, labels, weight, queueLimit, kvLimit, kvCapacityTokens, engines } = endpoint;
  const text = Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
  return [id, text, weight, round(queueLimit), round(kvLimit), kvCapacityTokens, engines];
}

/** What changes of an endpoint. @param isHeld it has just refused a request. */
export function rowOf(endpoint: EndpointSnapshot, isHeld: boolean): Row {
  const { state, reason, score, leases, unstartedLeases, othersRequests, rank, slow } = endpoint;
  return [
    STATES.indexOf(isHeld ? "held-off" : state),
    isHeld ? "has just refused a request" : reason === "ok" ? 0 : reason,
    round(score),
    roundOrNull(endpoint.projectedWaiting),
    roundOrNull(endpoint.projectedKv),
    endpoint.waitingQueueSize,
    roundOrNull(endpoint.kvCacheUsagePercent),
    endpoint.runningRequests,
    leases,
    unstartedLeases,
    round(othersRequests),
    round(rank),
    round(slow),
    // Tenths of a second: the age of a good reading differs at every look, and nobody reads it.
    endpoint.ageMs === null ? null : Math.round(endpoint.ageMs / 100) / 10,
    endpoint.unusableReports,
    endpoint.lastFault ?? 0,
  ];
}

function roundOrNull(value: number | null): number | null {
  return value === null ? null : round(value);
}
