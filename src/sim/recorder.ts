// Watches a run and makes its report.

import type { Fleet, Member } from "./fleet";
import type { Flight } from "./flight";
import type {
  Distribution,
  EndpointReport,
  Herd,
  Latencies,
  Outcomes,
  Report,
  Spread,
  TenantReport,
} from "./report";
import type { RejectionReason } from "./router";
import type { ResolvedScenario } from "./scenario-reader";
import { SeriesRecorder } from "./series-recorder";

/** What is known of the requests of one tenant, or of all. */
class Tally {
  arrived = 0;
  completed = 0;
  rejected = 0;
  timedOut = 0;
  good = 0;
  readonly rejections: Record<string, number> = {};
  readonly ttft: number[] = [];
  readonly tpot: number[] = [];
  readonly e2e: number[] = [];

  outcomes(queued: number, running: number): Outcomes {
    const { arrived, completed, rejected, timedOut } = this;
    return { arrived, completed, queued, running, rejected, timedOut };
  }

  latencies(): Latencies {
    return {
      ttftMs: distributionOf(this.ttft),
      tpotMs: distributionOf(this.tpot),
      e2eMs: distributionOf(this.e2e),
    };
  }
}

/** Records one run. */
export class Recorder {
  readonly #scenario: ResolvedScenario;
  readonly #fleet: Fleet;
  readonly #all = new Tally();
  readonly #tenants: readonly Tally[];
  /** Requests that have not ended, per tenant: waiting at a router, and sent. */
  readonly #waiting: number[];
  readonly #sent: number[];
  readonly #windowTotals = new Map<number, number>();
  readonly series: SeriesRecorder;
  #retries = 0;
  /** What had been done when the last request arrived at the latest. */
  #inWindow = { completed: 0, good: 0, outputTokens: 0 };
  #herd = { size: 0, window: 0, endpoint: null as string | null };

  constructor(scenario: ResolvedScenario, fleet: Fleet) {
    this.#scenario = scenario;
    this.#fleet = fleet;
    this.#tenants = scenario.traffic.map(() => new Tally());
    this.#waiting = scenario.traffic.map(() => 0);
    this.#sent = scenario.traffic.map(() => 0);
    this.series = new SeriesRecorder(fleet, scenario);
  }

  /** Requests that have not ended. */
  get open(): number {
    const { arrived, completed, rejected, timedOut } = this.#all;
    return arrived - completed - rejected - timedOut;
  }

  get arrived(): number {
    return this.#all.arrived;
  }

  get completed(): number {
    return this.#all.completed;
  }

  /** The time in which requests arrive is over: rates are counted up to here. */
  noteWindowEnd(): void {
    const { completed, good } = this.#all;
    this.#inWindow = { completed, good, outputTokens: this.#sum(outputTokensOf) };
  }

