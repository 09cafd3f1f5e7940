// Reads the pages of many endpoints at an interval and reports them to a pool. Each endpoint has its
// own rhythm, so that a slow or dead one delays no other.

import { durationField, type ResolvedConfig, readFields } from "../config";
import { type Duration, formatDuration } from "../duration";
import { ConfigError, type ConfigFault } from "../errors";
import type { Logger } from "../logger";
import type { Reading } from "../pool";
import type { Sample } from "../sample";
import type { EngineName } from "./engines";
import type { Finding } from "./exposition";
import { TargetReader } from "./target-reader";
import { resolveTargets, type Target, type TargetOptions } from "./targets";
import { type FetchLike, openTransport, type Transport } from "./transport";

/** What a scraper needs of a pool. */
export interface ScrapedPool {
  readonly config: ResolvedConfig;
  get(id: string): unknown;
  add(id: string): unknown;
  beginReading(id: string): Reading;
  setDefaultStaleness(ms: number): number;
}

/** A reading that came to an end. */
export interface ReadingEvent {
  readonly id: string;
  readonly engine: EngineName | undefined;
  /** When it was begun, on the pool's clock, in ms. */
  readonly startedAt: number;
  /** As it was reported to the pool; undefined when there was no page. */
  readonly sample: Sample | undefined;
  /** Whether the pool took it. */
  readonly accepted: boolean;
  readonly findings: readonly Finding[];
  /** Why there was no page. */
  readonly error: string | undefined;
}

/** How to scrape. */
export interface ScraperOptions {
  /** Time between two readings of an endpoint, > 0. Default "50ms". */
  readonly interval?: Duration | undefined;
  /** How long one reading may take, > 0. Default "1s". */
  readonly timeout?: Duration | undefined;
  /** Engine of the targets that do not say. Default: recognised from their pages. */
  readonly engine?: EngineName | undefined;
  /** A larger page is refused, in bytes. Default 16 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** Ends the scraper. */
  readonly signal?: AbortSignal | undefined;
  /** Used instead of undici (in Node) or the runtime's own. */
  readonly fetch?: FetchLike | undefined;
  /** Is told when the interval does not fit S. Default: nobody. */
  readonly logger?: Logger | undefined;
  /** Called after every reading. */
  readonly onReading?: ((event: ReadingEvent) => void) | undefined;
  /** Numbers in [0, 1) that spread the readings. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** What is known of one target, as plain data that stays up to date. */
export interface ScrapeTarget {
  readonly id: string;
  /** Address without credentials. */
  readonly url: string;
  readonly engine: EngineName | undefined;
  /** Pages read. */
  readonly reads: number;
  /** Readings that gave no page, and how many of them in a row just now. */
  readonly failures: number;
  readonly failuresInARow: number;
  /** Why the last reading gave no page; undefined when it gave one. */
  readonly lastError: string | undefined;
  readonly findings: readonly Finding[];
  /** How long the last reading took, in ms. */
  readonly lastDurationMs: number | undefined;
}

/** A running scraper. */
export interface Scraper {
  readonly targets: readonly ScrapeTarget[];
  /** Ends all readings and connections. Resolves when nothing is left. */
  close(): Promise<void>;
}

const DEFAULTS = { interval: 50, timeout: 1000, maxBodyBytes: 16 * 1024 * 1024 };
const DEFAULT_STALENESS_MS = 200;
/** A dead endpoint is asked this often at the least, in ms. */
const LONGEST_PAUSE_MS = 5000;

/**
 * Starts reading the targets' pages into the pool. Targets that the pool does not know are added.
 * Where the pool's config does not say what S is, it becomes `max(200ms, 3 x interval)`.
 *
 * Timers and idle connections hold no process open.
 *
 * @throws ConfigError with every fault of targets and options.
 * @example
 * const scraper = startScraper(pool, ["http://10.0.0.7:8000", "http://10.0.0.8:8000"]);
 */
export function startScraper(
  pool: ScrapedPool,
  targets: readonly (string | TargetOptions)[],
  options: ScraperOptions = {},
): Scraper {
  const resolved = resolveTargets(targets, options.engine);
  const { interval, timeout, maxBodyBytes } = resolveOptions(options);
  const staleness = pool.setDefaultStaleness(Math.max(DEFAULT_STALENESS_MS, 3 * interval));
  if (interval >= staleness) {
    options.logger?.warn(
      `scrape interval ${formatDuration(interval)} is not shorter than ` +
        `metricsStalenessThreshold ${formatDuration(staleness)}: every reading goes stale before ` +
        "the next one; raise the threshold to three times the interval",
    );
  }
  for (const { id } of resolved) if (pool.get(id) === undefined) pool.add(id);
  const random = options.random ?? Math.random;
  const transport = openTransport(options.fetch);
  const tasks = resolved.map(
    (target) =>
      new ScrapeTask(pool, target, transport, {
        interval,
        timeout,
        maxBodyBytes,
        random,
        onReading: options.onReading,
      }),
  );
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= (async () => {
      options.signal?.removeEventListener("abort", close);
      for (const task of tasks) task.stop();
      await (await transport).close();
      await Promise.all(tasks.map((task) => task.finished()));
    })();
    return closing;
  };
  if (options.signal?.aborted) void close();
  else {
    options.signal?.addEventListener("abort", close, { once: true });
    for (const task of tasks) task.start();
  }
  return { targets: tasks, close };
}

