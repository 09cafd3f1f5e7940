// A pool as the flow controller of one model sees it: only the endpoints that serve the model, and
// those that are held off count as saturated. It owns nothing; the pool stays the one truth.

import type { Aggregation, ResolvedConfig } from "../config";
import type { Endpoint } from "../endpoint";
import type { Evaluation, GateReason, Unsubscribe } from "../evaluation";
import type { AdmissionSource } from "../flow/scheduler";
import type { Lease } from "../lease";
import type { LeaseRequest, PickReason } from "../pick";
import { hasId } from "../pick";
import type { EndpointPool } from "../pool";
import type { Rendezvous } from "./affinity";
import type { HoldOffs } from "./hold-off";

/** What a view looks at, and whom it tells. */
export interface ViewContext {
  readonly pool: EndpointPool;
  readonly holdOffs: HoldOffs;
  readonly rendezvous: Rendezvous<Endpoint>;
  /** A request was given an endpoint. */
  onDecision(reason: PickReason): void;
}

/**
 * The endpoints of one model, as a source of saturation and leases.
 *
 * `prefer` of a request is the name of its session; which endpoint that is, is settled when the request
 * is let go, over the candidates of that moment.
 */
export class PoolView implements AdmissionSource {
  readonly #context: ViewContext;
  /** Undefined: all endpoints of the pool. */
  #ids: ReadonlySet<string> | undefined;

  constructor(context: ViewContext, ids: ReadonlySet<string> | undefined) {
    this.#context = context;
    this.#ids = ids;
  }

  /** The endpoints that serve the model; undefined: all. */
  setMembers(ids: ReadonlySet<string> | undefined): void {
    this.#ids = ids;
  }

  get size(): number {
    return this.#ids?.size ?? this.#context.pool.size;
  }

  now(): number {
    return this.#context.pool.now();
  }

  saturation(aggregation: Aggregation): number {
    const { pool, holdOffs } = this.#context;
    if (this.#ids === undefined && holdOffs.isEmpty) return pool.saturation(aggregation);
    const now = pool.now();
    const held = holdOffs.heldAt(now);
    if (this.#ids === undefined && held.size === 0) return pool.saturation(aggregation);
    return aggregate(pool, this.#ids, held, aggregation, now);
  }

  evaluate(): Evaluation {
    const { pool, holdOffs } = this.#context;
    const evaluation = pool.evaluate();
    const next = holdOffs.nextEnd(pool.now());
    return next < evaluation.validUntil ? { ...evaluation, validUntil: next } : evaluation;
  }

  validUntil(): number {
    const { pool, holdOffs } = this.#context;
    return Math.min(pool.validUntil(), holdOffs.nextEnd(pool.now()));
  }

  closedBy(aggregation?: Aggregation): GateReason | undefined {
    const { pool, holdOffs } = this.#context;
    const now = pool.now();
    const held = holdOffs.heldAt(now);
    if (this.#ids === undefined && held.size === 0) return pool.closedBy(aggregation);
    const members = [...pool].map(({ id }) => id).filter((id) => this.#ids?.has(id) ?? true);
    const among = new Set(members.filter((id) => !held.has(id)));
    if (among.size > 0) return pool.closedBy(aggregation, among);
    if (members.length === 0) return undefined;
    return { resource: "held-off", value: holdOffs.firstEnd(members, now) - now, limit: 0 };
  }

  subscribe(listener: () => void): Unsubscribe {
    return this.#context.pool.subscribe(listener);
  }

  lease(request: LeaseRequest): Lease | undefined {
    const { pool, holdOffs, onDecision } = this.#context;
    const { tokens } = request;
    const exclude = holdOffs.isEmpty
      ? request.exclude
      : union(request.exclude, holdOffs.heldAt(pool.now()));
    const prefer = this.#preferred(request.prefer, exclude);
    const pick = pool.pick({ tokens, prefer, exclude, among: this.#ids });
    if (pick === undefined) return undefined;
    onDecision(pick.reason);
    return pool.acquire(pick.endpoint.id, { tokens });
  }

  #preferred(session: string | undefined, exclude: LeaseRequest["exclude"]): string | undefined {
    if (session === undefined) return undefined;
    const { pool, rendezvous } = this.#context;
    const isOut = ({ id }: Endpoint) =>
      (exclude !== undefined && hasId(exclude, id)) ||
      (this.#ids !== undefined && !this.#ids.has(id));
    return rendezvous.choose(session, pool.candidates(), isOut)?.id;
  }
}

function union(
  excluded: LeaseRequest["exclude"],
  held: ReadonlySet<string>,
): ReadonlySet<string> | undefined {
  if (excluded === undefined) return held.size === 0 ? undefined : held;
  const all = new Set(excluded);
  for (const id of held) all.add(id);
  return all;
}

/** R6 over some of the endpoints; those that are held off score at least 1. */
function aggregate(
  pool: EndpointPool,
  ids: ReadonlySet<string> | undefined,
  held: ReadonlySet<string>,
  aggregation: Aggregation,
  now: number,
): number {
  const { scores } = pool.evaluate();
  const { config } = pool;
  let sum = 0;
  let weights = 0;
  let most = 0;
  let members = 0;
  let i = 0;
  for (const endpoint of pool) {
    const sampled = scores[i++] ?? 1;
    if (ids !== undefined && !hasId(ids, endpoint.id)) continue;
    members++;
    const isHeld = held.has(endpoint.id);
    if (!isHeld && isIgnored(endpoint, config, now)) continue;
    const score = isHeld ? Math.max(1, sampled) : sampled;
    const weight = aggregation === "weighted" ? endpoint.weight : 1;
    sum += weight * (aggregation === "capped" ? Math.min(1, score) : score);
    weights += weight;
    most = Math.max(most, score);
  }
  if (members === 0) return 1;
  if (weights === 0) return 0;
  return aggregation === "max" ? most : sum / weights;
}

/** R5: under `ignore`, what is not fresh leaves sum and divisor. */
function isIgnored(endpoint: Endpoint, config: ResolvedConfig, now: number): boolean {
  if (config.stalenessPolicy !== "ignore") return false;
  return !(Math.abs(now - endpoint.updateTime) <= config.metricsStalenessThreshold);
}
