// A pool of modelled engines in virtual time, to see what the gate costs and what the projection is
// worth. Engines batch continuously: a step takes longer with more sequences and with prompt tokens.

import type { EndpointPool, Lease } from "../../src/index";

/** One request on an engine. */
interface Job {
  readonly prompt: number;
  output: number;
  readonly onFirst: (() => void) | undefined;
  readonly onDone: () => void;
  isStarted: boolean;
}

/** Events in order of time. */
export class VirtualTime {
  now = 0;
  #events: { at: number; order: number; run: () => void }[] = [];
  #order = 0;

  at(at: number, run: () => void): void {
    const event = { at: Math.max(at, this.now), order: this.#order++, run };
    // Few events are under way at once, so a sorted list is quick enough.
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#events[middle]?.at ?? 0) <= event.at) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, event);
  }

  runUntil(end: number): void {
    for (let next = this.#events[0]; next !== undefined && next.at <= end; next = this.#events[0]) {
      this.#events.shift();
      this.now = next.at;
      next.run();
    }
    this.now = end;
  }
}

/** What an engine is. */
export interface EngineModel {
  readonly maxNumSeqs: number;
  /** A step: base, per sequence, per prompt token, in ms. */
  readonly stepMs: readonly [base: number, sequence: number, token: number];
  readonly kvCapacityTokens: number;
}

export const H100: EngineModel = {
  maxNumSeqs: 128,
  stepMs: [6.7, 0.04, 0.019],
  kvCapacityTokens: 467_000,
};

/** One engine. */
export class ModelledEngine {
  readonly #time: VirtualTime;
  readonly #model: EngineModel;
  readonly #waiting: Job[] = [];
  #running: Job[] = [];
  #isStepping = false;
  done = 0;

  constructor(time: VirtualTime, model: EngineModel = H100) {
    this.#time = time;
    this.#model = model;
  }

  /** As its metrics page says it. */
  get sample() {
    const tokens = this.#running.reduce((sum, { prompt, output }) => sum + prompt + output / 2, 0);
    return {
      waitingQueueSize: this.#waiting.length,
      runningRequests: this.#running.length,
      kvCacheUsagePercent: Math.min(1, tokens / this.#model.kvCapacityTokens),
      kvCapacityTokens: this.#model.kvCapacityTokens,
    };
  }

  submit(
    prompt: number,
    output: number,
    onFirst: (() => void) | undefined,
    onDone: () => void,
  ): void {
    this.#waiting.push({ prompt, output, onFirst, onDone, isStarted: false });
    if (!this.#isStepping) this.#step();
  }

  #step(): void {
    let tokens = 0;
    while (this.#running.length < this.#model.maxNumSeqs && tokens < 2048) {
      const job = this.#waiting.shift();
      if (job === undefined) break;
      tokens += job.prompt;
      this.#running.push(job);
    }
    this.#isStepping = this.#running.length > 0;
    if (!this.#isStepping) return;
    const [base, sequence, token] = this.#model.stepMs;
    const ms = base + sequence * this.#running.length + token * tokens;
    this.#time.at(this.#time.now + ms, () => {
      const ended: Job[] = [];
      for (const job of this.#running) {
        if (!job.isStarted) {
          job.isStarted = true;
          job.onFirst?.();
        }
        if (--job.output <= 0) ended.push(job);
      }
      this.#running = this.#running.filter((job) => job.output > 0);
      this.done += ended.length;
      for (const job of ended) job.onDone();
      this.#step();
    });
  }
}

/** How requests travel and are seen. */
export interface Wire {
  /** There and back, in ms. */
  readonly roundTripMs: number;
  readonly scrapeMs: number;
  /** Answers stream, so that their first byte is seen. */
  readonly streams: boolean;
  /** The caller reports first bytes. */
  readonly marks: boolean;
}

/** Sends a leased request over the wire, and ends its lease when the answer is there. */
export function sendLeased(
  time: VirtualTime,
  engine: ModelledEngine,
  lease: Lease,
  prompt: number,
  output: number,
  wire: Wire,
  onDone: () => void,
): void {
  const half = wire.roundTripMs / 2;
  const onFirst =
    wire.streams && wire.marks ? () => time.at(time.now + half, () => lease.started()) : undefined;
  time.at(time.now + half, () =>
    engine.submit(prompt, output, onFirst, () =>
      time.at(time.now + half, () => {
        lease.release();
        onDone();
      }),
    ),
  );
}

/** Reads every engine at an interval, each at its own phase; a reading takes the wire's time. */
export function scrapeModelled(
  time: VirtualTime,
  pool: EndpointPool,
  engines: ReadonlyMap<string, ModelledEngine>,
  wire: Wire,
  onSample: () => void,
): void {
  let phase = 0;
  for (const [id, engine] of engines) {
    const read = () => {
      const reading = pool.beginReading(id);
      time.at(time.now + wire.roundTripMs / 2, () => {
        const { sample } = engine;
        time.at(time.now + wire.roundTripMs / 2, () => {
          reading.report(sample);
          onSample();
        });
      });
      time.at(time.now + wire.scrapeMs, read);
    };
    time.at((phase++ / engines.size) * wire.scrapeMs * 0.999, read);
    // Before its first sample nothing is known of an endpoint.
    pool.report(id, engine.sample);
  }
}
