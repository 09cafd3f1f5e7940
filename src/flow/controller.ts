// FlowController: the scheduler in real time. Callers await a permit; it wakes on changes of the pool,
// on new requests, and on one timer for the next instant at which time alone matters. It polls nothing.

import { type Duration, parseDuration } from "../duration";
import { ConfigError, type ConfigFault, DurationError, describeValue } from "../errors";
import type { Unsubscribe } from "../evaluation";
import type { Lease, ReleaseOptions } from "../lease";
import type { LeaseRequest } from "../pick";
import { Subscribers } from "../subscribers";
import { AdmissionError } from "./errors";
import { type FlowOptions, type ResolvedFlowOptions, resolveFlowOptions } from "./options";
import { type AdmissionSource, FlowScheduler } from "./scheduler";
import type { RefusalReason, Ticket } from "./ticket";

/** A request that asks to be let through. */
export interface AdmitOptions extends LeaseRequest {
  /** Its band, by name or by index (0 is the highest). Default: the lowest. */
  readonly priority?: string | number | undefined;
  /** Whose request it is; flows of one band take turns. Default: one flow for all. */
  readonly flow?: string | undefined;
  /** By when it should be served, on the controller's clock, in ms. Orders its flow; ends nothing. */
  readonly deadline?: number | undefined;
  /** How long it may wait; may only shorten the controller's. */
  readonly ttl?: Duration | undefined;
  /** Ends the waiting when its caller is gone. */
  readonly signal?: WaitSignal | undefined;
}

