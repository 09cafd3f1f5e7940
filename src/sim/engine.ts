// One model server with continuous batching, step by step, after the scheduler of vLLM: running
// requests first, one token for each that generates, a piece of the prompt for each that reads; then
// waiting ones while budget, sequences and blocks last. Time comes from an event queue.

import { BlockPool } from "./blocks";
import type { EventQueue } from "./events";
import { Job, type JobListener, type JobRequest } from "./job";
import type { EngineModel } from "./presets";

/** What the metrics page of an engine says. */
export interface Gauges {
  /** When this was the state of the engine, in ms. */
  readonly time: number;
  readonly waiting: number;
  readonly running: number;
  /** Share of the blocks that requests hold. */
  readonly kv: number;
}

/** How an engine is: at work, gone (connections are refused), or mute (it takes requests and stops). */
export type EngineHealth = "up" | "dead" | "hung";

/** What an engine has done so far. */
export interface EngineCounts {
  steps: number;
  busyMs: number;
  promptTokens: number;
  outputTokens: number;
  /** Prompt tokens that were found in the prefix cache. */
  hitTokens: number;
  preemptions: number;
  /** Requests that were preempted at least once. */
  preempted: number;
  finished: number;
}

/** One engine. */
export class Engine {
  readonly model: EngineModel;
  readonly blocks: BlockPool;
  readonly counts: EngineCounts = {
    steps: 0,
    busyMs: 0,
    promptTokens: 0,
    outputTokens: 0,
    hitTokens: 0,
    preemptions: 0,
    preempted: 0,
    finished: 0,
  };
  readonly #queue: EventQueue;
  /** Preempted requests, the one to resume first at the end; they stand before all that wait. */
  readonly #preempted: Job[] = [];
  #waiting: Job[] = [];
  #waitingFrom = 0;
  #running: Job[] = [];
  #health: EngineHealth = "up";
  #slowness = 1;
  #isStepping = false;
  #isEnding = false;
  #stepStartedAt = 0;
  /** Steps of an engine that has died meanwhile must not end. */
  #life = 0;
  #gauges: Gauges = { time: 0, waiting: 0, running: 0, kv: 0 };

  constructor(queue: EventQueue, model: EngineModel) {
    this.#queue = queue;
    this.model = model;
    this.blocks = new BlockPool(model.kvBlocks);
  }

  /** Requests that wait now. */
  get waiting(): number {
    return this.#preempted.length + this.#waiting.length - this.#waitingFrom;
  }

  /** Requests in the batch now. */
  get running(): number {
    return this.#running.length;
  }

  /** Share of the blocks that requests hold now. */
  get kv(): number {
    return this.blocks.used / this.blocks.total;
  }

  get health(): EngineHealth {
    return this.#health;
  }

  /** How many times longer its steps take than the model says. */
  get slowness(): number {
    return this.#slowness;
  }

  set slowness(factor: number) {
    this.#slowness = factor;
  }

