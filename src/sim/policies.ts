// The policies that are compared: how each chooses an endpoint, given what it may know.

import { DEFAULT_CONFIG } from "../config";
import type { Endpoint } from "../endpoint";
import type { EndpointPool } from "../pool";
import type { PoolOptions } from "../pool-options";
import type { Fleet } from "./fleet";
import { Oracle } from "./oracle";
import type { Random } from "./random";
import type { PolicyName } from "./scenario";

/** A request as a policy sees it. */
export interface PolicyRequest {
  readonly tokens: number;
  /** Endpoints that have just failed it. */
  readonly exclude: ReadonlySet<string>;
}

/** What one router's policy has to go by. */
export interface PolicyContext {
  readonly pool: EndpointPool;
  readonly random: Random;
  /** Which router it is, from 0. */
  readonly router: number;
  /** The truth. Only for the oracle. */
  readonly fleet: Fleet;
}

/** Chooses: an endpoint's id, or undefined when none comes into question. */
export type Chooser = (request: PolicyRequest) => string | undefined;

/** A policy: how a router's pool is set up, and how it chooses where the pool itself does not. */
export interface Policy {
  readonly pool: Pick<PoolOptions, "filter" | "projection">;
  /** Undefined: `pool.lease`. */
  readonly chooser?: (context: PolicyContext) => Chooser;
}

/** Samples as they are: what every router without leases has. */
const AS_SAMPLED = { projection: "off", filter: "limits" } as const;

/** What each policy does. */
export const POLICIES: Readonly<Record<PolicyName, Policy>> = {
  plimsoll: { pool: {} },
  original: { pool: AS_SAMPLED },
  credit: { pool: AS_SAMPLED, chooser: creditChooser },
  "least-kv": {
    pool: AS_SAMPLED,
    chooser: (context) => leastBy(context, ({ kv }) => (Number.isNaN(kv) ? 0 : kv)),
  },
  "round-robin": { pool: AS_SAMPLED, chooser: roundRobinChooser },
  random: { pool: AS_SAMPLED, chooser: (context) => leastBy(context, () => 0) },
  "two-choices": { pool: AS_SAMPLED, chooser: twoChoicesChooser },
  "least-outstanding": {
    pool: AS_SAMPLED,
    chooser: (context) => leastBy(context, ({ leases }) => leases),
  },
  oracle: {
    pool: {},
    chooser: ({ fleet, random, pool }) => {
      const oracle = new Oracle(fleet, random, pool.config.kvCacheUtilThreshold);
      return (request) => oracle.choose(request);
    },
  },
};

/** The least of `value`, equals at random. */
function leastBy(
  { pool, random }: PolicyContext,
  value: (endpoint: Endpoint) => number,
  passes: (endpoint: Endpoint) => boolean = () => true,
): Chooser {
  const endpoints = [...pool];
  return ({ exclude }) => {
    let best: Endpoint | undefined;
    let least = 0;
    let ties = 0;
    for (const endpoint of endpoints) {
      if (exclude.has(endpoint.id) || !passes(endpoint)) continue;
      const v = value(endpoint);
      if (ties > 0 && v > least) continue;
      if (ties > 0 && v === least) {
        ties++;
        if (random.next() * ties >= 1) continue;
      } else ties = 1;
      least = v;
      best = endpoint;
    }
    return best?.id;
  };
}

/**
 * The original's filter and score with the usual repair: requests of one's own that the sample has
 * not seen are put onto its queue. Who is stale or full is left out while anybody passes.
 */
function creditChooser(context: PolicyContext): Chooser {
  const { pool } = context;
  const { metricsStalenessThreshold: staleness = DEFAULT_CONFIG.metricsStalenessThreshold } =
    pool.config;
  const queue = ({ waiting, running, leases }: Endpoint) =>
    waiting + Math.max(0, leases - (waiting + (running || 0)));
  const isFresh = (endpoint: Endpoint) => Math.abs(pool.now() - endpoint.updateTime) <= staleness;
  const isFree = (endpoint: Endpoint) =>
    isFresh(endpoint) &&
    queue(endpoint) < endpoint.queueLimit &&
    (endpoint.kv || 0) < endpoint.kvLimit;
  const score = (endpoint: Endpoint) =>
    Math.max(
      queue(endpoint) / endpoint.queueDepthThreshold,
      (endpoint.kv || 0) / endpoint.kvCacheUtilThreshold,
    );
  const free = leastBy(context, score, isFree);
  const fresh = leastBy(context, score, isFresh);
  const any = leastBy(context, () => 0);
  return (request) => free(request) ?? fresh(request) ?? any(request);
}

function roundRobinChooser({ pool, random }: PolicyContext): Chooser {
  const ids = [...pool].map(({ id }) => id);
  // Routers that start at the same endpoint would go round in step.
  let next = random.below(ids.length);
  return ({ exclude }) => {
    for (let tries = 0; tries < ids.length; tries++) {
      const id = ids[next] as string; // next is below the length
      next = (next + 1) % ids.length;
      if (!exclude.has(id)) return id;
    }
    return undefined;
  };
}

function twoChoicesChooser({ pool, random }: PolicyContext): Chooser {
  const endpoints = [...pool];
  return ({ exclude }) => {
    const free = exclude.size === 0 ? endpoints : endpoints.filter(({ id }) => !exclude.has(id));
    if (free.length === 0) return undefined;
    const i = random.below(free.length);
    const one = free[i] as Endpoint; // below the length
    if (free.length === 1) return one.id;
    const other = free[(i + 1 + random.below(free.length - 1)) % free.length] as Endpoint;
    return other.leases < one.leases ? other.id : one.id;
  };
}
