// One request on its way through `fetch`: what is kept of its URL, whether it can be sent twice, and
// where an endpoint's id says that it goes.

import type { Endpoint } from "../endpoint";
import { describeValue, EndpointError } from "../errors";
import type { FetchFunction, FetchRequest } from "./options";

/** Stands for the host that is not used, so that a path alone will do. */
const ANY_HOST = "http://host.invalid";
/** With a scheme. A base costs the parser more than the rest, so it is given only where it is due. */
const ABSOLUTE = /^\s*[a-z][a-z0-9+.-]*:/i;

/** What the caller asked for. Short-lived; as lazy as it can be, since most of it is never read. */
export class OutgoingRequest implements FetchRequest {
  readonly path: string;
  readonly body: BodyInit | null | undefined;
  readonly signal: AbortSignal | undefined;
  readonly #request: Request | undefined;
  readonly #init: RequestInit | undefined;

  /** @throws TypeError when the URL is none, or not of http. */
  constructor(input: string | URL | Request, init: RequestInit | undefined) {
    this.#init = init;
    this.#request = isRequest(input) ? input : undefined;
    // Parsed, not cut: dot segments must not climb out of an endpoint's own path.
    const given = isRequest(input) ? input.url : input;
    const url = ABSOLUTE.test(String(given)) ? new URL(given) : new URL(given, ANY_HOST);
    if (url.protocol !== "http:" && url.protocol !== "https:") {
      throw new TypeError(`the pool is asked by http or https, got ${describeValue(url.protocol)}`);
    }
    this.path = url.pathname + url.search;
    this.body = init?.body !== undefined ? init.body : this.#request?.body;
    const signal = init?.signal !== undefined ? init.signal : this.#request?.signal;
    this.signal = signal ?? undefined;
  }

  get method(): string {
    return this.#init?.method ?? this.#request?.method ?? "GET";
  }

  get headers(): Headers {
    return new Headers(this.#init?.headers ?? this.#request?.headers);
  }

  /** Whether it can be sent again: a stream is gone once it was read. */
  get isReplayable(): boolean {
    const { body } = this;
    return body === null || body === undefined ? !this.#hidesBody : isKept(body);
  }

  /** Sends it to the endpoint at `base`. */
  send(fetchLike: FetchFunction, base: string): Promise<Response> {
    const url = base + this.path;
    // The caller's own `init` goes on as it is, with whatever else its runtime understands.
    return this.#request === undefined
      ? fetchLike(url, this.#init)
      : fetchLike(new Request(url, this.#request), this.#init);
  }

  /** Firefox does not show the body of a Request. */
  get #hidesBody(): boolean {
    return this.#request !== undefined && !("body" in this.#request);
  }
}

/** The address of an endpoint is its id, and is read once. */
export class EndpointAddresses {
  readonly #bases = new WeakMap<Endpoint, string>();

  /**
   * Origin and path of the endpoint, without a slash at its end.
   *
   * @throws EndpointError when its id is no such address.
   */
  baseOf(endpoint: Endpoint): string {
    let base = this.#bases.get(endpoint);
    if (base === undefined) {
      base = readBase(endpoint.id);
      this.#bases.set(endpoint, base);
    }
    return base;
  }
}

function readBase(id: string): string {
  const url = tryParse(id);
  const isPlain = url !== undefined && url.search === "" && url.hash === "" && url.username === "";
  if (!isPlain || url.password !== "" || !/^https?:$/.test(url.protocol)) {
    throw new EndpointError(
      "createFetch sends requests to the ids of the endpoints, so that each must be an http or " +
        `https address such as "http://10.0.0.7:8000", without credentials, query and hash; got ` +
        describeValue(url === undefined ? id : `${url.protocol}//${url.host}${url.pathname}`),
    );
  }
  let { pathname } = url;
  while (pathname.endsWith("/")) pathname = pathname.slice(0, -1);
  return url.origin + pathname;
}

function tryParse(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined; // the caller says what would be right
  }
}

function isRequest(input: string | URL | Request): input is Request {
  return typeof input === "object" && "url" in input;
}

/** Bodies that are as good the second time. */
function isKept(body: BodyInit): boolean {
  return (
    typeof body === "string" ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof Blob ||
    body instanceof URLSearchParams ||
    body instanceof FormData
  );
}
