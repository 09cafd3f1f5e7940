// The router's metrics, in a registry of their own. Every label has few values: bands and models come from the
// configuration, reasons are words of this package, and an endpoint that is gone takes its series with it.

import { Counter, Gauge, Registry } from "prom-client";
import type { PickReason } from "../pick";
import type { EndpointPool } from "../pool";
import type { EndpointSnapshot } from "../snapshot";
import type { Outcome, ProxyObserver } from "./proxy";
import type { RouterSnapshot } from "./router";
import { Spread, Tally } from "./tally";
import type { RetryReason } from "./try-errors";

/** What the metrics look at. */
export interface MetricsContext {
  readonly pool: EndpointPool;
  /** Endpoints that are held off. */
  heldOff(): ReadonlySet<string>;
  snapshot(): RouterSnapshot;
}

/** From 1 ms to 10 min: first bytes and whole generations. */
const SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
];
/** Why endpoints do not pass is counted anew when what is known is older than this, in ms. */
const DROPS_MS = 50;

const PER_ENDPOINT: Readonly<
  Record<string, readonly [help: string, read: (endpoint: EndpointSnapshot) => number | null]>
> = {
  score: ["Load of the endpoint; 1 is its ideal.", ({ score }) => score],
  waiting_requests: ["Requests that wait, as last read.", (e) => e.waitingQueueSize],
  running_requests: ["Requests that run, as last read.", (e) => e.runningRequests],
  kv_cache_usage_ratio: [
    "Share of the KV cache in use, as last read.",
    (e) => e.kvCacheUsagePercent,
  ],
  projected_waiting_requests: ["Requests that wait now, by projection.", (e) => e.projectedWaiting],
  sample_age_seconds: ["Age of the last good reading.", ({ ageMs }) => seconds(ageMs)],
  leases: ["Requests of this router that have not ended.", ({ leases }) => leases],
  unstarted_leases: ["Those of which no byte has come.", (e) => e.unstartedLeases],
  candidate: ["1 when the endpoint passes.", ({ state }) => (state === "ok" ? 1 : 0)],
  unusable_reports: [
    "Readings that could not be used, since it was added.",
    (e) => e.unusableReports,
  ],
};

