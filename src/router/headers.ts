// Which headers go on, in either direction. Hop-by-hop headers end at the router (RFC 9110, 7.6.1), and so
// do its own, so that neither a client nor an endpoint can speak in its name.

import {
  LOAD_METRICS_FORMAT,
  LOAD_METRICS_HEADER,
  LOAD_METRICS_REQUEST_HEADER,
} from "../telemetry/orca";

/** Every header of the router's own begins so. */
export const OWN_PREFIX = "x-plimsoll-";

const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-authentication-info",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);
/** Answers' headers that clients act upon. */
const MEANINGFUL = new Set(["retry-after", "set-cookie", "location", LOAD_METRICS_HEADER]);

/** Whether a configured header may be set on requests: it ends at no hop and frames nothing. */
export function maySetOnRequests(name: string): boolean {
  const isOurs = endsHere(name, undefined) || name === LOAD_METRICS_REQUEST_HEADER;
  return !isOurs && name !== "content-length" && name !== "expect";
}

/** Whether an answer's header may be called so: it means nothing else to clients. */
export function mayNameEndpoint(name: string): boolean {
  if (name.startsWith(OWN_PREFIX)) return true;
  return !endsHere(name, undefined) && !name.startsWith("content-") && !MEANINGFUL.has(name);
}

/** Of the request's; the router sends its own of these, or none. */
const REPLACED = new Set(["host", "expect", "content-length", LOAD_METRICS_REQUEST_HEADER]);

/**
 * Headers for the endpoint, as name, value, name, value.
 *
 * @param raw the client's, as they came.
 * @param own set in place of the client's; names in lower case.
 * @param length of the body; undefined: it has none, or is sent in chunks.
 */
export function requestHeaders(
  raw: readonly string[],
  own: Readonly<Record<string, string>>,
  length: number | undefined,
  inBand: boolean,
): string[] {
  const named = namedByConnection(raw);
  const headers: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase(); // i is below the length
    if (endsHere(name, named) || REPLACED.has(name) || Object.hasOwn(own, name)) continue;
    headers.push(raw[i] as string, raw[i + 1] as string);
  }
  for (const [name, value] of Object.entries(own)) headers.push(name, value);
  if (length !== undefined) headers.push("content-length", String(length));
  if (inBand) headers.push(LOAD_METRICS_REQUEST_HEADER, LOAD_METRICS_FORMAT);
  return headers;
}

/** An answer's headers, and what the router itself wants to know of them. */
export interface AnswerHeaders {
  /** For the client, as name, value, name, value. */
  readonly forward: string[];
  readonly contentType: string;
  /** It says how long its body is. */
  readonly hasLength: boolean;
  readonly retryAfter: string | undefined;
  readonly loadMetrics: string | undefined;
}

/**
 * Headers for the client.
 *
 * @param raw the endpoint's, as they came.
 * @param own the one that the router sets itself, as name and value, or nothing; the endpoint may not set it.
 */
export function answerHeaders(
  raw: readonly (string | Buffer)[],
  own: readonly string[],
): AnswerHeaders {
  const texts = raw.map((one) => (typeof one === "string" ? one : one.toString("latin1")));
  const named = namedByConnection(texts);
  const forward: string[] = [];
  let contentType = "";
  let hasLength = false;
  let retryAfter: string | undefined;
  let loadMetrics: string | undefined;
  for (let i = 0; i + 1 < texts.length; i += 2) {
    const value = texts[i + 1] as string; // i + 1 is below the length
    const name = (texts[i] as string).toLowerCase();
    if (name === LOAD_METRICS_HEADER) {
      loadMetrics = value;
      continue;
    }
    if (endsHere(name, named) || name === own[0]) continue;
    if (name === "content-type") contentType = value;
    else if (name === "content-length") hasLength = true;
    else if (name === "retry-after") retryAfter = value;
    forward.push(texts[i] as string, value);
  }
  forward.push(...own);
  return { forward, contentType, hasLength, retryAfter, loadMetrics };
}

/** What `Retry-After` asks for, in ms; 0 when it makes no sense. @param now in ms since 1970. */
export function readRetryAfter(value: string | undefined, now: number): number {
  if (value === undefined) return 0;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}

/** A text as a header's value: what may not stand in one is escaped. */
export function headerValue(text: string): string {
  return /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text)
    ? text
    : encodeURIComponent(Buffer.from(text).toString());
}

function endsHere(name: string, named: ReadonlySet<string> | undefined): boolean {
  return HOP_BY_HOP.has(name) || name.startsWith(OWN_PREFIX) || named?.has(name) === true;
}

/** `Connection` may name more headers that end here; but not those that say where a body ends. */
function namedByConnection(raw: readonly string[]): ReadonlySet<string> | undefined {
  let named: Set<string> | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string; // i is below the length
    if (name.length !== 10 || name.toLowerCase() !== "connection") continue;
    for (const token of (raw[i + 1] as string).split(",")) {
      const header = token.trim().toLowerCase();
      if (header === "" || header === "close" || header === "keep-alive") continue;
      if (header === "content-length" || header === "content-type") continue;
      named ??= new Set();
      named.add(header);
    }
  }
  return named;
}
