// One request inside an engine: what it asks for, how far it is, and the blocks that it holds.

import type { Chunk } from "./blocks";

/** What an engine must know of a request. */
export interface JobRequest {
  /** Tokens of its prompt; an integer > 0. */
  readonly promptTokens: number;
  /** Tokens of its answer; an integer > 0. */
  readonly outputTokens: number;
  /** Hashes of the chunks that its prompt begins with, each standing for all before it too. */
  readonly prefix?: readonly number[] | undefined;
  /** Tokens of one such chunk. */
  readonly prefixChunkTokens?: number | undefined;
}

/** What an engine tells of a request. */
export interface JobListener {
  /** Its first token is there. */
  firstToken(now: number): void;
  /** Its last token is there. */
  finished(now: number): void;
  /** The engine died, or can never run it. */
  failed(now: number): void;
}

/** Where a request is. */
export type JobState = "waiting" | "running" | "ended";

/** A request inside an engine. */
export class Job {
  readonly request: JobRequest;
  readonly listener: JobListener;
  state: JobState = "waiting";
  /** Tokens whose KV is in the cache. */
  computed = 0;
  /** Tokens of the answer so far. */
  generated = 0;
  /** Tokens that this step computes; 0: it is left out. */
  scheduled = 0;
  /** Blocks that are its alone. */
  privateBlocks = 0;
  /** Blocks of all chunks that it uses. */
  sharedBlocks = 0;
  readonly chunks: Chunk[] = [];
  /** How often it was preempted. */
  preemptions = 0;
  /** Prompt tokens that it found in the cache, over all its starts. */
  hitTokens = 0;

  constructor(request: JobRequest, listener: JobListener) {
    this.request = request;
    this.listener = listener;
  }

  /** Tokens that are known: the prompt, and what was generated. */
  get known(): number {
    return this.request.promptTokens + this.generated;
  }

  /** Tokens that must be computed before the next token of the answer comes. */
  get missing(): number {
    return this.known - this.computed;
  }

  /** It is still reading: its prompt, or after a preemption everything that it had. */
  get isReading(): boolean {
    return this.generated === 0 || this.missing > 1;
  }
}
