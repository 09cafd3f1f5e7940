// What a simulation reports. Plain data: the same scenario and seed give the same bytes everywhere.

import type { PolicyName } from "./scenario";

/** A distribution. Times in ms; all null when nothing was observed. */
export interface Distribution {
  readonly count: number;
  readonly mean: number | null;
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
  readonly max: number | null;
}

/** What became of requests. arrived = completed + queued + running + rejected + timedOut. */
export interface Outcomes {
  readonly arrived: number;
  readonly completed: number;
  /** At the end still waiting at a router, and still at an engine; 0 unless it was aborted. */
  readonly queued: number;
  readonly running: number;
  readonly rejected: number;
  /** Given up by their clients. */
  readonly timedOut: number;
}

/** Latencies as clients see them, in ms. */
export interface Latencies {
  /**
   * Time to first token, with all waiting. Requests that were given up before it count with the
   * time that they had waited: it would have been longer.
   */
  readonly ttftMs: Distribution;
  /** Mean time per token after the first, of each completed request. */
  readonly tpotMs: Distribution;
  /** From arrival to the last token, of completed requests. */
  readonly e2eMs: Distribution;
}

/** One tenant. */
export interface TenantReport extends Outcomes, Latencies {
  readonly name: string;
  readonly rejections: Readonly<Record<string, number>>;
}

/** One endpoint. */
export interface EndpointReport {
  readonly id: string;
  /** Its preset, and whether that was measured or derived. */
  readonly kind: string;
  /** Requests that were sent to it, and how they ended. */
  readonly sent: number;
  readonly completed: number;
  readonly failed: number;
  readonly outputTokens: number;
  readonly promptTokens: number;
  /** Prompt tokens that its prefix cache held. */
  readonly cachedTokens: number;
  readonly preemptions: number;
  /** Share of the time in which it had something to do. */
  readonly busy: number;
}

/** The most requests that went to one endpoint within one scrape interval. */
export interface Herd {
  readonly size: number;
  readonly endpoint: string | null;
  readonly atMs: number;
  /** What each endpoint would have got of that interval's requests, shared evenly. */
  readonly fairSize: number;
}

/** How evenly requests went to endpoints. */
export interface Spread {
  /** Most and fewest requests sent to one endpoint, over the mean. */
  readonly most: number;
  readonly fewest: number;
  /** Deviation over mean. */
  readonly cv: number;
}

/** One endpoint over time. */
export interface EndpointSeries {
  /** As it truly is at that time: `max(waiting / Q, kv / K)`. */
  readonly score: readonly number[];
  readonly waiting: readonly number[];
  readonly running: readonly number[];
  readonly kv: readonly number[];
  /** Requests that were sent to it since the time before. */
  readonly sent: readonly number[];
}

/** The run over time: one value per time, at the end of each step. */
export interface Series {
  readonly stepMs: number;
  readonly timesMs: readonly number[];
  /** As the routers see it, their mean. */
  readonly saturation: readonly number[];
  /** As it truly is: the mean of the endpoints' true scores. */
  readonly trueSaturation: readonly number[];
  /** Waiting at the routers, waiting in engines, running in engines. */
  readonly held: readonly number[];
  readonly waiting: readonly number[];
  readonly running: readonly number[];
  /** Requests that arrived since the time before. */
  readonly arrived: readonly number[];
  /** Time to first token of requests whose first token came since the time before; null: none. */
  readonly ttftMeanMs: readonly (number | null)[];
  readonly ttftMaxMs: readonly (number | null)[];
  readonly endpoints: readonly EndpointSeries[];
}

/** The report of one run. */
export interface Report extends Outcomes, Latencies {
  readonly scenario: string;
  readonly policy: PolicyName | string;
  readonly seed: number;
  readonly routers: number;
  readonly scrapeIntervalMs: number;
  /** How long requests arrived, and when the last one ended, in ms. */
  readonly durationMs: number;
  readonly endMs: number;
  readonly rejections: Readonly<Record<string, number>>;
  /** Tries beyond the first. */
  readonly retries: number;
  readonly slo: { readonly ttftMs: number; readonly tpotMs: number };
  /** Share of all arrived requests that were completed within the SLO; and such per second. */
  readonly goodput: number;
  readonly goodputPerS: number;
  /** Completed requests and generated tokens per second, over the time in which requests arrive. */
  readonly requestsPerS: number;
  readonly outputTokensPerS: number;
  readonly preemptions: number;
  readonly preemptedRequests: number;
  readonly herd: Herd;
  readonly spread: Spread;
  readonly tenants: readonly TenantReport[];
  readonly endpoints: readonly EndpointReport[];
  readonly series: Series;
}
