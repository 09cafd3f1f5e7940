// Endpoints that have just refused a request: for a bounded time they count as saturated, twice as long
// after each refusal in a row. What was refused is not seen in telemetry, which is always late.

/** One endpoint's refusals. */
interface Entry {
  until: number;
  since: number;
  inARow: number;
}

/** How long endpoints are held off, in ms. */
export interface HoldOffTimes {
  readonly holdOff: number;
  readonly longestHoldOff: number;
}

const NOBODY: ReadonlySet<string> = new Set();

/** Who is held off, and until when. Times are on the pool's clock, in ms. */
export class HoldOffs {
  readonly #times: () => HoldOffTimes;
  readonly #entries = new Map<string, Entry>();
  #latest = Number.NEGATIVE_INFINITY;

  /** @param times asked at each refusal, since a reload may change them. */
  constructor(times: () => HoldOffTimes) {
    this.#times = times;
  }

  /**
   * An endpoint has refused a request, or could not be reached.
   *
   * @param retryAfterMs what it asked for, if anything; counts up to the longest hold-off.
   */
  note(id: string, now: number, retryAfterMs = 0): void {
    const { holdOff, longestHoldOff } = this.#times();
    const before = this.#entries.get(id);
    // Many requests may be refused at once: they are one refusal.
    if (before !== undefined && now < before.until) {
      before.until = Math.max(before.until, now + Math.min(retryAfterMs, longestHoldOff));
      this.#latest = Math.max(this.#latest, before.until);
      return;
    }
    const inARow = (before?.inARow ?? 0) + 1;
    const doubled = holdOff * 2 ** Math.min(inARow - 1, 30);
    const until = now + Math.min(longestHoldOff, Math.max(doubled, retryAfterMs));
    this.#entries.set(id, { until, since: now, inARow });
    this.#latest = Math.max(this.#latest, until);
  }

  /** An endpoint has answered a request that was sent at `sentAt`. */
  clear(id: string, sentAt: number): void {
    if (this.#entries.size === 0) return;
    const entry = this.#entries.get(id);
    if (entry !== undefined && sentAt > entry.since) this.#entries.delete(id);
  }

  /** An endpoint is gone. */
  forget(id: string): void {
    this.#entries.delete(id);
  }

  /** Whether nobody has refused anything lately; then no clock need be read. */
  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** Who is held off at `now`. */
  heldAt(now: number): ReadonlySet<string> {
    if (now >= this.#latest || this.#entries.size === 0) return NOBODY;
    const held = new Set<string>();
    for (const [id, { until }] of this.#entries) if (now < until) held.add(id);
    return held;
  }

  /** When the next hold-off ends; Infinity when there is none. */
  nextEnd(now: number): number {
    if (now >= this.#latest) return Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const { until } of this.#entries.values()) if (until > now) next = Math.min(next, until);
    return next;
  }
}
