// Server-sent events for all pages that look at one source. While somebody listens it looks twice a second;
// what it sees is written down and compressed once, and everybody gets the same bytes.

import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, deflateRawSync } from "node:zlib";
import { type DashboardSource, Encoder } from "./encoder";

/** Time between two events, in ms. Each is a sign of life as well, when nothing has changed. */
const EVERY_MS = 500;
/** A listener with so many bytes unread is dropped; its page connects again and gets everything anew. */
const SLOW_BYTES = 1 << 20;
/** More listeners than this are refused. */
const MOST_LISTENERS = 64;

/** A gzip stream begins so: deflate, no name, no time. */
const GZIP_HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/** A text for listeners; each form of it is made when the first of them needs it. */
class Message {
  readonly #text: string;
  #plain: Buffer | undefined;
  #packed: Buffer | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  get plain(): Buffer {
    this.#plain ??= Buffer.from(this.#text);
    return this.#plain;
  }

  /**
   * Part of a deflate stream. It ends at a whole byte and looks back at nothing before it, so that it fits
   * into everybody's stream, whenever that began.
   */
  get packed(): Buffer {
    const options = { level: 1, finishFlush: constants.Z_SYNC_FLUSH };
    this.#packed ??= deflateRawSync(this.plain, options);
    return this.#packed;
  }
}

/** Sends events to whoever listens. */
export class DashboardFeed {
  readonly #encoder: Encoder;
  /** And whether they read gzip. */
  readonly #listeners = new Map<ServerResponse, boolean>();
  readonly #onFault: (error: unknown) => void;
  #timer: ReturnType<typeof setInterval> | undefined;
  #isClosed = false;

  /** @param onFault told when the source could not be read; nobody gets that event. */
  constructor(source: DashboardSource, onFault: (error: unknown) => void) {
    this.#encoder = new Encoder(source);
    this.#onFault = onFault;
  }

  /** How many listen. */
  get listeners(): number {
    return this.#listeners.size;
  }

  /** From now on this response gets events, beginning with everything. False: not now. */
  add(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#isClosed || this.#listeners.size >= MOST_LISTENERS) return false;
    const isPacked = /\bgzip\b/.test(request.headers["accept-encoding"] ?? "");
    if (this.#listeners.size === 0 && this.#look() === undefined) return false;
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-accel-buffering": "no", // nginx would collect events
      vary: "accept-encoding",
      ...(isPacked ? { "content-encoding": "gzip" } : {}),
    });
    if (isPacked) response.write(GZIP_HEADER);
    this.#listeners.set(response, isPacked);
    response.on("close", () => this.#remove(response));
    response.on("error", () => this.#remove(response)); // it is gone; close follows
    this.#send(response, isPacked, new Message(`retry: 1000\n\n${this.#encoder.full()}`));
    this.#timer ??= setInterval(() => this.#tick(), EVERY_MS);
    return true;
  }

  /** Ends all of them. */
  close(): void {
    this.#isClosed = true;
    for (const response of [...this.#listeners.keys()]) {
      this.#remove(response);
      response.end();
    }
  }

  #tick(): void {
    const message = this.#look();
    if (message === undefined) return;
    for (const [response, isPacked] of [...this.#listeners]) {
      this.#send(response, isPacked, message);
    }
  }

  #look(): Message | undefined {
    try {
      return new Message(this.#encoder.next());
    } catch (error) {
      this.#onFault(error);
      return undefined;
    }
  }

  #send(response: ServerResponse, isPacked: boolean, message: Message): void {
    if (response.writableLength > SLOW_BYTES) {
      this.#remove(response);
      response.destroy();
      return;
    }
    response.write(isPacked ? message.packed : message.plain);
  }

  #remove(response: ServerResponse): void {
    this.#listeners.delete(response);
    if (this.#listeners.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
