// All leases of a pool: who sent what where, and what the pool learns from how requests start and
// end. It keeps the ledgers; the pool is told which endpoint's load changed.

import type { Endpoint } from "./endpoint";
import { Lease, type LeaseKeeper, LeaseState, type ReleaseOptions } from "./lease";
import type { Ledger } from "./ledger";
import { Pace } from "./pace";

/** What the leases do to their pool. */
export interface LeaseHost {
  /** The load of this endpoint changed by `lease` being sent, started or ended. */
  loadChanged(endpoint: Endpoint, now: number): void;
  /** The paces were compared anew, so every rank may have changed. */
  pacesChanged(now: number): void;
  now(): number;
}

/** Prompt tokens of a request whose caller gave no estimate, before any did. */
const FIRST_MEAN_PROMPT = 512;
/** A new prompt moves the mean by this share. */
const PROMPT_SHARE = 1 / 64;
/** Without any sign of starts, a request counts as started when it is this old, in ms. */
const FIRST_PRESUMED_MS = 150;
/** With signs, when it is so many times as old as requests usually are when they start. */
const PRESUMED_FACTOR = 3;
const LEAST_PRESUMED_MS = 20;
const LATENCY_SHARE = 1 / 32;

/** The leases of one pool. */
export class Leases implements LeaseKeeper {
  readonly pace = new Pace();
  readonly #host: LeaseHost;
  #order = 0;
  #meanPrompt = FIRST_MEAN_PROMPT;
  #promptSeen = false;
  /** Mean time to first byte over streamed answers, in ms; NaN before the first. */
  #firstByteMs = Number.NaN;
  /** Mean time in which requests have ended, in ms; NaN before the first. */
  #answerMs = Number.NaN;
  /** The oldest and youngest lease of the pool that has not started. */
  #oldest: Lease | undefined;
  #youngest: Lease | undefined;

  constructor(host: LeaseHost) {
    this.#host = host;
  }

  /** The order of the youngest lease; readings note it. */
  get order(): number {
    return this.#order;
  }

  /** Running mean of the prompt sizes that callers gave, in tokens. */
  get meanPrompt(): number {
    return this.#meanPrompt;
  }

  /** The oldest lease of which nothing has been seen. */
  get oldestUnstarted(): Lease | undefined {
    return this.#oldest;
  }

