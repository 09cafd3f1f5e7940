// The run over time, for charts: a value of everything at the end of each step.

import type { Fleet } from "./fleet";
import type { EndpointSeries, Series } from "./report";
import type { Router } from "./router";
import type { ResolvedScenario } from "./scenario-reader";

/** Steps over the time in which requests arrive. */
const STEPS = 200;
/** A run that takes longer to end is cut off in the charts, not in the figures. */
const MOST_STEPS = 2000;

type Growing<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer V)[] ? V[] : T[K] };

/** Records one run. */
export class SeriesRecorder {
  readonly stepMs: number;
  /** Since the last step: arrivals, and what was sent to each endpoint. */
  arrived = 0;
  readonly sent: number[];
  readonly #fleet: Fleet;
  readonly #thresholds: readonly { readonly q: number; readonly k: number }[];
  readonly #series: Growing<Omit<Series, "endpoints" | "stepMs">> = {
    timesMs: [],
    saturation: [],
    trueSaturation: [],
    held: [],
    waiting: [],
    running: [],
    arrived: [],
    ttftMeanMs: [],
    ttftMaxMs: [],
  };
  readonly #endpoints: Growing<EndpointSeries>[];
  #ttftCount = 0;
  #ttftSum = 0;
  #ttftMax = 0;

  constructor(fleet: Fleet, scenario: ResolvedScenario) {
    this.#fleet = fleet;
    this.stepMs = scenario.duration / STEPS;
    this.sent = fleet.members.map(() => 0);
    this.#thresholds = fleet.members.map(({ spec }) => ({
      q: spec.options.queueDepthThreshold ?? scenario.detector.queueDepthThreshold ?? 5,
      k: spec.options.kvCacheUtilThreshold ?? scenario.detector.kvCacheUtilThreshold ?? 0.8,
    }));
    this.#endpoints = fleet.members.map(() => ({
      score: [],
      waiting: [],
      running: [],
      kv: [],
      sent: [],
    }));
  }

  /** Whether there is room for one more step. */
  get isOpen(): boolean {
    return this.#series.timesMs.length < MOST_STEPS;
  }

  /** A first token came. */
  noteTtft(ms: number): void {
    this.#ttftCount++;
    this.#ttftSum += ms;
    this.#ttftMax = Math.max(this.#ttftMax, ms);
  }

  /** A step ends. */
  sample(now: number, routers: readonly Router[]): void {
    const s = this.#series;
    let scores = 0;
    let waiting = 0;
    let running = 0;
    for (const [i, { engine }] of this.#fleet.members.entries()) {
      const { q = 1, k = 1 } = this.#thresholds[i] ?? {};
      const series = this.#endpoints[i] as Growing<EndpointSeries>; // there is one for each
      const score = Math.max(engine.waiting / q, engine.kv / k);
      series.score.push(score);
      series.waiting.push(engine.waiting);
      series.running.push(engine.running);
      series.kv.push(engine.kv);
      series.sent.push(this.sent[i] ?? 0);
      this.sent[i] = 0;
      scores += score;
      waiting += engine.waiting;
      running += engine.running;
    }
    const sum = (of: (router: Router) => number) =>
      routers.reduce((total, router) => total + of(router), 0);
    s.timesMs.push(now);
    s.saturation.push(sum(({ pool }) => pool.saturation()) / routers.length);
    s.trueSaturation.push(scores / this.#fleet.members.length);
    s.held.push(sum((router) => router.waiting));
    s.waiting.push(waiting);
    s.running.push(running);
    s.arrived.push(this.arrived);
    s.ttftMeanMs.push(this.#ttftCount === 0 ? null : this.#ttftSum / this.#ttftCount);
    s.ttftMaxMs.push(this.#ttftCount === 0 ? null : this.#ttftMax);
    this.arrived = this.#ttftCount = this.#ttftSum = this.#ttftMax = 0;
  }

  /** All that was recorded. */
  finish(): Series {
    return { stepMs: this.stepMs, ...this.#series, endpoints: this.#endpoints };
  }
}
