// Endpoints that have just refused a request: for a bounded time they count as saturated, twice as long
// after each refusal in a row. What was refused is not seen in telemetry, which is always late.
//
// A request that was cut off says less: it may be at fault itself, and cut off wherever it goes. Such an
// endpoint is suspected only, and held off when another one has answered the same request, or when so many
// requests in a row were cut off.

/** One endpoint's refusals. */
interface Entry {
  until: number;
  since: number;
  inARow: number;
  /** Requests that were cut off since it has answered one. */
  suspicions: number;
}

/** So many requests in a row that were cut off are no accident. */
const ENOUGH_SUSPICIONS = 3;

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
      before.suspicions = 0;
      return;
    }
    const inARow = (before?.inARow ?? 0) + 1;
    const doubled = holdOff * 2 ** Math.min(inARow - 1, 30);
    const until = now + Math.min(longestHoldOff, Math.max(doubled, retryAfterMs));
    this.#entries.set(id, { until, since: now, inARow, suspicions: 0 });
    this.#latest = Math.max(this.#latest, until);
  }

  /** A request was cut off before its answer. */
  suspect(id: string, now: number): void {
    let entry = this.#entries.get(id);
    if (entry === undefined) {
      entry = { until: Number.NEGATIVE_INFINITY, since: now, inARow: 0, suspicions: 0 };
      this.#entries.set(id, entry);
    }
    if (++entry.suspicions >= ENOUGH_SUSPICIONS) this.note(id, now);
  }

  /** It was the request's own fault. */
  acquit(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.suspicions = Math.max(0, entry.suspicions - 1);
    if (entry.suspicions === 0 && entry.inARow === 0) this.#entries.delete(id);
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

  /** When the first of `ids` may be asked again; Infinity when there is none. */
  firstEnd(ids: Iterable<string>, now: number): number {
    let first = Number.POSITIVE_INFINITY;
    for (const id of ids) first = Math.min(first, this.#entries.get(id)?.until ?? now);
    return first;
  }

  /** When the next hold-off ends; Infinity when there is none. */
  nextEnd(now: number): number {
    if (now >= this.#latest) return Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const { until } of this.#entries.values()) if (until > now) next = Math.min(next, until);
    return next;
  }
}
