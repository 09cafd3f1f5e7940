// One target's rhythm: when it is read, what is reported to the pool, and what is known of it.

import type { Reading } from "../pool-options";
import type { EngineName } from "./engines";
import type { ScraperSettings } from "./scraper-options";
import { type TargetFinding, TargetReader, type TargetReading } from "./target-reader";
import type { Target } from "./targets";
import { type OpenSource, startTimer } from "./transport";

/** What is known of one target, as plain data that stays up to date. */
export interface ScrapeTarget {
  readonly id: string;
  /** Address without credentials and query. */
  readonly url: string;
  readonly engine: EngineName | undefined;
  /** Pages read. */
  readonly reads: number;
  /** Readings that gave no page. */
  readonly failures: number;
  /** How many of the latest readings gave no page, without one between them that did. */
  readonly failuresInARow: number;
  /** Why the last reading gave no page; undefined when it gave one. */
  readonly lastError: string | undefined;
  /** What the last reading found odd. */
  readonly findings: readonly TargetFinding[];
  /** How long the last reading took, in ms. */
  readonly lastDurationMs: number | undefined;
  /** After a failure: when it is read again, on the pool's clock, in ms. */
  readonly backingOffUntil: number | undefined;
}

/** What a rhythm needs of a pool. */
export interface ReadingPool {
  get(id: string): unknown;
  beginReading(id: string): Reading;
}

/** A dead endpoint is asked this often at the least, in ms. */
const LONGEST_PAUSE_MS = 5000;
/** Twice as long after each failure, until it is long enough by far. */
const MOST_DOUBLINGS = 16;

/** Reads one target again and again. A reading never overlaps another of the same target. */
export class ScrapeTask {
  readonly #pool: ReadingPool;
  readonly #reader: TargetReader;
  readonly #settings: ScraperSettings;
  readonly #state: { -readonly [K in keyof ScrapeTarget]: ScrapeTarget[K] };
  #isStopped = false;
  /** When the last reading was to begin, on the clock by which timers run. */
  #dueAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #current: Promise<void> | undefined;

  constructor(
    pool: ReadingPool,
    target: Target,
    transport: Promise<OpenSource>,
    settings: ScraperSettings,
  ) {
    this.#pool = pool;
    this.#reader = new TargetReader(target, transport, settings.maxBodyBytes);
    this.#settings = settings;
    this.#state = {
      id: target.id,
      url: target.origin + target.path,
      engine: target.engine,
      reads: 0,
      failures: 0,
      failuresInARow: 0,
      lastError: undefined,
      findings: [],
      lastDurationMs: undefined,
      backingOffUntil: undefined,
    };
  }

  /** What is known of the target. */
  get state(): ScrapeTarget {
    return this.#state;
  }

  /** The first reading comes at a random point of the first interval, so that reads are spread. */
  start(): void {
    const delayMs = this.#settings.random() * this.#settings.interval;
    this.#dueAt = performance.now() + delayMs;
    this.#schedule(delayMs);
  }

  /** Ends the reading that is under way and begins none any more. Resolves when nothing is left. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#reader.close();
    await this.#current;
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return;
    this.#timer = startTimer(() => {
      this.#current = this.#readOnce();
    }, delayMs);
  }

  async #readOnce(): Promise<void> {
    const { interval, timeout } = this.#settings;
    const { id } = this.#state;
    // Removed from the pool meanwhile: nothing to read for, but it may be added again.
    if (this.#pool.get(id) === undefined) return this.#schedule(interval);
    const reading = this.#pool.beginReading(id);
    // The rhythm is measured on the clock by which timers run, whatever the pool's clock is.
    const begun = performance.now();
    const read = await this.#reader.read(timeout);
    const now = performance.now();
    const durationMs = now - begun;
    if (this.#isStopped) return;
    const accepted = read.error === undefined && reading.report(read.sample);
    this.#note(read, durationMs);
    const pause = this.#pauseAt(now);
    this.#state.backingOffUntil =
      read.error === undefined ? undefined : reading.startedAt + durationMs + pause;
    this.#schedule(pause);
    this.#tell(read, reading.startedAt, accepted);
  }

  #note(read: TargetReading, durationMs: number): void {
    const state = this.#state;
    state.engine = this.#reader.engine;
    state.lastDurationMs = durationMs;
    state.findings = read.findings;
    state.lastError = read.error;
    if (read.error === undefined) {
      state.reads++;
      state.failuresInARow = 0;
    } else {
      state.failures++;
      state.failuresInARow++;
    }
  }

  /**
   * What is left of the interval; after failures twice as long each time, spread by a quarter. Counted
   * from when the reading was due, not from when it began: else timers that fire together stay
   * together, and in the end all targets are read at once.
   */
  #pauseAt(now: number): number {
    const { interval, random } = this.#settings;
    const { failuresInARow } = this.#state;
    if (failuresInARow === 0) {
      this.#dueAt = Math.max(now, this.#dueAt + interval);
      return this.#dueAt - now;
    }
    const longest = Math.max(interval, LONGEST_PAUSE_MS);
    const doubled = interval * 2 ** Math.min(failuresInARow, MOST_DOUBLINGS);
    const pause = Math.min(longest, doubled) * (0.75 + random() / 2);
    this.#dueAt = now + pause;
    return pause;
  }

  #tell(read: TargetReading, startedAt: number, accepted: boolean): void {
    const { onReading } = this.#settings;
    if (onReading === undefined) return;
    const { id, engine } = this.#state;
    const { sample, findings, error } = read;
    // What a listener throws is an uncaught error of its own, and not the end of this rhythm.
    queueMicrotask(() => onReading({ id, engine, startedAt, sample, accepted, findings, error }));
  }
}
