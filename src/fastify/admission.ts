// One guarded request: its permit, whether its client is still there, and a `fetch` that spends the
// permit, so that a request is not counted once at the door and once more on its way to the engine.

import type { FastifyReply } from "fastify";
import { createFetch } from "../fetch/create-fetch";
import type { FetchFunction } from "../fetch/options";
import type { Permit } from "../flow/controller";
import type { Lease } from "../lease";
import type { LeaseRequest } from "../pick";
import type { EndpointPool } from "../pool";

/** `request.plimsoll`: what a request that was let through has. */
export interface Admission {
  /** Its lease, released when its answer has ended; undefined when the controller gives none. */
  readonly lease: Lease | undefined;
  /** How long it waited, in ms. */
  readonly waitedMs: number;
  /** Aborted when the client goes away before its answer has ended. */
  readonly signal: AbortSignal;
  /**
   * A `fetch` for the SDKs as of `createFetch`: the first call goes to the endpoint of `lease`,
   * later ones take leases of their own. What it has sent is aborted when the client goes away.
   */
  readonly fetch: FetchFunction;
}

/** The client of a request, as long as it is there. */
export class Client {
  readonly #gone = new AbortController();
  #onEnd: ((failed: boolean) => void) | undefined;
  #hasEnded = false;

  constructor({ raw }: FastifyReply) {
    let isWhole = false;
    // An event, since a reply that is injected is never told to be `writableFinished`.
    raw.once("finish", () => {
      isWhole = true;
    });
    const close = () => {
      if (!isWhole) this.#gone.abort(new DOMException("the client is gone", "AbortError"));
      this.#end(!isWhole || raw.statusCode >= 500);
    };
    // Told once, after the last byte or when the connection broke; hijacked replies too. An earlier
    // hook may have taken so long that nobody is there any more.
    if (raw.closed) close();
    else raw.once("close", close);
  }

  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** Calls `listener` once when the answer has ended; at once when it has. */
  whenEnded(listener: (failed: boolean) => void): void {
    if (this.#hasEnded) listener(true);
    else this.#onEnd = listener;
  }

  #end(failed: boolean): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#onEnd?.(failed);
  }
}

/** The admission of one request. */
export class RequestAdmission implements Admission {
  readonly waitedMs: number;
  readonly signal: AbortSignal;
  readonly lease: Lease | undefined;
  readonly #pool: EndpointPool;
  #unspent: Lease | undefined;
  #fetch: FetchFunction | undefined;

  constructor(pool: EndpointPool, permit: Permit, client: Client) {
    this.#pool = pool;
    this.lease = this.#unspent = permit.lease;
    this.waitedMs = permit.waitedMs;
    this.signal = client.signal;
    client.whenEnded((failed) => permit.release(failed ? { failed } : undefined));
  }

  get fetch(): FetchFunction {
    this.#fetch ??= this.#makeFetch();
    return this.#fetch;
  }

  #makeFetch(): FetchFunction {
    const pooled = createFetch({ lease: (request) => this.#take(request) });
    return (input, init) => {
      const given = init?.signal ?? (input instanceof Request ? input.signal : undefined);
      const signal = given ? AbortSignal.any([given, this.signal]) : this.signal;
      return pooled(input, { ...init, signal });
    };
  }

  #take(request: LeaseRequest | undefined): Lease | undefined {
    const lease = this.#unspent;
    this.#unspent = undefined;
    return lease ?? this.#pool.lease(request);
  }
}
