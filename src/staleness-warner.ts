// R12: tells the logger that endpoints are stale, at most once per 30 s, and R11: that a time looks
// as if it came from the other clock.

import { formatDuration } from "./duration";
import type { Logger } from "./logger";

const QUIET_MS = 30_000;
const OTHER_CLOCK_MS = 3_600_000;

/** One per detector or pool. */
export class StalenessWarner {
  readonly #logger: Logger | undefined;
  readonly #name: string;
  #staleAt = Number.NEGATIVE_INFINITY;
  #clockAt = Number.NEGATIVE_INFINITY;

  constructor(logger: Logger | undefined, name: string) {
    this.#logger = logger;
    this.#name = name;
  }

  /** Counts of a judgement at `now`; says so when not all is fresh. */
  noteStale(now: number, stale: number, unusable: number, n: number, stalenessMs: number): void {
    if (this.#logger === undefined || stale + unusable === 0) return;
    // A clock that was set back must not silence the warning for long.
    if (Math.abs(now - this.#staleAt) < QUIET_MS) return;
    this.#staleAt = now;
    this.#logger.warn(
      `${this.#name}: ${stale + unusable} of ${n} endpoints have no fresh telemetry ` +
        `(${stale} older than ${formatDuration(stalenessMs)}, ${unusable} without a reading); ` +
        "check that they are scraped, more often than that, and that their /metrics answers",
    );
  }

  /** True when a time this far from `now` is worth a look by `noteTime`. */
  static isFarOff(now: number, time: number): boolean {
    return Math.abs(now - time) > OTHER_CLOCK_MS;
  }

  /** A reading's time is more than an hour off: usually it is on the other clock. */
  noteTime(now: number, time: number): void {
    if (this.#logger === undefined || Math.abs(now - this.#clockAt) < QUIET_MS) return;
    this.#clockAt = now;
    this.#logger.warn(
      `${this.#name}: a reading has updateTime ${time} where the clock says ${now}: usually a ` +
        "time from the other clock (Date.now or performance.now); pass the one that stamps your " +
        "readings as `clock`",
    );
  }
}
