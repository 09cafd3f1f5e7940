// plimsoll watch: a live table of a pool, or lines and JSON where there is no terminal.

import { EndpointPool } from "../pool";
import type { PoolSnapshot } from "../snapshot";
import { type ReadingEvent, type Scraper, startScraper } from "../telemetry/scraper";
import type { TargetOptions } from "../telemetry/targets";
import type { FileConfig } from "./config-file";
import { startDemoFleet } from "./demo";
import { Recorder } from "./recording";
import { Screen } from "./screen";
import { paintFor } from "./text";
import { type About, headline, render } from "./view";

/** What the command line asked for. */
export interface WatchOptions {
  readonly config: FileConfig;
  readonly once: boolean;
  readonly json: boolean;
  readonly demo: boolean;
  readonly record: string | undefined;
}

const DRAW_MS = 100;
const LINE_MS = 1000;
const HISTORY = 600;

/** Runs until it is told to stop. Resolves to the exit code. */
export async function watch(options: WatchOptions): Promise<number> {
  const fleet = options.demo ? await startDemoFleet() : undefined;
  try {
    const watcher = new Watcher(options, fleet?.urls ?? []);
    try {
      return await (options.once ? watcher.once() : watcher.run());
    } finally {
      await watcher.close();
    }
  } finally {
    await fleet?.close();
  }
}

class Watcher {
  readonly #options: WatchOptions;
  readonly #pool: EndpointPool;
  readonly #scraper: Scraper;
  readonly #recorder: Recorder | undefined;
  readonly #answered = new Set<string>();
  readonly #history: number[] = [];
  readonly #notes: string[] = [];
  #onAnswer: (() => void) | undefined;

  constructor(options: WatchOptions, demoUrls: readonly string[]) {
    const { config, record } = options;
    this.#options = options;
    // The live view shows staleness itself, and --once waits for the first readings.
    const logger =
      options.once || this.#isLive ? undefined : { warn: (t: string) => this.#note(t) };
    this.#pool = new EndpointPool(config.detector, { logger });
    const demo: TargetOptions[] = demoUrls.map((url) => ({ url }));
    const endpoints = [...config.endpoints, ...demo];
    this.#scraper = startScraper(this.#pool, endpoints, {
      interval: config.interval,
      timeout: config.timeout,
      engine: config.engine,
      logger: { warn: (text) => this.#note(text) },
      onReading: (event) => this.#onReading(event),
      // One look should not wait for its turn in a long interval.
      random: options.once ? () => 0 : undefined,
    });
    // One look at each: what came within the timeout is as fresh as it gets.
    if (options.once) this.#pool.setDefaultStaleness(3 * (config.timeout ?? 1000));
    const ids = this.#scraper.targets.map(({ id }) => id);
    this.#recorder =
      record === undefined
        ? undefined
        : new Recorder(record, ids, this.#pool.config.metricsStalenessThreshold);
  }

  /** One reading of every endpoint, then the table. */
  async once(): Promise<number> {
    // The scraper holds no process open, and this one must not end before its answers.
    const hold = setInterval(() => undefined, LINE_MS);
    await new Promise<void>((resolve) => {
      const check = () => {
        if (this.#answered.size >= this.#pool.size) resolve();
      };
      this.#onAnswer = check;
      check();
    });
    clearInterval(hold);
    const snapshot = this.#pool.snapshot();
    if (this.#options.json) process.stdout.write(`${JSON.stringify(this.#toJSON(snapshot))}\n`);
    else process.stdout.write(`${this.#lines(snapshot, Number.POSITIVE_INFINITY).join("\n")}\n`);
    const isUnread = snapshot.endpoints.some(({ state }) => state === "unusable");
    return snapshot.saturation >= 1 || snapshot.failedOpen || isUnread ? 1 : 0;
  }

  /** Until q, Ctrl-C, SIGTERM, or a pipe that nobody reads any more. */
  async run(): Promise<number> {
    const isLive = this.#isLive;
    return new Promise<number>((resolve) => {
      const screen = new Screen(process.stdout, process.stdin, () => finish(0));
      const tick = () => {
        const failure = this.#recorder?.failure;
        if (failure !== undefined) return finish(2);
        const snapshot = this.#pool.snapshot();
        this.#history.push(snapshot.saturation);
        if (this.#history.length > HISTORY) this.#history.shift();
        if (isLive) screen.draw(this.#lines(snapshot, process.stdout.rows));
        else process.stdout.write(`${this.#line(snapshot)}\n`);
      };
      const timer = setInterval(tick, isLive ? DRAW_MS : LINE_MS);
      const onSignal = () => finish(0);
      const onResize = () => screen.draw([""]);
      const finish = (code: number, message?: string) => {
        clearInterval(timer);
        process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
        process.stdout.off("resize", onResize);
        screen.close();
        if (message !== undefined) process.stderr.write(`plimsoll: ${message}\n`);
        resolve(code);
      };
      process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
      process.stdout.on("resize", onResize).on("error", onSignal);
      if (isLive) screen.open();
      if (isLive) tick();
    });
  }

  async close(): Promise<void> {
    await this.#scraper.close();
    await this.#recorder?.close();
    const failure = this.#recorder?.failure;
    if (failure !== undefined) throw failure;
  }

  #onReading(event: ReadingEvent): void {
    this.#recorder?.add(event, performance.now());
    this.#answered.add(event.id);
    this.#onAnswer?.();
  }

  /** Warnings stand under the live table, and on standard error without one. */
  #note(text: string): void {
    this.#notes.push(text);
    if (!this.#isLive) process.stderr.write(`plimsoll: ${text}\n`);
  }

  get #isLive(): boolean {
    const { json, once } = this.#options;
    return process.stdout.isTTY === true && !json && !once;
  }

  #about(id: string): About {
    const target = this.#scraper.targets.find((one) => one.id === id);
    return { engine: target?.engine, error: target?.lastError ?? target?.findings[0]?.message };
  }

  #lines(snapshot: PoolSnapshot, height: number): string[] {
    const { once } = this.#options;
    const { metricsStalenessThreshold: staleness } = this.#pool.config;
    const help = `q quits   read every ${this.#options.config.interval ?? 50} ms, stale after ${staleness} ms`;
    return render(snapshot, {
      paint: paintFor(process.stdout),
      width: process.stdout.columns ?? Number.POSITIVE_INFINITY,
      height,
      history: once ? undefined : this.#history,
      about: (id) => this.#about(id),
      footer: once ? undefined : `${help}   ${this.#notes.at(-1) ?? ""}`.trimEnd(),
    });
  }

  #line(snapshot: PoolSnapshot): string {
    if (this.#options.json) return JSON.stringify(this.#toJSON(snapshot));
    const time = new Date().toISOString().slice(11, 19);
    return `${time}  ${headline(snapshot, (_, text) => text, 200)}`;
  }

  #toJSON(snapshot: PoolSnapshot): unknown {
    const endpoints = snapshot.endpoints.map((endpoint) => ({
      ...endpoint,
      ...this.#about(endpoint.id),
    }));
    return { ...snapshot, endpoints };
  }
}