/** Counts what happens, and prints it. */
export class RouterMetrics implements ProxyObserver {
  readonly #context: MetricsContext;
  readonly #registry = new Registry();
  readonly #outcomes = this.#tally("requests_total", "Requests by how they ended.", "outcome");
  readonly #retries = this.#tally("retries_total", "Tries repeated elsewhere.", "reason");
  readonly #refusals = this.#tally("upstream_refusals_total", "Tries that were refused.", "reason");
  readonly #decisions = this.#tally("decisions_total", "Choices of an endpoint, by why.", "reason");
  readonly #failOpen = this.#tally("fail_open_total", "Choices while no endpoint passed.");
  readonly #drops = this.#tally(
    "filter_drops_total",
    "Endpoints that did not pass when one was chosen, by why.",
    "reason",
  );
  readonly #wait = this.#spread("queue_wait_seconds", "Waiting of requests let go.", "band");
  readonly #firstByte = this.#spread("time_to_first_byte_seconds", "From sending to first byte.");
  readonly #duration = this.#spread("upstream_duration_seconds", "From sending to end.");
  /** Per endpoint: how many answers of each hundred of statuses. */
  readonly #answers = new Map<string, number[]>();
  readonly #dropped = new Map<string, number>();
  #dropsReadAt = Number.NEGATIVE_INFINITY;
  /** What all gauges of one page are read from. */
  #seen: RouterSnapshot | undefined;

  constructor(context: MetricsContext) {
    this.#context = context;
    this.#collectPool();
    this.#collectEndpoints();
    this.#collectQueues();
    this.#collectAnswers();
  }

  onDecision(reason: PickReason): void {
    this.#decisions.add(reason);
    if (reason === "failed-open") this.#failOpen.add("");
    this.#countDrops();
  }

  onAdmitted(_: string, band: string, waitedMs: number): void {
    this.#wait.count(waitedMs / 1000, band);
  }

  onAnswer(endpoint: string, status: number): void {
    const hundreds = Math.floor(status / 100);
    let counts = this.#answers.get(endpoint);
    if (counts === undefined) {
      counts = new Array<number>(10).fill(0);
      this.#answers.set(endpoint, counts);
    }
    counts[hundreds] = (counts[hundreds] ?? 0) + 1;
  }

  onFirstByte(ms: number): void {
    this.#firstByte.count(ms / 1000);
  }

  onTried(ms: number): void {
    this.#duration.count(ms / 1000);
  }

  onRefused(reason: RetryReason, isRetried: boolean): void {
    this.#refusals.add(reason);
    if (isRetried) this.#retries.add(reason);
  }

  onEnd(outcome: Outcome): void {
    this.#outcomes.add(outcome);
  }

  /** An endpoint is gone, and so are its series. */
  forget(endpoint: string): void {
    this.#answers.delete(endpoint);
  }

  /** All of it, as Prometheus reads it. */
  async print(): Promise<{ contentType: string; text: string }> {
    this.#seen = this.#context.snapshot();
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }

  /** Which endpoints did not pass is looked up at most every 50 ms, and counted at every choice. */
  #countDrops(): void {
    const now = this.#context.pool.now();
    if (now - this.#dropsReadAt > DROPS_MS) {
      this.#dropsReadAt = now;
      this.#dropped.clear();
      const held = this.#context.heldOff();
      for (const { id, state } of this.#context.pool.snapshot().endpoints) {
        const reason = held.has(id) ? "held-off" : state;
        if (reason !== "ok") this.#dropped.set(reason, (this.#dropped.get(reason) ?? 0) + 1);
      }
    }
    for (const [reason, count] of this.#dropped) this.#drops.add(reason, count);
  }

  #collectPool(): void {
    const snapshot = () => this.#seen ?? this.#context.snapshot();
    this.#gauge(
      "saturation",
      "How loaded the pool is; 1 is its ideal.",
      ["aggregation"],
      (gauge) => {
        const { mean, capped, weighted, max } = snapshot().pool;
        for (const [aggregation, value] of Object.entries({ mean, capped, weighted, max })) {
          gauge.set({ aggregation }, value);
        }
      },
    );
    this.#gauge("candidates", "Endpoints that pass; 0 when the pool fails open.", [], (gauge) =>
      gauge.set(snapshot().pool.candidates),
    );
    this.#gauge("endpoints", "Endpoints by what is known of them.", ["freshness"], (gauge) => {
      const { fresh, stale, unusable } = snapshot().pool;
      for (const [freshness, count] of Object.entries({ fresh, stale, unusable })) {
        gauge.set({ freshness }, count);
      }
    });
    this.#gauge("held_off_endpoints", "Endpoints that have just refused a request.", [], (gauge) =>
      gauge.set(snapshot().heldOff.length),
    );
    this.#gauge("live_requests", "Requests that are being served.", [], (gauge) =>
      gauge.set(snapshot().live),
    );
    this.#gauge("kept_body_bytes", "Bytes of request bodies that are kept.", [], (gauge) =>
      gauge.set(snapshot().keptBytes),
    );
  }

  #collectEndpoints(): void {
    for (const [name, [help, read]] of Object.entries(PER_ENDPOINT)) {
      this.#gauge(`endpoint_${name}`, help, ["endpoint"], (gauge) => {
        for (const endpoint of this.#seen?.pool.endpoints ?? []) {
          const value = read(endpoint);
          if (value !== null) gauge.set({ endpoint: endpoint.id }, value);
        }
      });
    }
  }

  #collectQueues(): void {
    const labels = ["model", "band"];
    this.#gauge("queue_requests", "Requests that wait.", labels, (gauge) => {
      for (const { model, bands } of this.#seen?.gates ?? []) {
        for (const { name, waiting } of bands) gauge.set({ model, band: name }, waiting);
      }
    });
  }

  #collectAnswers(): void {
    const answers = this.#answers;
    new Counter({
      name: "plimsoll_upstream_answers_total",
      help: "Answers of endpoints, by hundreds of their status.",
      labelNames: ["endpoint", "class"],
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const [endpoint, counts] of answers) {
          counts.forEach((count, hundreds) => {
            if (count > 0) this.inc({ endpoint, class: `${hundreds}xx` }, count);
          });
        }
      },
    });
  }

  #tally(name: string, help: string, label?: string): Tally {
    return new Tally({ registry: this.#registry, name: `plimsoll_${name}`, help, label });
  }

  #spread(name: string, help: string, label?: string): Spread {
    return new Spread({ registry: this.#registry, name: `plimsoll_${name}`, help, label }, SECONDS);
  }

  /** @param fill sets every series anew whenever it is read, so that what is gone is gone. */
  #gauge<T extends string>(
    name: string,
    help: string,
    labelNames: T[],
    fill?: (gauge: Gauge<T>) => void,
  ): Gauge<T> {
    return new Gauge({
      ...{ name: `plimsoll_${name}`, help, labelNames, registers: [this.#registry] },
      collect() {
        this.reset();
        fill?.(this);
      },
    });
  }
}

function seconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1000;
}
