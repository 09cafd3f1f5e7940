// A pool as plain data: what dashboards, the command line and tests look at, and in words why an
// endpoint is or is not a candidate.

import type { Aggregation, ResolvedConfig } from "./config";
import { formatDuration } from "./duration";
import type { Endpoint, EndpointState } from "./endpoint";
import type { Evaluation } from "./evaluation";

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
  readonly endpoints: readonly EndpointSnapshot[];
}

/** Makes the snapshot of a pool from its endpoints and a judgement of them at `now`. */
export function takeSnapshot(
  endpoints: readonly Endpoint[],
  config: ResolvedConfig,
  evaluation: Evaluation<Endpoint>,
  now: number,
): PoolSnapshot {
  const { candidates, scores, validUntil: _, ...rest } = evaluation;
  return {
    ...rest,
    time: now,
    aggregation: config.aggregation,
    candidates: evaluation.failedOpen ? 0 : candidates.length,
    endpoints: endpoints.map((endpoint, i) =>
      snapshotEndpoint(endpoint, config, scores[i] ?? 1, now),
    ),
  };
}

function snapshotEndpoint(
  endpoint: Endpoint,
  config: ResolvedConfig,
  score: number,
  now: number,
): EndpointSnapshot {
  const { headroom, engines } = endpoint;
  const queueLimit = endpoint.queueDepthThreshold * engines * (1 + headroom);
  const kvLimit = Math.min(1, endpoint.kvCacheUtilThreshold * (1 + headroom));
  return {
    id: endpoint.id,
    labels: endpoint.labels,
    waitingQueueSize: orNull(endpoint.waiting),
    kvCacheUsagePercent: orNull(endpoint.kv),
    runningRequests: orNull(endpoint.running),
    kvCapacityTokens: endpoint.kvCapacityTokens ?? null,
    engines,
    worstEngineQueueSize: orNull(endpoint.worstQueue),
    ageMs: orNull(now - endpoint.updateTime),
    score,
    weight: endpoint.weight,
    queueLimit,
    kvLimit,
    queueOnly: endpoint.queueOnly,
    ...explain(endpoint, config, queueLimit, kvLimit, now),
    unusableReports: endpoint.unusableCount,
    lastFault: endpoint.lastFault ?? null,
  };
}

function explain(
  endpoint: Endpoint,
  config: ResolvedConfig,
  queueLimit: number,
  kvLimit: number,
  now: number,
): { state: EndpointState; reason: string } {
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
  if (!(endpoint.waiting < queueLimit)) {
    return { state: "queue-full", reason: `queue ${endpoint.waiting} >= ${round(queueLimit)}` };
  }
  if (!endpoint.queueOnly && !(endpoint.kv < kvLimit)) {
    return { state: "kv-full", reason: `KV ${round(endpoint.kv)} >= ${round(kvLimit)}` };
  }
  return { state: "ok", reason: endpoint.queueOnly ? "ok (queue only, no KV reading)" : "ok" };
}

/** An age for people: whole ms, from a second on tenths of a second. */
function formatAge(ms: number): string {
  if (!Number.isFinite(ms) || ms > 1e15) return "ages";
  return formatDuration(ms < 1000 ? Math.round(ms) : Math.round(ms / 100) * 100);
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function orNull(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}