  noteArrived({ request }: Flight): void {
    for (const tally of this.#talliesOf(request.tenant)) tally.arrived++;
    this.#add(this.#waiting, request.tenant, 1);
    this.series.arrived++;
  }

  noteSent(flight: Flight, member: Member, now: number): void {
    if (flight.attempt === 0) {
      this.#add(this.#waiting, flight.request.tenant, -1);
      this.#add(this.#sent, flight.request.tenant, 1);
    } else this.#retries++;
    member.sent++;
    this.series.sent[member.index] = (this.series.sent[member.index] ?? 0) + 1;
    const window = Math.floor(now / this.#scenario.scrape.interval);
    if (member.window !== window) {
      member.window = window;
      member.sentInWindow = 0;
    }
    this.#countWindow(window);
    if (++member.sentInWindow <= this.#herd.size) return;
    this.#herd = { size: member.sentInWindow, window, endpoint: member.id };
  }

  noteFirstByte({ request, firstByteAt }: Flight): void {
    const ms = firstByteAt - request.time;
    for (const tally of this.#talliesOf(request.tenant)) tally.ttft.push(ms);
    this.series.noteTtft(ms);
  }

  noteCompleted({ request, firstByteAt, endedAt }: Flight): void {
    this.#add(this.#sent, request.tenant, -1);
    const { ttft, tpot } = this.#scenario.slo;
    const perToken =
      request.outputTokens > 1 ? (endedAt - firstByteAt) / (request.outputTokens - 1) : 0;
    const isGood = firstByteAt - request.time <= ttft && perToken <= tpot;
    for (const tally of this.#talliesOf(request.tenant)) {
      tally.completed++;
      if (request.outputTokens > 1) tally.tpot.push(perToken);
      tally.e2e.push(endedAt - request.time);
      if (isGood) tally.good++;
    }
  }

  noteRejected(flight: Flight, reason: RejectionReason): void {
    this.#leave(flight);
    for (const tally of this.#talliesOf(flight.request.tenant)) {
      tally.rejected++;
      tally.rejections[reason] = (tally.rejections[reason] ?? 0) + 1;
    }
  }

  noteTimedOut(flight: Flight, now: number): void {
    this.#leave(flight);
    for (const tally of this.#talliesOf(flight.request.tenant)) {
      tally.timedOut++;
      if (Number.isNaN(flight.firstByteAt)) tally.ttft.push(now - flight.request.time);
    }
  }

  /** The report of a run that ended at `endMs`. */
  report(seed: number, policy: string, endMs: number): Report {
    const { name, duration, routers, scrape, slo } = this.#scenario;
    const all = this.#all;
    const { completed, good, outputTokens } = this.#inWindow;
    const perS = (count: number) => (1000 * count) / duration;
    return {
      scenario: name,
      policy,
      seed,
      routers,
      scrapeIntervalMs: scrape.interval,
      durationMs: duration,
      endMs,
      ...all.outcomes(total(this.#waiting), total(this.#sent)),
      rejections: all.rejections,
      retries: this.#retries,
      ...all.latencies(),
      slo: { ttftMs: slo.ttft, tpotMs: slo.tpot },
      goodput: all.arrived === 0 ? 1 : all.good / all.arrived,
      goodputPerS: perS(good),
      requestsPerS: perS(completed),
      outputTokensPerS: perS(outputTokens),
      preemptions: this.#sum(({ engine }) => engine.counts.preemptions),
      preemptedRequests: this.#sum(({ engine }) => engine.counts.preempted),
      herd: this.#reportHerd(),
      spread: spreadOf(this.#fleet.members.map(({ sent }) => sent)),
      tenants: this.#tenants.map((tally, i) => this.#reportTenant(tally, i)),
      endpoints: this.#fleet.members.map((member) => reportEndpoint(member, endMs)),
      series: this.series.finish(),
    };
  }

  #sum(of: (member: Member) => number): number {
    return this.#fleet.members.reduce((total, member) => total + of(member), 0);
  }

  #reportTenant(tally: Tally, i: number): TenantReport {
    return {
      name: this.#scenario.traffic[i]?.name ?? "",
      ...tally.outcomes(this.#waiting[i] ?? 0, this.#sent[i] ?? 0),
      rejections: tally.rejections,
      ...tally.latencies(),
    };
  }

  #reportHerd(): Herd {
    const { size, window, endpoint } = this.#herd;
    const sent = this.#windowTotals.get(window) ?? 0;
    const fairSize = sent / Math.max(1, this.#fleet.members.length);
    return { size, endpoint, atMs: window * this.#scenario.scrape.interval, fairSize };
  }

  /** Totals of past windows are kept only for the one with the largest herd. */
  #countWindow(window: number): void {
    const before = this.#windowTotals.get(window);
    if (before === undefined) {
      for (const old of this.#windowTotals.keys()) {
        if (old !== this.#herd.window) this.#windowTotals.delete(old);
      }
    }
    this.#windowTotals.set(window, (before ?? 0) + 1);
  }

  #leave(flight: Flight): void {
    const isSent = flight.attempt > 0;
    this.#add(isSent ? this.#sent : this.#waiting, flight.request.tenant, -1);
  }

  #talliesOf(tenant: number): readonly [Tally, Tally] {
    return [this.#all, this.#tenants[tenant] as Tally]; // there is one for each
  }

  #add(counts: number[], i: number, by: number): void {
    counts[i] = (counts[i] ?? 0) + by;
  }
}

function outputTokensOf({ engine }: Member): number {
  return engine.counts.outputTokens;
}

function total(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

function reportEndpoint({ id, spec, engine, sent, completed, failed }: Member, endMs: number) {
  const { outputTokens, promptTokens, hitTokens, preemptions, busyMs } = engine.counts;
  const busy = endMs > 0 ? busyMs / endMs : 0;
  return {
    id,
    kind: spec.kind,
    sent,
    completed,
    failed,
    outputTokens,
    promptTokens,
    cachedTokens: hitTokens,
    preemptions,
    busy,
  } satisfies EndpointReport;
}

function spreadOf(counts: readonly number[]): Spread {
  const mean = total(counts) / Math.max(1, counts.length);
  if (mean === 0) return { most: 0, fewest: 0, cv: 0 };
  const squares = counts.reduce((sum, count) => sum + (count - mean) ** 2, 0);
  return {
    most: Math.max(...counts) / mean,
    fewest: Math.min(...counts) / mean,
    cv: Math.sqrt(squares / counts.length) / mean,
  };
}

/** Percentiles by the nearest rank: the least value that so large a share does not exceed. */
export function distributionOf(values: readonly number[]): Distribution {
  const sorted = Float64Array.from(values).sort();
  const count = sorted.length;
  if (count === 0) return { count, mean: null, p50: null, p90: null, p99: null, max: null };
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * count) - 1)] ?? null;
  let sum = 0;
  for (const value of sorted) sum += value;
  const max = sorted[count - 1] ?? null;
  return { count, mean: sum / count, p50: at(0.5), p90: at(0.9), p99: at(0.99), max };
}
