// A pool as plain data: what dashboards, the command line and tests look at, and in words why an
// endpoint is or is not a candidate.

import type { Board } from "./board";
import type { Aggregation, ResolvedConfig } from "./config";
import { formatDuration } from "./duration";
import type { Endpoint, EndpointState } from "./endpoint";
import type { Evaluation, GateReason } from "./evaluation";
import { othersOf } from "./projection";

/** One endpoint in a snapshot. `null`: unknown. */
export interface EndpointSnapshot {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Requests that wait, as last read. */
  readonly waitingQueueSize: number | null;
  /** Share of the KV cache in use, as last read; null also where the engine never says. */
  readonly kvCacheUsagePercent: number | null;
  readonly runningRequests: number | null;
  readonly kvCapacityTokens: number | null;
  /** Engines behind this endpoint, as last read. */
  readonly engines: number;
  readonly worstEngineQueueSize: number | null;
  /** Requests that wait now, by the live projection; null before the first reading. */
  readonly projectedWaiting: number | null;
  /** KV usage now, by the live projection; null where the engine never says. */
  readonly projectedKv: number | null;
  /** This router's requests that have not ended, and those of whose answer nothing was seen. */
  readonly leases: number;
  readonly unstartedLeases: number;
  /** Requests of others at the endpoint, by the last reading. */
  readonly othersRequests: number;
  /** Work that lies before a request of the mean size; 1 = an idle endpoint of median pace. */
  readonly rank: number;
  /** How many times slower than the pool's median; 1 where about as fast, or not known. */
  readonly slow: number;
  /** Age of the last good reading in ms; null before the first. */
  readonly ageMs: number | null;
  /** Its score as it counts now. */
  readonly score: number;
  readonly weight: number;
  /** Waiting requests at which it is full. */
  readonly queueLimit: number;
  /** KV usage at which it is full. */
  readonly kvLimit: number;
  /** The queue alone decides: its engine has no reading of the KV cache. */
  readonly queueOnly: boolean;
  /** Whether it passes; "ok" is a candidate. */
  readonly state: EndpointState;
  /** The state in words, with value and limit. */
  readonly reason: string;
  /** Reports that could not be used, since it was added. */
  readonly unusableReports: number;
  /** What was wrong with the last of them. */
  readonly lastFault: string | null;
}

/** A pool at one instant. */
export interface PoolSnapshot
  extends Pick<
    Evaluation,
    | "saturation"
    | "failedOpen"
    | "fresh"
    | "stale"
    | "unusable"
    | "mean"
    | "capped"
    | "weighted"
    | "max"
  > {
  /** On the pool's clock, in ms. */
  readonly time: number;
  readonly aggregation: Aggregation;
  /** How many endpoints pass; 0 when the pool failed open. */
  readonly candidates: number;
  /** Age of the oldest lease of whose answer nothing was seen, in ms; null when there is none. */
  readonly oldestUnstartedMs: number | null;
  /** Mean prompt of the requests that said how large they are, in tokens. */
  readonly meanPromptTokens: number;
  readonly endpoints: readonly EndpointSnapshot[];
}

/** Makes the snapshot of a pool from its endpoints and a judgement of them at `now`. */
export function takeSnapshot(
  endpoints: readonly Endpoint[],
  board: Board,
  config: ResolvedConfig,
  evaluation: Evaluation<Endpoint>,
  now: number,
  leases: Pick<PoolSnapshot, "oldestUnstartedMs" | "meanPromptTokens">,
): PoolSnapshot {
  const { candidates, scores, validUntil: _, ...rest } = evaluation;
  return {
    ...rest,
    ...leases,
    time: now,
    aggregation: config.aggregation,
    candidates: evaluation.failedOpen ? 0 : candidates.length,
    endpoints: endpoints.map((endpoint, i) =>
      snapshotEndpoint(endpoint, board, config, scores[i] ?? 1, now, leases.meanPromptTokens),
    ),
  };
}