  /** Age at which a lease counts as started though no byte was reported, in ms. */
  get presumedMs(): number {
    if (!Number.isNaN(this.#firstByteMs)) {
      return Math.max(LEAST_PRESUMED_MS, PRESUMED_FACTOR * this.#firstByteMs);
    }
    const longest = Number.isNaN(this.#answerMs) ? FIRST_PRESUMED_MS : this.#answerMs;
    return Math.max(LEAST_PRESUMED_MS, Math.min(FIRST_PRESUMED_MS, longest));
  }

  /** When the next lease will be presumed started by time alone; Infinity: never. */
  get nextPresumedAt(): number {
    return this.#oldest === undefined
      ? Number.POSITIVE_INFINITY
      : this.#oldest.sentAt + this.presumedMs;
  }

  /** Prompt tokens to count for a request. @param tokens the caller's estimate, if any. */
  sizeOf(tokens: number | undefined): number {
    return tokens !== undefined && tokens >= 0 && tokens < Number.POSITIVE_INFINITY
      ? tokens
      : this.#meanPrompt;
  }

  /** Sends a request: from now on it is the endpoint's load. */
  send(endpoint: Endpoint, tokens: number | undefined, work: number, now: number): Lease {
    const size = this.sizeOf(tokens);
    if (size === tokens) this.#learnPrompt(size);
    const lease = new Lease(this, endpoint, size, now, ++this.#order, work);
    const { ledger } = endpoint;
    ledger.own++;
    ledger.unstarted++;
    ledger.tokens += size;
    ledger.pending += size;
    ledger.idleSamples = 0;
    lease.older = ledger.youngest;
    if (ledger.youngest === undefined) ledger.oldest = lease;
    else ledger.youngest.younger = lease;
    ledger.youngest = lease;
    lease.olderInPool = this.#youngest;
    if (this.#youngest === undefined) this.#oldest = lease;
    else this.#youngest.youngerInPool = lease;
    this.#youngest = lease;
    this.#host.loadChanged(endpoint, now);
    return lease;
  }

  leaseStarted(lease: Lease): void {
    if (lease.state === LeaseState.Started || lease.state === LeaseState.Ended) return;
    const now = this.#host.now();
    const { ledger } = lease.endpoint;
    const firstByteMs = Math.max(0, now - lease.sentAt);
    if (lease.state === LeaseState.Sent) this.#leaveUnstarted(lease, ledger);
    lease.state = LeaseState.Started;
    lease.startedAt = now;
    ledger.countStart(now, firstByteMs);
    ledger.lateStarts += Math.max(0, now - ledger.markTime);
    this.#firstByteMs = average(this.#firstByteMs, firstByteMs);
    this.#host.loadChanged(lease.endpoint, now);
    const { pace } = lease.endpoint;
    if (this.pace.learnFirstByte(pace, firstByteMs, lease.work)) this.#host.pacesChanged(now);
  }

  leaseEnded(lease: Lease, options: ReleaseOptions): void {
    if (lease.state === LeaseState.Ended) return;
    const { outputTokens = Number.NaN, failed = false } = options;
    const now = this.#host.now();
    const { endpoint } = lease;
    const { ledger } = endpoint;
    // A caller that reports starts, and not this one's, may have given it up unanswered.
    const reportsStarts = !Number.isNaN(this.#firstByteMs);
    const hasAnswer = lease.state === LeaseState.Started || outputTokens > 0 || !reportsStarts;
    if (hasAnswer && !failed) {
      // What was sent to the same endpoint before a request that was answered has started too.
      while (ledger.oldest !== undefined && ledger.oldest.order < lease.order) {
        this.#presume(ledger.oldest, now);
      }
      this.#answerMs = average(this.#answerMs, Math.max(0, now - lease.sentAt));
    }
    if (lease.state === LeaseState.Sent) this.#leaveUnstarted(lease, ledger);
    this.#giveBack(lease, ledger);
    lease.state = LeaseState.Ended;
    this.#host.loadChanged(endpoint, now);
    if (failed || !(outputTokens > 1 && outputTokens < Number.POSITIVE_INFINITY)) return;
    const since = Number.isNaN(lease.startedAt) ? lease.sentAt : lease.startedAt;
    const msPerToken = (now - since) / outputTokens;
    if (this.pace.learnToken(endpoint.pace, msPerToken, lease.work)) this.#host.pacesChanged(now);
  }

  /** An endpoint is gone: its leases go on, and nobody waits for their start any more. */
  forget(endpoint: Endpoint, now: number): void {
    const { ledger } = endpoint;
    while (ledger.oldest !== undefined) this.#presume(ledger.oldest, now);
  }

  /** Presumes started what is older than `presumedMs`. */
  presumeOld(now: number): void {
    const age = this.presumedMs;
    while (this.#oldest !== undefined && now - this.#oldest.sentAt >= age) {
      const { endpoint } = this.#oldest;
      this.#presume(this.#oldest, now);
      this.#host.loadChanged(endpoint, now);
    }
  }

  #giveBack(lease: Lease, ledger: Ledger): void {
    ledger.own--;
    ledger.tokens -= lease.tokens;
    if (ledger.own === 0) ledger.tokens = 0; // sums of fractions may leave a rest
    if (Number.isNaN(lease.startedAt)) return;
    const lateMs = lease.startedAt - ledger.markTime;
    if (lateMs > 0) ledger.lateStarts -= lateMs;
    else ledger.freedMs -= lateMs;
  }

  #presume(lease: Lease, now: number): void {
    const { ledger } = lease.endpoint;
    this.#leaveUnstarted(lease, ledger);
    lease.state = LeaseState.Presumed;
    ledger.countPresumedStart(now, Math.min(this.presumedMs, Math.max(0, now - lease.sentAt)));
  }

  #learnPrompt(size: number): void {
    this.#meanPrompt = this.#promptSeen
      ? this.#meanPrompt + (size - this.#meanPrompt) * PROMPT_SHARE
      : size;
    this.#promptSeen = true;
  }

  #leaveUnstarted(lease: Lease, ledger: Ledger): void {
    ledger.unstarted--;
    ledger.pending -= lease.tokens;
    if (ledger.unstarted === 0) ledger.pending = 0;
    if (lease.order <= ledger.markOrder) ledger.unstartedBefore--;
    const { older, younger, olderInPool, youngerInPool } = lease;
    if (older === undefined) ledger.oldest = younger;
    else older.younger = younger;
    if (younger === undefined) ledger.youngest = older;
    else younger.older = older;
    if (olderInPool === undefined) this.#oldest = youngerInPool;
    else olderInPool.youngerInPool = youngerInPool;
    if (youngerInPool === undefined) this.#youngest = olderInPool;
    else youngerInPool.olderInPool = olderInPool;
    lease.older = lease.younger = lease.olderInPool = lease.youngerInPool = undefined;
  }
}

function average(mean: number, value: number): number {
  return Number.isNaN(mean) ? value : mean + (value - mean) * LATENCY_SHARE;
}