  /**
   * What its metrics page says now; undefined where it does not answer. The page shows the engine as
   * its present step began: what has come since then is not on it, and it may lag behind that too.
   */
  readGauges(): Gauges | undefined {
    if (this.#health !== "up") return undefined;
    const age = this.#queue.now - this.#gauges.time;
    if (!this.#isStepping && age >= this.model.publishingLag) this.#publish();
    return this.#gauges;
  }

  /** Takes a request. @returns undefined when it refuses the connection. */
  submit(request: JobRequest, listener: JobListener): Job | undefined {
    if (this.#health === "dead") return undefined;
    const job = new Job(request, listener);
    const blocks = this.#blocksFor(request.promptTokens + request.outputTokens - 1);
    if (blocks > this.blocks.total) {
      // It could never run to its end: refused, rather than preempting all others for ever.
      job.state = "ended";
      listener.failed(this.#queue.now);
      return job;
    }
    this.#waiting.push(job);
    this.#wake();
    return job;
  }

  /** The caller of a request is gone. */
  cancel(job: Job): void {
    if (job.state === "ended") return;
    if (job.state === "running") {
      this.#free(job);
      // While a step ends, its loop leaves out whatever has ended.
      if (!this.#isEnding) this.#running.splice(this.#running.indexOf(job), 1);
    } else if (this.#preempted.includes(job)) {
      this.#preempted.splice(this.#preempted.indexOf(job), 1);
    } else {
      this.#waiting.splice(this.#waiting.indexOf(job, this.#waitingFrom), 1);
    }
    job.state = "ended";
  }

  /** Everything in it fails, and connections are refused from now on. */
  die(): void {
    const jobs = [...this.#running, ...this.#preempted, ...this.#waiting.slice(this.#waitingFrom)];
    this.#running = [];
    this.#preempted.length = 0;
    this.#waiting = [];
    this.#waitingFrom = 0;
    this.blocks.clear();
    this.#health = "dead";
    this.#life++;
    this.#isStepping = false;
    for (const job of jobs) {
      job.state = "ended";
      job.listener.failed(this.#queue.now);
    }
  }

  /** It answers nothing any more, and does not go on. */
  hang(): void {
    if (this.#health === "up") this.#health = "hung";
  }

  /** It is up: empty after its death, or going on where it hung. */
  recover(): void {
    if (this.#health === "dead") this.#publish();
    this.#health = "up";
    this.#wake();
  }

  #wake(): void {
    if (this.#isStepping || this.#health !== "up") return;
    this.#isStepping = true;
    // After everything else that happens now, so that requests of one instant share a step.
    const life = this.#life;
    this.#queue.after(0, () => {
      if (life === this.#life) this.#step();
    });
  }

  #step(): void {
    let budget = this.model.maxNumBatchedTokens;
    const before = this.counts.preemptions;
    budget = this.#scheduleRunning(budget);
    if (this.counts.preemptions === before) this.#admit(budget);
    const { now } = this.#queue;
    if (now - this.#gauges.time >= this.model.publishingLag) this.#publish();
    this.#isStepping = this.#running.length > 0;
    if (!this.#isStepping) return;
    this.#stepStartedAt = now;
    const life = this.#life;
    this.#queue.after(this.#stepMs(), () => {
      if (life === this.#life) this.#endStep();
    });
  }

  /** Running requests come first, in the order in which they were admitted. */
  #scheduleRunning(budget: number): number {
    for (let i = 0; i < this.#running.length; i++) {
      const job = this.#running[i] as Job; // i is below the length
      const n = Math.min(job.missing, budget);
      if (n > 0) {
        while (!this.#grow(job, n)) {
          const last = this.#running.pop() as Job; // there is at least this one
          this.#preempt(last);
          if (last === job) return budget;
        }
      }
      job.scheduled = n;
      budget -= n;
    }
    return budget;
  }

  /** Waiting requests while budget, sequences and blocks last. */
  #admit(budget: number): void {
    const { maxNumSeqs, maxNumBatchedTokens, chunkedPrefill } = this.model;
    while (budget > 0 && this.#running.length < maxNumSeqs) {
      const job = this.#preempted.at(-1) ?? this.#waiting[this.#waitingFrom];
      if (job === undefined) return;
      this.#reuse(job);
      // In one piece, a prompt that no step could hold has a step that is longer.
      const isWhole = chunkedPrefill || job.missing <= budget || budget === maxNumBatchedTokens;
      const n = chunkedPrefill ? Math.min(job.missing, budget) : job.missing;
      if (!isWhole || !this.#grow(job, n)) {
        this.#free(job);
        return;
      }
      if (job === this.#preempted.at(-1)) this.#preempted.pop();
      else this.#takeFirst();
      this.counts.hitTokens += job.computed;
      job.hitTokens += job.computed;
      job.state = "running";
      job.scheduled = n;
      budget -= n;
      this.#running.push(job);
    }
  }

  #takeFirst(): void {
    this.#waitingFrom++;
    if (this.#waitingFrom < 1024 || this.#waitingFrom * 2 < this.#waiting.length) return;
    this.#waiting = this.#waiting.slice(this.#waitingFrom);
    this.#waitingFrom = 0;
  }

  /** Finds what the cache holds of a prompt. At least one token is left to compute. */
  #reuse(job: Job): void {
    const { prefix = [], promptTokens } = job.request;
    const chunkTokens = this.#chunkTokensOf(job);
    for (const hash of chunkTokens > 0 ? prefix : []) {
      const chunk = this.blocks.find(hash);
      if (chunk === undefined || job.computed + chunkTokens >= promptTokens) return;
      this.blocks.use(chunk);
      job.chunks.push(chunk);
      job.sharedBlocks += chunk.blocks;
      job.computed += chunkTokens;
    }
  }

  /** Makes room for `n` more tokens of a request. */
  #grow(job: Job, n: number): boolean {
    const blocks = this.#blocksFor(job.computed + n) - job.sharedBlocks - job.privateBlocks;
    if (blocks <= 0) return true;
    if (!this.blocks.take(blocks)) return false;
    job.privateBlocks += blocks;
    return true;
  }

  /** To the front of those that wait, with nothing computed. */
  #preempt(job: Job): void {
    this.#free(job);
    job.state = "waiting";
    this.#preempted.push(job);
    this.counts.preemptions++;
    if (job.preemptions++ === 0) this.counts.preempted++;
  }

  #free(job: Job): void {
    this.blocks.give(job.privateBlocks);
    // The end of a prompt is evicted before what it begins with.
    for (let chunk = job.chunks.pop(); chunk !== undefined; chunk = job.chunks.pop()) {
      this.blocks.leave(chunk);
    }
    job.privateBlocks = 0;
    job.sharedBlocks = 0;
    job.computed = 0;
  }

  #stepMs(): number {
    const { a, d, c, p } = this.model;
    let kvTokens = 0;
    let batch = 0;
    let prefillTokens = 0;
    for (const job of this.#running) {
      if (job.scheduled === 0) continue;
      batch++;
      kvTokens += job.computed + job.scheduled;
      if (job.isReading) prefillTokens += job.scheduled;
    }
    return (a + (d * kvTokens) / 1000 + c * batch + p * prefillTokens) * this.#slowness;
  }

  #endStep(): void {
    if (this.#health === "hung") {
      // It ends when the engine goes on.
      this.#isStepping = false;
      return;
    }
    const { now } = this.#queue;
    this.counts.steps++;
    this.counts.busyMs += now - this.#stepStartedAt;
    const running = this.#running;
    const life = this.#life;
    let kept = 0;
    this.#isEnding = true;
    for (let i = 0; i < running.length; i++) {
      const job = running[i] as Job; // i is below the length
      if (job.state === "running" && job.scheduled > 0) this.#advance(job, now);
      if (job.state === "running") running[kept++] = job;
    }
    running.length = kept;
    this.#isEnding = false;
    if (life !== this.#life) return;
    this.#step();
  }

  #advance(job: Job, now: number): void {
    const { promptTokens, outputTokens } = job.request;
    if (job.isReading) this.counts.promptTokens += job.scheduled;
    const before = job.computed;
    job.computed += job.scheduled;
    job.scheduled = 0;
    if (before < promptTokens) this.#shareChunks(job);
    if (job.missing > 0) return;
    job.generated++;
    this.counts.outputTokens++;
    if (job.generated === 1) job.listener.firstToken(now);
    if (job.generated < outputTokens || job.state !== "running") return;
    this.#free(job);
    job.state = "ended";
    this.counts.finished++;
    job.listener.finished(now);
  }

  /** What was computed of a known prefix is there for others from now on. */
  #shareChunks(job: Job): void {
    const { prefix = [] } = job.request;
    const chunkTokens = this.#chunkTokensOf(job);
    if (chunkTokens === 0) return;
    const blocks = this.#blocksFor(chunkTokens);
    while (job.chunks.length < prefix.length) {
      const end = (job.chunks.length + 1) * chunkTokens;
      if (end > Math.min(job.computed, job.request.promptTokens)) return;
      const hash = prefix[job.chunks.length] as number; // below the length
      const chunk = this.blocks.share(hash, blocks);
      // Computed twice at once: this copy stays private, and so does all that follows it.
      if (chunk === undefined) return;
      job.chunks.push(chunk);
      job.privateBlocks -= blocks;
      job.sharedBlocks += blocks;
    }
  }

  /** Tokens of a chunk of its prompt that can be shared: whole blocks; 0: none. */
  #chunkTokensOf(job: Job): number {
    const { blockSize, prefixCache } = this.model;
    const { prefix, prefixChunkTokens = 0 } = job.request;
    if (!prefixCache || prefix === undefined) return 0;
    return Math.floor(prefixChunkTokens / blockSize) * blockSize;
  }

  #publish(): void {
    const { waiting, running, kv } = this;
    this.#gauges = { time: this.#queue.now, waiting, running, kv };
  }

  #blocksFor(tokens: number): number {
    return Math.ceil(tokens / this.model.blockSize);
  }
}