function snapshotEndpoint(
  endpoint: Endpoint,
  board: Board,
  config: ResolvedConfig,
  score: number,
  now: number,
  tokens: number,
): EndpointSnapshot {
  const { id, labels, engines, queueLimit, kvLimit, queueOnly, weight, pace, index } = endpoint;
  return {
    id,
    labels,
    waitingQueueSize: orNull(endpoint.waiting),
    kvCacheUsagePercent: orNull(endpoint.kv),
    runningRequests: orNull(endpoint.running),
    kvCapacityTokens: endpoint.kvCapacityTokens ?? null,
    engines,
    worstEngineQueueSize: orNull(endpoint.worstQueue),
    projectedWaiting: orNull(board.waiting(index)),
    projectedKv: Number.isNaN(endpoint.kv) ? null : board.kv(index),
    leases: endpoint.leases,
    unstartedLeases: endpoint.unstartedLeases,
    othersRequests: othersOf(endpoint),
    rank: board.rank(index, tokens),
    slow: pace.slow,
    ageMs: orNull(now - endpoint.updateTime),
    score,
    weight,
    queueLimit,
    kvLimit,
    queueOnly,
    ...explain(endpoint, board, config, now),
    unusableReports: endpoint.unusableCount,
    lastFault: endpoint.lastFault ?? null,
  };
}

function explain(
  endpoint: Endpoint,
  board: Board,
  config: ResolvedConfig,
  now: number,
): { state: EndpointState; reason: string } {
  const { queueLimit, kvLimit, queueOnly, index } = endpoint;
  const age = now - endpoint.updateTime;
  const staleness = config.metricsStalenessThreshold;
  if (Number.isNaN(age)) {
    return { state: "unusable", reason: endpoint.lastFault ?? "no reading yet" };
  }
  if (age > staleness) {
    const reason = `read ${formatAge(age)} ago > ${formatDuration(staleness)}`;
    return { state: "stale", reason };
  }
  if (age < -staleness) {
    return { state: "future", reason: `reading ${formatAge(-age)} in the future` };
  }
  const waiting = board.waiting(index);
  if (!(waiting < queueLimit)) {
    return { state: "queue-full", reason: `queue ${round(waiting)} >= ${round(queueLimit)}` };
  }
  const kv = board.kv(index);
  if (!queueOnly && !(kv < kvLimit)) {
    return { state: "kv-full", reason: `KV ${round(kv)} >= ${round(kvLimit)}` };
  }
  return { state: "ok", reason: queueOnly ? "ok (queue only, no KV reading)" : "ok" };
}

/**
 * What stands between a pool and more load: the resource in which its least loaded endpoint is the
 * nearest to its ideal, or its most loaded one. Fresh endpoints come first. Undefined where there is
 * none.
 *
 * @param isWorst look at the most loaded endpoint.
 * @param among ids of those to look at; undefined: all.
 */
export function explainGate(
  endpoints: readonly Endpoint[],
  board: Board,
  config: ResolvedConfig,
  scores: ArrayLike<number>,
  now: number,
  isWorst: boolean,
  among: ReadonlySet<string> | undefined,
): GateReason | undefined {
  let least = -1;
  let isLeastFresh = false;
  endpoints.forEach((endpoint, i) => {
    if (among?.has(endpoint.id) === false) return;
    const isFresh = Math.abs(now - endpoint.updateTime) <= config.metricsStalenessThreshold;
    const score = scores[i] ?? 1;
    const best = scores[least] ?? 1;
    const isLess = least < 0 || (isWorst ? score > best : score < best);
    if (isFresh === isLeastFresh ? isLess : isFresh) {
      least = i;
      isLeastFresh = isFresh;
    }
  });
  const endpoint = endpoints[least];
  if (endpoint === undefined) return undefined;
  const { id } = endpoint;
  if (!isLeastFresh) {
    const value = now - endpoint.updateTime;
    const limit = config.metricsStalenessThreshold;
    return { resource: "telemetry", value, limit, endpoint: id };
  }
  const waiting = board.waiting(least);
  const queueIdeal = endpoint.queueDepthThreshold * endpoint.engines;
  const kv = board.kv(least);
  const kvIdeal = endpoint.kvCacheUtilThreshold;
  return waiting / queueIdeal >= kv / kvIdeal
    ? { resource: "queue", value: waiting, limit: queueIdeal, endpoint: id }
    : { resource: "kv", value: kv, limit: kvIdeal, endpoint: id };
}

/** An age for people: whole ms, from a second on tenths of a second. */
function formatAge(ms: number): string {
  if (!Number.isFinite(ms) || ms > 9e12) return "ages";
  return formatDuration(ms < 1000 ? Math.round(ms) : Math.round(ms / 100) * 100);
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function orNull(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}
