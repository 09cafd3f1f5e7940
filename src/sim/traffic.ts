// The requests of a scenario, one after the other in order of time. Each tenant draws from random
// streams of its own, so that every policy meets the same traffic.

import { Random } from "./random";
import type { ResolvedLength, ResolvedTenant } from "./tenant-reader";

/** A request on its way in. */
export interface TrafficRequest {
  /** Its number in order of arrival, from 0. */
  readonly id: number;
  readonly tenant: number;
  /** When it arrives, in ms. */
  readonly time: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly prefix: readonly number[] | undefined;
  readonly prefixChunkTokens: number | undefined;
  /** In [0, 1): which router it comes to. */
  readonly lot: number;
}

/** The requests of one tenant. */
class TenantStream {
  readonly #tenant: ResolvedTenant;
  readonly #index: number;
  readonly #durationMs: number;
  readonly #gaps: Random;
  readonly #lengths: Random;
  #count = 0;
  #time = 0;
  /** When its next request comes; Infinity: never. */
  next: number;

  constructor(tenant: ResolvedTenant, index: number, durationMs: number, seed: number) {
    this.#tenant = tenant;
    this.#index = index;
    this.#durationMs = durationMs;
    this.#gaps = new Random(seed, `arrivals of ${tenant.name}`);
    this.#lengths = new Random(seed, `lengths of ${tenant.name}`);
    this.next = this.#nextTime();
  }

  /** Takes the request that `next` announced. */
  take(id: number): TrafficRequest {
    const { prompt, output, trace, sharedPrefix, arrival } = this.#tenant;
    const random = this.#lengths;
    // Draws come in the same number and order for every request.
    const lot = random.next();
    const inTrace =
      arrival.process === "trace"
        ? trace[this.#count]
        : trace[Math.floor(random.next() * trace.length)];
    const promptTokens = prompt === undefined ? (inTrace?.promptTokens ?? 1) : draw(prompt, random);
    const outputTokens = output === undefined ? (inTrace?.outputTokens ?? 1) : draw(output, random);
    let prefix = inTrace?.hashIds;
    let prefixChunkTokens = inTrace?.chunkTokens;
    if (sharedPrefix !== undefined) {
      // Told apart from other tenants' texts, and from the hashes of traces, which are not negative.
      prefix = [-1 - this.#index - 4096 * random.below(sharedPrefix.variants)];
      prefixChunkTokens = sharedPrefix.tokens;
    }
    const time = this.next;
    this.#count++;
    this.#time = time;
    this.next = this.#nextTime();
    const tenant = this.#index;
    return { id, tenant, time, promptTokens, outputTokens, prefix, prefixChunkTokens, lot };
  }

  #nextTime(): number {
    const time = this.#planned();
    return time < this.#durationMs ? time : Number.POSITIVE_INFINITY;
  }

  #planned(): number {
    const { arrival, trace } = this.#tenant;
    const { process, rate, to, cv, size, timeScale } = arrival;
    const gap = 1000 / rate;
    switch (process) {
      case "constant":
        return this.#count * gap;
      case "bursts":
        // The first burst comes after one period, when the routers have seen the engines.
        return (1 + Math.floor(this.#count / size)) * size * gap;
      case "poisson":
        return this.#time + this.#gaps.exponential(gap);
      case "gamma":
        return this.#time + this.#gaps.gamma(gap, cv);
      case "ramp":
        return this.#afterWork(this.#gaps.exponential(1), rate / 1000, to / 1000);
      case "trace":
        return (trace[this.#count]?.timeMs ?? Number.POSITIVE_INFINITY) * timeScale;
    }
  }

  /** When a rate that goes from `from` to `to` over the duration has added up to `work` more. */
  #afterWork(work: number, from: number, to: number): number {
    const slope = (to - from) / this.#durationMs;
    const rate = from + slope * this.#time;
    if (slope === 0) return this.#time + work / rate;
    // rate * x + slope / 2 * x^2 = work
    const root = rate * rate + 2 * slope * work;
    if (root < 0) return Number.POSITIVE_INFINITY;
    return this.#time + (2 * work) / (rate + Math.sqrt(root));
  }
}

function draw({ mean, cv, min, max }: ResolvedLength, random: Random): number {
  const drawn = cv === 0 ? mean : random.lognormal(mean, cv);
  return Math.min(max, Math.max(min, Math.max(1, Math.round(drawn))));
}

/** All requests of a scenario, merged. */
export class Traffic {
  readonly #streams: readonly TenantStream[];
  #count = 0;

  constructor(tenants: readonly ResolvedTenant[], durationMs: number, seed: number) {
    this.#streams = tenants.map((tenant, i) => new TenantStream(tenant, i, durationMs, seed));
  }

  /** The next request; undefined when there are no more. */
  take(): TrafficRequest | undefined {
    let first: TenantStream | undefined;
    for (const stream of this.#streams) {
      if (stream.next < (first?.next ?? Number.POSITIVE_INFINITY)) first = stream;
    }
    return first?.take(this.#count++);
  }
}