/** What of an `AbortSignal` is used; making a real one costs more than an admission does. */
export type WaitSignal = Pick<AbortSignal, "aborted" | "reason"> & {
  addEventListener(type: "abort", listener: () => void, options?: { once: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
};

/** Leave to send a request. Release it when the request has ended, in whatever way. */
export interface Permit {
  /** The endpoint's lease; undefined when the source has no leases. */
  readonly lease: Lease | undefined;
  /** How long it took to get it, in ms. */
  readonly waitedMs: number;
  /** Ends the lease. May be called again without effect. */
  release(options?: ReleaseOptions): void;
  [Symbol.dispose](): void;
}

/** What a band is doing, and has done so far. */
export interface BandStats {
  readonly name: string;
  readonly ceiling: number;
  readonly waiting: number;
  /** Flows with requests waiting. */
  readonly flows: number;
  readonly admitted: number;
  readonly refused: Readonly<Record<RefusalReason, number>>;
  /** Time spent waiting by all requests that wait no more, and the longest of it, in ms. */
  readonly waitedMs: number;
  readonly longestWaitMs: number;
}

/** What a controller is doing. */
export interface FlowStats {
  readonly waiting: number;
  /** Saturation that the gate looks at. */
  readonly saturation: number;
  /** Admissions per second, averaged over some seconds. */
  readonly drainRate: number;
  readonly closing: boolean;
  /** Highest first. */
  readonly bands: readonly BandStats[];
}

/** Longer than a timer of the platform can be set. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Holds requests back while the pool is saturated, by priority and fairly between flows.
 *
 * @example
 * const controller = new FlowController(pool);
 * const permit = await controller.admit({ flow: tenant, tokens: 900, signal });
 * try { await send(permit.lease.endpoint.id); } finally { permit.release(); }
 */
export class FlowController {
  readonly #source: AdmissionSource;
  readonly #options: ResolvedFlowOptions;
  readonly #clock: () => number;
  readonly #scheduler: FlowScheduler;
  readonly #subscribers = new Subscribers();
  /** While something waits, it listens to its source; else changes there are none of its business. */
  #unsubscribe: Unsubscribe | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #isClosing = false;
  #closed: Promise<void> | undefined;
  #whenEmpty: (() => void) | undefined;

  /** @throws ConfigError with every fault of `options`. */
  constructor(source: AdmissionSource, options: FlowOptions = {}) {
    this.#source = source;
    this.#options = resolveFlowOptions(options);
    this.#clock = options.clock ?? (() => source.now?.() ?? performance.now());
    const { limits, ceilings, maxRequests, aggregation, mode } = this.#options;
    this.#scheduler = new FlowScheduler(source, {
      bandLimits: limits,
      ceilings,
      maxRequests,
      aggregation,
      shed: mode === "shed",
    });
  }

  /**
   * Asks for leave to send a request.
   *
   * @returns a permit, once the pool has room and it is this request's turn.
   * Rejects with AdmissionError when it is refused, and with ConfigError when `options` are wrong.
   */
  admit(options: AdmitOptions = {}): Promise<Permit> {
    return new Promise((resolve, reject) => {
      const now = this.#clock();
      const { signal, tokens, prefer, exclude, among, score, deadline } = options;
      const { band, ttlMs } = this.#check(options);
      let ticket: Ticket | undefined;
      const onAbort = () => {
        if (ticket !== undefined) this.#scheduler.cancel(ticket, this.#clock());
      };
      const settle = () => {
        signal?.removeEventListener("abort", onAbort);
        this.#changed();
      };
      const { flow = "" } = options;
      const request = { band, flow, deadline, ttlMs, tokens, prefer, exclude, among, score };
      if (signal?.aborted) {
        reject(cancelled(signal));
        return;
      }
      ticket = this.#scheduler.enqueue(
        request,
        {
          admitted: (lease, waitedMs) => {
            settle();
            resolve(new LeasePermit(lease, waitedMs));
          },
          refused: (refusal) => {
            settle();
            const cause = refusal.reason === "cancelled" ? { cause: signal?.reason } : undefined;
            reject(new AdmissionError(refusal, cause));
          },
          failed: (error) => {
            settle();
            reject(error);
          },
        },
        now,
      );
      if (!ticket.isWaiting) return;
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#setTimer(now);
      this.#subscribers.notify();
    });
  }

  /**
   * As `admit` for a request that need not wait: the permit, or undefined when others wait or the
   * gate is shut. Cheaper, for who asks thousands of times a second.
   *
   * @throws ConfigError when `options` are wrong.
   */
  tryAdmit(options: AdmitOptions = {}): Permit | undefined {
    if (this.#scheduler.waiting > 0) return undefined;
    const { tokens, prefer, exclude, among, score, flow = "", deadline } = options;
    const { band, ttlMs } = this.#check(options);
    const request = { band, flow, deadline, ttlMs, tokens, prefer, exclude, among, score };
    const lease = this.#scheduler.tryPlace(request, this.#clock());
    if (lease === undefined) return undefined;
    this.#subscribers.notify();
    return new LeasePermit(lease, 0);
  }

  /**
   * Takes nothing new; what waits is dispatched until `drain` has passed, and then refused.
   * Resolves when nothing waits. Leases that were given go on.
   *
   * @param options.drain default 0: what waits is refused at once.
   */
  close(options: { readonly drain?: Duration | undefined } = {}): Promise<void> {
    this.#closed ??= this.#drain(parseDuration(options.drain ?? 0));
    return this.#closed;
  }

  /** What it is doing, as plain data. */
  stats(): FlowStats {
    const now = this.#clock();
    const { names, ceilings, aggregation } = this.#options;
    return {
      waiting: this.#scheduler.waiting,
      saturation: this.#source.saturation(aggregation),
      drainRate: this.#scheduler.drainRate(now),
      closing: this.#isClosing,
      bands: this.#scheduler.counts.map((counts, i) => {
        const { requests, flows } = this.#scheduler.waitingIn(i);
        return {
          name: names[i] ?? "",
          ceiling: ceilings[i] ?? 1,
          waiting: requests,
          flows,
          ...counts,
          refused: { ...counts.refused },
        };
      }),
    };
  }

  /** Calls `listener` after requests came, went or ended, many at once. */
  subscribe(listener: () => void): Unsubscribe {
    return this.#subscribers.add(listener);
  }

  #check(options: AdmitOptions): { band: number; ttlMs: number } {
    const { names, ttlMs: longest } = this.#options;
    const { priority = names.length - 1, ttl } = options;
    const band = typeof priority === "number" ? priority : names.indexOf(priority);
    const isBand = Number.isInteger(band) && band >= 0 && band < names.length;
    // Nearly every request is right, and is told so without any garbage.
    if (isBand && ttl === undefined && isRequest(options)) return { band, ttlMs: longest };
    const faults: ConfigFault[] = [];
    if (!isBand) {
      const rule = `must be one of ${names.map(describeValue).join(", ")}, or an index of them`;
      faults.push({ path: "priority", value: priority, rule });
    }
    let ttlMs = longest;
    try {
      ttlMs = Math.min(longest, Math.max(0, parseDuration(ttl ?? longest)));
    } catch (error) {
      if (!(error instanceof DurationError)) throw error;
      faults.push({ path: "ttl", value: ttl, rule: 'must be a duration, such as "10s"' });
    }
    checkRequest(options, faults);
    if (faults.length > 0) throw new ConfigError(faults);
    return { band, ttlMs };
  }

  /** Something changed, or a time has come. */
  #wake(): void {
    const now = this.#clock();
    this.#scheduler.pump(now);
    this.#setTimer(now);
  }

  #changed(): void {
    this.#subscribers.notify();
    if (this.#scheduler.waiting === 0) this.#whenEmpty?.();
  }

  /** One timer, for whatever comes first. One that comes too early does no harm. */
  #setTimer(now: number): void {
    if (this.#scheduler.waiting === 0) {
      this.#unsubscribe?.();
      this.#unsubscribe = undefined;
      clearTimeout(this.#timer);
      this.#timerAt = Number.POSITIVE_INFINITY;
      return;
    }
    this.#unsubscribe ??= this.#source.subscribe(() => this.#wake());
    const validUntil = this.#source.validUntil?.() ?? this.#source.evaluate().validUntil;
    // At its very edge a reading is still fresh, so that the gate is asked just after it.
    const at = Math.min(this.#scheduler.nextExpiry, Math.max(validUntil, now) + 1);
    if (at >= this.#timerAt && this.#timerAt > now) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    const delay = Math.min(LONGEST_TIMER_MS, Math.max(0, Math.ceil(at - now)));
    this.#timer = setTimeout(() => {
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.#wake();
    }, delay);
  }

  async #drain(ms: number): Promise<void> {
    this.#isClosing = true;
    this.#scheduler.stop();
    if (ms > 0 && this.#scheduler.waiting > 0) {
      await new Promise<void>((resolve) => {
        const limit = setTimeout(resolve, Math.min(ms, LONGEST_TIMER_MS));
        this.#whenEmpty = () => {
          clearTimeout(limit);
          resolve();
        };
      });
    }
    this.#scheduler.refuseAll("shutting-down", this.#clock());
    this.#unsubscribe?.();
    clearTimeout(this.#timer);
    this.#subscribers.notify();
  }
}

