// createFetch: a `fetch` whose requests go to the endpoints of a pool. The lease's end is body.ts's;
// here is everything before the first byte: admission, the choice, and the next choice.

import { refusalBody, refusalHeaders } from "../flow/answer";
import { AdmissionError } from "../flow/errors";
import type { Refusal } from "../flow/ticket";
import type { Lease } from "../lease";
import type { LeaseRequest } from "../pick";
import { FAILED } from "./answer-lease";
import { bindLease, discardBody } from "./body";
import { isConnectionFailure } from "./failures";
import {
  type FetchFunction,
  type FetchOptions,
  type LeaseSource,
  resolveFetchOptions,
} from "./options";
import { EndpointAddresses, OutgoingRequest } from "./request";
import { estimateTokens } from "./tokens";

/** Nothing can take a request, and nobody knows when that will change. */
const NO_ENDPOINTS: Refusal = {
  reason: "no-endpoints",
  status: 503,
  retryAfterS: 1,
  gate: undefined,
  waitedMs: 0,
};

/**
 * A drop-in `fetch` for the OpenAI SDK, the Vercel AI SDK and your own code: each request goes to the
 * endpoint that can take it best, and counts as that endpoint's load until its answer has ended.
 *
 * Path and query of the URL are kept and put behind the endpoint's id, which is its address and may
 * have a path of its own. The URL's scheme and host are not used. An answer that is neither read to
 * its end nor cancelled nor aborted keeps its lease until it is garbage collected.
 *
 * A refused or broken connection, 429 and 503 are tried on the next candidate while nothing of an
 * answer has come; a request body that is a stream is sent once. What the pool or the controller
 * refuses is answered with 429 or 503, `retry-after` and the reason in `x-plimsoll-reason`.
 *
 * @throws ConfigError with every fault of `options`.
 * @example
 * const client = new OpenAI({ baseURL: "http://pool/v1", apiKey: "none", fetch: createFetch(pool) });
 */
export function createFetch(pool: LeaseSource, options: FetchOptions = {}): FetchFunction {
  const client = new Client(pool, options);
  return (input, init) => client.fetch(input, init);
}

/** How an attempt ended: with headers, or without. */
type Outcome =
  | { readonly response: Response }
  | { readonly response: undefined; readonly error: unknown };

/** What `createFetch` closes over. */
class Client {
  readonly #pool: LeaseSource;
  readonly #options: FetchOptions;
  readonly #retries: number;
  readonly #addresses = new EndpointAddresses();

  constructor(pool: LeaseSource, options: FetchOptions) {
    const resolved = resolveFetchOptions(pool, options);
    this.#pool = pool;
    this.#options = resolved;
    this.#retries = resolved.retries;
  }

  async fetch(input: string | URL | Request, init: RequestInit | undefined): Promise<Response> {
    const request = new OutgoingRequest(input, init);
    request.signal?.throwIfAborted();
    const { tokens, prefer } = this.#options;
    const wanted: LeaseRequest = {
      tokens: tokens === undefined ? estimateTokens(request.body) : tokens(request),
      prefer: prefer?.(request),
    };
    try {
      const lease = await this.#admit(request, wanted);
      return await this.#send(request, wanted, lease);
    } catch (error) {
      if (!(error instanceof AdmissionError)) throw error;
      if (error.reason === "cancelled") throw request.signal?.reason ?? error;
      const headers = { ...refusalHeaders(error), "content-type": "application/json" };
      // Without a status it is `cancelled`, which has been thrown.
      return new Response(JSON.stringify(refusalBody(error)), {
        status: error.status ?? 503,
        headers,
      });
    }
  }

  async #admit(request: OutgoingRequest, wanted: LeaseRequest): Promise<Lease> {
    const { controller, priority, flow } = this.#options;
    const permit = await controller?.admit({
      ...wanted,
      priority: priority?.(request),
      flow: flow?.(request),
      signal: request.signal,
    });
    // A controller whose source has no leases only says when.
    const lease = permit?.lease ?? this.#pool.lease(wanted);
    if (lease === undefined) throw new AdmissionError(NO_ENDPOINTS);
    return lease;
  }

  /** Sends it, to others if need be. Whatever happens, no lease is left but that of the answer. */
  async #send(request: OutgoingRequest, wanted: LeaseRequest, first: Lease): Promise<Response> {
    const tried: string[] = [];
    let lease = first;
    try {
      for (;;) {
        tried.push(lease.endpoint.id);
        const outcome = await this.#attempt(request, lease);
        const next = this.#mayRetry(request, outcome, tried.length)
          ? this.#pool.lease({ ...wanted, exclude: tried })
          : undefined;
        if (next === undefined) {
          if (outcome.response === undefined) throw outcome.error;
          return bindLease(outcome.response, lease, request.signal);
        }
        const failed = lease;
        lease = next;
        failed.release(FAILED);
        if (outcome.response !== undefined) discardBody(outcome.response);
      }
    } catch (error) {
      lease.release(FAILED);
      throw error;
    }
  }

  async #attempt(request: OutgoingRequest, lease: Lease): Promise<Outcome> {
    const base = this.#addresses.baseOf(lease.endpoint);
    // Looked up at each call: tests and tracing tools put their own in its place.
    const fetchLike = this.#options.fetch ?? globalThis.fetch;
    try {
      return { response: await request.send(fetchLike, base) };
    } catch (error) {
      return { response: undefined, error };
    }
  }

  #mayRetry(request: OutgoingRequest, outcome: Outcome, tries: number): boolean {
    const { response } = outcome;
    const isWorthIt =
      response === undefined
        ? isConnectionFailure(outcome.error)
        : response.status === 429 || response.status === 503;
    if (!isWorthIt || tries > this.#retries) return false;
    return request.signal?.aborted !== true && request.isReplayable;
  }
}
