// Reads the pages of many endpoints at an interval and reports them to a pool. Each endpoint has its
// own rhythm and connection, so that a slow or dead one delays no other.

import type { EndpointOptions, ResolvedConfig } from "../config";
import { formatDuration } from "../duration";
import { resolveScraper, type ScraperOptions, type ScraperSettings } from "./scraper-options";
import { type ReadingPool, type ScrapeTarget, ScrapeTask } from "./scraper-task";
import type { TargetOptions } from "./targets";
import { chooseTransport } from "./transport-choice";

export type { ReadingEvent, ScraperOptions } from "./scraper-options";
export type { ScrapeTarget } from "./scraper-task";

/** What a scraper needs of a pool. */
export interface ScrapedPool extends ReadingPool {
  readonly config: ResolvedConfig;
  add(id: string, options?: EndpointOptions): unknown;
  setDefaultStaleness(ms: number): number;
}

/** A running scraper. */
export interface Scraper {
  /** The targets in the order in which they were given. */
  readonly targets: readonly ScrapeTarget[];
  /** Ends all readings and connections. Resolves when nothing is left; may be called again. */
  close(): Promise<void>;
}

const DEFAULT_STALENESS_MS = 200;

/**
 * Starts reading the targets' pages into the pool. Targets that the pool does not know are added.
 * Where the pool's config does not say what S is, it becomes `max(200ms, 3 x interval)`, by the
 * longest interval where several scrapers feed one pool.
 *
 * Timers and connections hold no process open; a connection that is being made does, until `timeout`.
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
  const { targets: resolved, settings } = resolveScraper(targets, options);
  adaptStaleness(pool, settings);
  for (const { id, endpoint } of resolved) if (pool.get(id) === undefined) pool.add(id, endpoint);
  const { fetch, timeout, logger, signal } = settings;
  const transport = chooseTransport(fetch, timeout, logger);
  const tasks = resolved.map((target) => new ScrapeTask(pool, target, transport, settings));
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= (async () => {
      signal?.removeEventListener("abort", close);
      await Promise.all(tasks.map((task) => task.stop()));
    })();
    return closing;
  };
  if (signal?.aborted) void close();
  else {
    signal?.addEventListener("abort", close, { once: true });
    for (const task of tasks) task.start();
  }
  return { targets: tasks.map(({ state }) => state), close };
}

/** R10: S fits the interval, or the logger is told that it does not. */
function adaptStaleness(pool: ScrapedPool, { interval, logger }: ScraperSettings): void {
  const wanted = Math.max(DEFAULT_STALENESS_MS, 3 * interval);
  let staleness = pool.config.metricsStalenessThreshold;
  if (wanted > staleness) staleness = pool.setDefaultStaleness(wanted);
  if (interval < staleness) return;
  logger?.warn(
    `scrape interval ${formatDuration(interval)} is not shorter than ` +
      `metricsStalenessThreshold ${formatDuration(staleness)}: every reading goes stale before ` +
      "the next one; raise the threshold to three times the interval",
  );
}