/** A class, since one is made for every request. */
class LeasePermit implements Permit {
  readonly lease: Lease | undefined;
  readonly waitedMs: number;

  constructor(lease: Lease | undefined, waitedMs: number) {
    this.lease = lease;
    this.waitedMs = waitedMs;
  }

  release(options?: ReleaseOptions): void {
    this.lease?.release(options);
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

const isTime = (value: unknown) => typeof value === "number" && !Number.isNaN(value);
const isText = (value: unknown) => typeof value === "string";
const isIds = (value: unknown) => Array.isArray(value) || value instanceof Set;
const isFunction = (value: unknown) => typeof value === "function";

/** What `pick` is asked with, and what is right. */
const REQUEST_RULES = [
  ["deadline", isTime, "must be a time in ms"],
  ["flow", isText, "must be a text"],
  ["exclude", isIds, "must be a list or a Set of endpoint ids"],
  ["among", isIds, "must be a list or a Set of endpoint ids"],
  ["score", isFunction, "must be a function"],
] as const;

function isRequest({ deadline, flow, exclude, among, score }: AdmitOptions): boolean {
  return (
    (deadline === undefined || isTime(deadline)) &&
    (flow === undefined || isText(flow)) &&
    (exclude === undefined || isIds(exclude)) &&
    (among === undefined || isIds(among)) &&
    (score === undefined || isFunction(score))
  );
}

/** A fault here must not come up when it is this request's turn. */
function checkRequest(options: AdmitOptions, faults: ConfigFault[]): void {
  for (const [path, isRight, rule] of REQUEST_RULES) {
    const value = options[path];
    if (value !== undefined && !isRight(value)) faults.push({ path, value, rule });
  }
}

function cancelled(signal: WaitSignal): AdmissionError {
  const refusal = { reason: "cancelled", status: undefined, retryAfterS: undefined } as const;
  return new AdmissionError({ ...refusal, gate: undefined, waitedMs: 0 }, { cause: signal.reason });
}
