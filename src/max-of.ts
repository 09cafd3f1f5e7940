// Several sources as one: as saturated as the most saturated of them.

import { ConcurrencyDetector } from "./concurrency";
import type { Aggregation } from "./config";
import type { Evaluation, GateReason, SaturationSource, Unsubscribe } from "./evaluation";
import type { Lease } from "./lease";
import type { LeaseRequest } from "./pick";

/** A source that may also give leases, as pools and concurrency detectors do. */
export interface LeasingSource<E = unknown> extends SaturationSource<E> {
  readonly size?: number;
  /** Now, on its clock, in ms. */
  now?(): number;
  /** When time alone will change the judgement, without the rest of it. */
  validUntil?(): number;
  lease?(request: LeaseRequest): Lease | undefined;
  closedBy?(aggregation?: Aggregation): GateReason | undefined;
}

/**
 * A source that is as saturated as the most saturated of `sources`. Its leases come from a
 * `ConcurrencyDetector` where there is one, since it knows who is full, else from the first that
 * gives any.
 *
 * @example new FlowController(maxOf(pool, new ConcurrencyDetector(pool)));
 */
export function maxOf<E>(
  ...sources: [LeasingSource<E>, ...LeasingSource<E>[]]
): LeasingSource<E> & { readonly size: number } {
  const worst = (aggregation?: Aggregation) =>
    sources.reduce((a, b) => (b.saturation(aggregation) > a.saturation(aggregation) ? b : a));
  const leasing =
    sources.find((source) => source instanceof ConcurrencyDetector) ??
    sources.find((source) => source.lease !== undefined);
  const sized = sources.find((source) => source.size !== undefined);
  const source: LeasingSource<E> & { readonly size: number } = {
    get size() {
      return sized?.size ?? sources[0].evaluate().scores.length;
    },
    saturation: (aggregation) => worst(aggregation).saturation(aggregation),
    evaluate: () => evaluateWorst(sources),
    closedBy: (aggregation = "capped") => worst(aggregation).closedBy?.(aggregation),
    now: () => sources.find((one) => one.now !== undefined)?.now?.() ?? performance.now(),
    subscribe: (listener): Unsubscribe => {
      const ends = sources.map((one) => one.subscribe(listener));
      return () => {
        for (const end of ends) end();
      };
    },
  };
  if (leasing === undefined) return source;
  return Object.assign(source, { lease: (request: LeaseRequest) => leasing.lease?.(request) });
}

/** The evaluation of the most saturated source, valid no longer than that of any. */
function evaluateWorst<E>(sources: readonly SaturationSource<E>[]): Evaluation<E> {
  const evaluations = sources.map((source) => source.evaluate());
  const worst = evaluations.reduce((a, b) => (b.saturation > a.saturation ? b : a));
  const validUntil = Math.min(...evaluations.map((evaluation) => evaluation.validUntil));
  const most = (key: Aggregation) => Math.max(...evaluations.map((one) => one[key]));
  return Object.freeze({
    ...worst,
    mean: most("mean"),
    capped: most("capped"),
    weighted: most("weighted"),
    max: most("max"),
    validUntil,
  });
}
