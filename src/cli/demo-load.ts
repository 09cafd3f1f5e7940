// The demo's own clients: chats and completions of mixed lengths, streamed and whole, in calm and busy spells and
// in bursts, sent to the router over HTTP like anybody else's.

import { setMaxListeners } from "node:events";
import { Agent, request } from "undici";
import { Random } from "../sim/random";

/** What the clients have seen so far. */
export interface LoadReport {
  /** Answered to the end. */
  readonly answered: number;
  /** Told to come again: 429 or 503. */
  readonly refused: number;
  /** Anything else. */
  readonly failed: number;
  readonly live: number;
  /** Requests per second over the last ten. */
  readonly perSecond: number;
  /** Of the last answers that were streamed, in ms; NaN before the first. */
  readonly firstByteMs: { readonly p50: number; readonly p99: number };
}

/** Requests per second while it is calm and while it is busy, and how long a spell is. */
const CALM_RATE = 12;
const BUSY_RATE = 30;
const SPELL_MS = 8000;
const BURST_EVERY_MS = 10_000;
const BURST_SIZE = 120;
/** On a slow machine they wait for answers rather than for ever more. */
const MOST_LIVE = 300;
const RATE_WINDOW_MS = 10_000;
const FIRST_BYTES_KEPT = 300;
const WORD = "load ";

/** Clients that send requests until they are told to stop. */
export class DemoLoad {
  readonly #url: string;
  readonly #agent = new Agent({ connections: null });
  readonly #random: Random;
  readonly #abort = new AbortController();
  readonly #live = new Set<Promise<void>>();
  readonly #startedAt: number;
  readonly #clock: () => number;
  readonly #sentAt: number[] = [];
  readonly #firstByteMs: number[] = [];
  #next: NodeJS.Timeout | undefined;
  #bursts: NodeJS.Timeout | undefined;
  #answered = 0;
  #refused = 0;
  #failed = 0;

  /** @param url of the router. Begins at once. */
  constructor(url: string, seed: number, clock: () => number = () => performance.now()) {
    this.#url = url;
    this.#random = new Random(seed, "demo");
    this.#clock = clock;
    this.#startedAt = clock();
    setMaxListeners(0, this.#abort.signal); // as many as requests are under way
    this.#planNext();
    this.#bursts = setInterval(() => {
      for (let i = 0; i < BURST_SIZE; i++) this.#send();
    }, BURST_EVERY_MS);
  }

  /** What was seen so far. */
  report(): LoadReport {
    const now = this.#clock();
    while ((this.#sentAt[0] ?? now) < now - RATE_WINDOW_MS) this.#sentAt.shift();
    const window = Math.min(RATE_WINDOW_MS, Math.max(1, now - this.#startedAt));
    const sorted = this.#firstByteMs.toSorted((a, b) => a - b);
    const at = (q: number) => sorted[Math.floor(q * (sorted.length - 1))] ?? Number.NaN;
    return {
      answered: this.#answered,
      refused: this.#refused,
      failed: this.#failed,
      live: this.#live.size,
      perSecond: (this.#sentAt.length / window) * 1000,
      firstByteMs: { p50: at(0.5), p99: at(0.99) },
    };
  }

  /** Gives up what is under way. Resolves when nothing is left. */
  async close(): Promise<void> {
    clearTimeout(this.#next);
    clearInterval(this.#bursts);
    this.#abort.abort();
    await Promise.all(this.#live);
    await this.#agent.destroy();
  }

  #planNext(): void {
    const spell = Math.floor((this.#clock() - this.#startedAt) / SPELL_MS);
    const rate = spell % 2 === 0 ? CALM_RATE : BUSY_RATE;
    this.#next = setTimeout(
      () => {
        this.#send();
        this.#planNext();
      },
      this.#random.exponential(1000 / rate),
    );
  }

  #send(): void {
    if (this.#live.size >= MOST_LIVE) return;
    this.#sentAt.push(this.#clock());
    const sent = this.#ask().finally(() => this.#live.delete(sent));
    this.#live.add(sent);
  }

  async #ask(): Promise<void> {
    const random = this.#random;
    const content = WORD.repeat(Math.ceil(Math.min(1200, random.lognormal(200, 1))));
    const isChat = random.next() < 0.7;
    const stream = random.next() < 0.6;
    const asked = isChat ? { messages: [{ role: "user", content }] } : { prompt: content };
    const path = isChat ? "/v1/chat/completions" : "/v1/completions";
    const sentAt = this.#clock();
    try {
      const { statusCode, body } = await request(`${this.#url}${path}`, {
        method: "POST",
        dispatcher: this.#agent,
        signal: this.#abort.signal,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...asked, stream }),
      });
      let isFirst = stream && statusCode === 200;
      for await (const _ of body) {
        if (isFirst) this.#noteFirstByte(this.#clock() - sentAt);
        isFirst = false;
      }
      if (statusCode === 200) this.#answered++;
      else if (statusCode === 429 || statusCode === 503) this.#refused++;
      else this.#failed++;
    } catch (error) {
      // What it gave up itself has not failed.
      if (!this.#abort.signal.aborted || !(error instanceof Error)) this.#failed++;
    }
  }

  #noteFirstByte(ms: number): void {
    this.#firstByteMs.push(ms);
    if (this.#firstByteMs.length > FIRST_BYTES_KEPT) this.#firstByteMs.shift();
  }
}