interface Settings {
  readonly interval: number;
  readonly timeout: number;
  readonly maxBodyBytes: number;
}

function resolveOptions(options: ScraperOptions): Settings {
  const faults: ConfigFault[] = [];
  const { interval, timeout, maxBodyBytes } = options;
  const given = readFields<Settings>(
    {
      interval: durationField('a duration > 0, such as "50ms"', (ms) => ms > 0),
      timeout: durationField('a duration > 0, such as "1s"', (ms) => ms > 0),
      maxBodyBytes: {
        rule: "an integer > 0 (bytes)",
        read: (value) => (Number.isInteger(value) && Number(value) > 0 ? Number(value) : undefined),
      },
    },
    { interval, timeout, maxBodyBytes },
    "",
    faults,
  );
  if (faults.length > 0) throw new ConfigError(faults);
  return { ...DEFAULTS, ...given };
}

interface TaskSettings extends Settings {
  readonly random: () => number;
  readonly onReading: ((event: ReadingEvent) => void) | undefined;
}

/** The rhythm of one target. */
class ScrapeTask implements ScrapeTarget {
  readonly id: string;
  readonly url: string;
  reads = 0;
  failures = 0;
  failuresInARow = 0;
  lastError: string | undefined;
  findings: readonly Finding[] = [];
  lastDurationMs: number | undefined;
  readonly #pool: ScrapedPool;
  readonly #reader: TargetReader;
  readonly #settings: TaskSettings;
  #isStopped = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #current: Promise<void> | undefined;

  constructor(
    pool: ScrapedPool,
    target: Target,
    transport: Promise<Transport>,
    settings: TaskSettings,
  ) {
    this.id = target.id;
    this.url = target.origin + target.path;
    this.#pool = pool;
    this.#reader = new TargetReader(target, transport, settings.maxBodyBytes);
    this.#settings = settings;
  }

  get engine(): EngineName | undefined {
    return this.#reader.engine;
  }

  /** The first reading comes at a random point of the first interval, so that reads are spread. */
  start(): void {
    this.#schedule(this.#settings.random() * this.#settings.interval);
  }

  /** Begins no reading any more. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Resolves when no reading is under way. */
  async finished(): Promise<void> {
    await this.#current;
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#current = this.#readOnce();
    }, delayMs);
    // Browsers' timers are numbers, and hold nothing open anyway.
    if (typeof this.#timer === "object") this.#timer.unref?.();
  }

  async #readOnce(): Promise<void> {
    // Removed from the pool meanwhile: nothing to read for, but it may be added again.
    if (this.#pool.get(this.id) === undefined) return this.#schedule(this.#settings.interval);
    const reading = this.#pool.beginReading(this.id);
    const begun = performance.now();
    const read = await this.#reader.read(this.#settings.timeout);
    this.lastDurationMs = performance.now() - begun;
    if (this.#isStopped) return;
    const accepted = read.error === undefined && reading.report(read.sample);
    this.findings = read.findings;
    this.lastError = read.error;
    if (read.error === undefined) {
      this.reads++;
      this.failuresInARow = 0;
    } else {
      this.failures++;
      this.failuresInARow++;
    }
    this.#schedule(this.#pause());
    const { id, engine } = this;
    const { sample, findings, error } = read;
    const { startedAt } = reading;
    this.#settings.onReading?.({ id, engine, startedAt, sample, accepted, findings, error });
  }

  /** What is left of the interval; after failures twice as long each time, spread by a quarter. */
  #pause(): number {
    const { interval, random } = this.#settings;
    const spent = this.lastDurationMs ?? 0;
    if (this.failuresInARow === 0) return Math.max(0, interval - spent);
    const longest = Math.max(interval, LONGEST_PAUSE_MS);
    const pause = Math.min(longest, interval * 2 ** Math.min(this.failuresInARow, 16));
    return pause * (0.75 + random() / 2);
  }
}
