// What a client's request asks for: the path it goes to, its band, its tenant and its session.

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { parseDuration } from "../duration";
import type { RequestBody } from "./body";
import type { RouterSettings } from "./config";
import type { Exchange } from "./exchange";
import { type Facts, type FactsReader, FormReader, JsonReader } from "./facts";
import type { GateRequest } from "./gates";

/** Names that clients choose are cut here. */
const LONGEST_NAME = 256;

/**
 * Path and query of a request's target. A client that speaks to a proxy sends a whole address; of it, only
 * the path counts, so that it cannot say where the request goes. Undefined when there is none.
 */
export function readPath(url: string): string | undefined {
  if (url.startsWith("/")) return url;
  const path = /^https?:\/\/[^/?#]*([/?][^#]*)?(?:#.*)?$/i.exec(url);
  if (path === null) return undefined;
  const [, rest = "/"] = path;
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/** What a request says to the gate, as far as its headers are trusted. */
export function requestOf(
  exchange: Exchange,
  facts: Facts,
  settings: RouterSettings,
): { readonly request: GateRequest; readonly band: string } {
  const { headers } = exchange.request;
  const { priority, tenant } = settings.headers;
  const names = bandNames(settings);
  const asked = headerOf(headers, priority);
  // A name that no band has is no reason to refuse: it is the lowest, as if nothing was said.
  const band = asked !== undefined && names.includes(asked) ? asked : (names.at(-1) ?? "0");
  const request: GateRequest = {
    tokens: facts.tokens,
    priority: names.indexOf(band),
    flow: headerOf(headers, tenant) ?? "",
    session: sessionOf(headers, facts, settings),
  };
  return { request, band };
}

/** Names of the bands, highest first. */
export function bandNames({ flow }: Pick<RouterSettings, "flow">): readonly string[] {
  return (flow.bands ?? [{}]).map(({ name }, i) => name ?? String(i));
}

function sessionOf(
  headers: IncomingHttpHeaders,
  facts: Facts,
  { affinity }: RouterSettings,
): string | undefined {
  const named = headerOf(headers, affinity.header);
  if (named !== undefined) return named;
  for (const key of affinity.body) {
    const value = key === "user" ? facts.user : facts.promptCacheKey;
    if (value !== undefined && value !== "") return value;
  }
  return undefined;
}

function headerOf(headers: IncomingHttpHeaders, name: string | undefined): string | undefined {
  const value = name === undefined ? undefined : headers[name];
  const text = Array.isArray(value) ? value[0] : value;
  return text === undefined || text === "" ? undefined : text.slice(0, LONGEST_NAME);
}

/** How long a request may wait, in ms. */
export function ttlOf({ flow }: RouterSettings): number {
  return parseDuration(flow.ttl ?? "1m");
}

/** What reads a request's body; undefined: nothing can, since it is compressed. */
export function readerOf({ headers }: IncomingMessage): FactsReader | undefined {
  const { "content-type": type = "", "content-encoding": coding = "identity" } = headers;
  if (coding.trim().toLowerCase() !== "identity") return undefined;
  // Engines take JSON under any type.
  return /^\s*multipart\/form-data\b/i.test(type) ? new FormReader() : new JsonReader();
}

/** Length of a body; undefined: it has none, or does not say. */
export function lengthOf(body: RequestBody): number | undefined {
  if (body.kind === "none") return undefined;
  return body.kind === "kept" ? body.bytes.length : body.length;
}
