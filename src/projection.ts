// The live projection (DESIGN of the package: own part live, the others' part from the sample): what
// an endpoint's load is now, from its last sample and this router's ledger. Pure arithmetic.

import type { Endpoint } from "./endpoint";
import { IDLE_SAMPLES } from "./ledger";

/** Batch that stands for one unit of work in a rank, where the endpoint's own is not told. */
export const BATCH = 128;
/** Prompt tokens that stand for one unit of work. */
export const TOKEN_BUDGET = 512;
/** KV usage from which preemption is near, and what each share above it adds to a rank. */
const KV_KNEE = 0.9;
const KV_SLOPE = 20;
/** By how much routers that see the same sample are kept apart, at the most. */
const SPREAD = 0.5;

/**
 * Whether samples are corrected by what this router has sent ("live"), or taken as they are ("off",
 * which is what the original does).
 */
export type Projection = "live" | "off";

/** Requests of others at the endpoint, by its last sample. */
export function othersOf(endpoint: Endpoint): number {
  const seen = (endpoint.waiting || 0) + (endpoint.running || 0);
  return Math.max(0, seen - endpoint.ledger.markOwn);
}

/** The others' share of the queue that the last sample saw. */
function othersWaiting(endpoint: Endpoint): number {
  return Math.max(0, (endpoint.waiting || 0) - endpoint.ledger.markUnstarted);
}

/** Requests at the endpoint now: own live, the others' as last seen. */
export function projectLoad(endpoint: Endpoint): number {
  return endpoint.ledger.own + othersOf(endpoint);
}

/**
 * Requests that wait at the endpoint now; NaN before its first sample.
 *
 *   waiting = max(0, unstarted sent since the sample - unstarted without any queue)
 *           + min(unstarted sent before it, W) + max(0, W - unstarted at the sample)
 *
 * The first term leaves out what is on the wire or in prefill anyway: without that the gate would
 * pass no more than Q requests per time to first byte when samples are rare.
 */
export function projectWaiting(endpoint: Endpoint, now: number): number {
  const { ledger, waiting } = endpoint;
  // Nothing of ours is on its way: what waits is the others', and what of ours is stuck in W.
  if (ledger.unstarted === 0) return Math.max(0, waiting - ledger.markUnstarted);
  const before = ledger.unstartedBefore;
  const after = ledger.unstarted - before;
  const queued = Math.max(0, after - ledger.unstartedWithoutQueue(now));
  return queued + Math.min(before, waiting) + Math.max(0, waiting - ledger.markUnstarted);
}

/**
 * Share of the KV cache in use now; NaN where the engine does not say.
 *
 *   kv + (own prompt tokens now - then + own tokens generated since - freed) / capacity
 *
 * An endpoint that has been idle for three samples and is over its ideal all the same has a gauge
 * that is stuck (known after mass aborts). It counts as empty, until one request probes it.
 */
export function projectKv(endpoint: Endpoint, now: number): number {
  const { ledger, kv, kvCapacityTokens: capacity } = endpoint;
  if (ledger.idleSamples >= IDLE_SAMPLES && ledger.own === 0 && kv >= endpoint.kvCacheUtilThreshold)
    return 0;
  if (capacity === undefined) return kv;
  let tokens = ledger.tokens - ledger.markTokens;
  const { msPerToken } = endpoint.pace;
  if (msPerToken > 0) {
    const sinceMs = Math.max(0, now - ledger.markTime);
    const generatingMs = Math.max(0, ledger.started * sinceMs - ledger.lateStarts);
    tokens += (generatingMs - ledger.freedMs) / msPerToken;
  }
  return Math.max(0, kv + tokens / capacity);
}

/** Work that lies before a request without prompt tokens of its own; 1 = an idle endpoint. */
export function projectWork(endpoint: Endpoint, meanPrompt: number): number {
  const pending = endpoint.ledger.pending + othersWaiting(endpoint) * meanPrompt;
  return 1 + pending / TOKEN_BUDGET + projectLoad(endpoint) / (endpoint.maxNumSeqs ?? BATCH);
}

/** What a request's own prompt adds to the work. */
export function workOf(tokens: number): number {
  return tokens / TOKEN_BUDGET;
}

/** How much the KV cache adds to a rank. @param kv projected; NaN adds nothing. */
export function kvPenalty(kv: number): number {
  return kv > KV_KNEE ? KV_SLOPE * (kv - KV_KNEE) : 0;
}

/**
 * Factor on the work of an endpoint: its pace, and a small bias of this router's own that grows
 * with the share of others. Alone, a router has no bias at all.
 */
export function factorOf(endpoint: Endpoint): number {
  const others = othersOf(endpoint);
  const share = others === 0 ? 0 : others / (others + endpoint.ledger.own);
  return endpoint.pace.slow * (1 + SPREAD * endpoint.bias * share);
}
