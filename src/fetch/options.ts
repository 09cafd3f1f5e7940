// The options of the client `fetch`, and what its callbacks see of a request. Judged once.

import { type Field, type Fields, readFields } from "../config";
import { ConfigError, type ConfigFault } from "../errors";
import type { FlowController } from "../flow/controller";
import type { EndpointPool } from "../pool";

/** A `fetch`, as the platform and the SDKs have it. */
export type FetchFunction = (
  input: string | URL | Request,
  init?: RequestInit,
) => Promise<Response>;

/** One request, as the callbacks see it. */
export interface FetchRequest {
  /** Path and query, such as `/v1/chat/completions`. */
  readonly path: string;
  /** As the caller wrote it; "GET" by default. */
  readonly method: string;
  /** The caller's headers; a change here is not sent. */
  readonly headers: Headers;
  /** What will be sent; the SDKs send JSON as a text. */
  readonly body: BodyInit | null | undefined;
}

/** How requests are sent. */
export interface FetchOptions {
  /** Does the sending, and answers with the platform's own `Response`. Default: the global `fetch`. */
  readonly fetch?: FetchFunction | undefined;
  /** Holds requests back while the pool is saturated. Default: none, every request goes at once. */
  readonly controller?: Pick<FlowController, "admit"> | undefined;
  /**
   * How many other endpoints may be tried before the first byte of an answer; integer >= 0.
   * Default 2.
   */
  readonly retries?: number | undefined;
  /** Prompt tokens of a request. Default: a quarter of the characters of a JSON body. */
  readonly tokens?: ((request: FetchRequest) => number | undefined) | undefined;
  /** Id of an endpoint that wins while it is a candidate, for affinity. Default: none. */
  readonly prefer?: ((request: FetchRequest) => string | undefined) | undefined;
  /** The controller's band for a request, by name or index. Default: the lowest. */
  readonly priority?: ((request: FetchRequest) => string | number | undefined) | undefined;
  /** Whose request it is, for the controller. Default: one flow for all. */
  readonly flow?: ((request: FetchRequest) => string | undefined) | undefined;
}

/** Who gives leases: a pool, or a `ConcurrencyDetector`. */
export type LeaseSource = Pick<EndpointPool, "lease">;

/** That it is a function is all that can be known of one. */
function callback<T>(): Field<T> {
  return {
    rule: "a function",
    read: (value) => (typeof value === "function" ? (value as T) : undefined),
  };
}

const FIELDS: Fields<FetchOptions> = {
  fetch: callback(),
  controller: {
    rule: "a FlowController",
    read: (value) => (hasMethod(value, "admit") ? (value as FlowController) : undefined),
  },
  retries: {
    rule: "an integer >= 0",
    read: (value) => (Number.isInteger(value) && Number(value) >= 0 ? Number(value) : undefined),
  },
  tokens: callback(),
  prefer: callback(),
  priority: callback(),
  flow: callback(),
};

/**
 * Checks what `createFetch` was given.
 *
 * @throws ConfigError with every fault.
 */
export function resolveFetchOptions(
  pool: unknown,
  options: unknown,
): Partial<FetchOptions> & { readonly retries: number } {
  const faults: ConfigFault[] = [];
  if (!hasMethod(pool, "lease")) {
    faults.push({ path: "pool", value: pool, rule: "must be an EndpointPool" });
  }
  const given = readFields(FIELDS, options, "", faults);
  if (given.controller === undefined) {
    for (const key of ["priority", "flow"] as const) {
      if (given[key] === undefined) continue;
      faults.push({ path: key, value: given[key], rule: "needs a controller" });
    }
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return { ...given, retries: given.retries ?? 2 };
}

function hasMethod(value: unknown, name: string): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as Record<string, unknown>)[name] === "function"
  );
}
