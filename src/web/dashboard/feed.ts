// The connection to the router. EventSource connects again by itself after a break; this adds what it does
// not: it notices silence, comes back after a refusal, and lets go while nobody looks at the page.

import type { FullEvent, UpdateEvent } from "../../dashboard/wire";

/** How the connection is. */
export type FeedState = "connecting" | "live" | "lost";

/** Who is told. */
export interface FeedListener {
  full(event: FullEvent): void;
  update(event: UpdateEvent): void;
  /** @param lastAt when the last event came, as of `performance.now`; undefined: none has. */
  state(state: FeedState, lastAt: number | undefined): void;
}

/** Events come twice a second. After so long without any, the connection counts as broken. */
const SILENCE_MS = 5000;
const CHECK_MS = 1000;
/** The wait before another try where EventSource has given up; doubled each time. */
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 10_000;

/** Events of one address, for as long as the page is open. */
export class Feed {
  readonly #url: string;
  readonly #listener: FeedListener;
  #source: EventSource | undefined;
  #lastAt: number | undefined;
  /** When the present try began. */
  #openedAt = 0;
  #waitMs = FIRST_WAIT_MS;
  #retryAt = Number.POSITIVE_INFINITY;
  #state: FeedState = "connecting";

  constructor(url: string, listener: FeedListener) {
    this.#url = url;
    this.#listener = listener;
    setInterval(() => this.#check(), CHECK_MS);
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#close();
      else this.#open();
    });
    if (!document.hidden) this.#open();
  }

  #open(): void {
    this.#close();
    this.#openedAt = performance.now();
    const source = new EventSource(this.#url);
    this.#source = source;
    source.addEventListener("full", ({ data }: MessageEvent<string>) => {
      this.#heard();
      this.#listener.full(JSON.parse(data) as FullEvent); // the router of the same build writes it
    });
    source.addEventListener("update", ({ data }: MessageEvent<string>) => {
      this.#heard();
      this.#listener.update(JSON.parse(data) as UpdateEvent); // as above
    });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) this.#retryLater();
      this.#tell(this.#lastAt === undefined ? "connecting" : "lost");
    });
  }

  #close(): void {
    this.#source?.close();
    this.#source = undefined;
    this.#retryAt = Number.POSITIVE_INFINITY;
  }

  #heard(): void {
    this.#lastAt = performance.now();
    this.#waitMs = FIRST_WAIT_MS;
    this.#tell("live");
  }

  #retryLater(): void {
    this.#retryAt = performance.now() + this.#waitMs;
    this.#waitMs = Math.min(LONGEST_WAIT_MS, 2 * this.#waitMs);
  }

  #check(): void {
    if (document.hidden) return;
    const now = performance.now();
    const isSilent = now - Math.max(this.#lastAt ?? 0, this.#openedAt) > SILENCE_MS;
    if (now >= this.#retryAt || (isSilent && this.#retryAt === Number.POSITIVE_INFINITY)) {
      this.#tell(this.#lastAt === undefined ? "connecting" : "lost");
      this.#open();
    } else if (this.#state !== "live") this.#tell(this.#state);
  }

  #tell(state: FeedState): void {
    this.#state = state;
    this.#listener.state(state, this.#lastAt);
  }
}
