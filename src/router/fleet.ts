// The endpoints that are there at present: each one's place in the pool, its connections and its scraper.
// A new list is applied as the difference to the old one, so that requests under way go on.

import { Pool as ConnectionPool, type Dispatcher } from "undici";
import { ENDPOINT_FIELDS, type EndpointOptions } from "../config";
import type { Logger } from "../logger";
import type { EndpointPool } from "../pool";
import { type Scraper, startScraper } from "../telemetry/scraper";
import type { RouterSettings } from "./config";
import type { RoutedEndpoint } from "./endpoints";

/** An endpoint's connections, and what its requests carry. */
export interface Upstream {
  readonly dispatcher: Dispatcher;
  readonly requestHeaders: Readonly<Record<string, string>>;
}

/** What a fleet needs to know of the router. */
export interface FleetContext {
  readonly pool: EndpointPool;
  settings(): RouterSettings;
  readonly logger: Logger | undefined;
  /** An endpoint is gone. */
  onRemoved(id: string): void;
}

/** Engines close idle connections after 5 s; the router does so before, else it would lose that race. */
const IDLE_CONNECTION_MS = 4000;

interface Member extends Upstream {
  readonly routed: RoutedEndpoint;
  readonly connections: ConnectionPool;
  readonly scraper: Scraper;
  readonly scrapeKey: string;
}

/** The endpoints, by id. */
export class Fleet {
  readonly #context: FleetContext;
  readonly #members = new Map<string, Member>();
  /** Connections of endpoints that are gone, while requests use them. */
  readonly #leaving = new Set<ConnectionPool>();
  readonly #closing = new Set<Promise<unknown>>();
  /** What scrapers have said under these settings. */
  #warned: { readonly settings: RouterSettings; readonly texts: Set<string> } | undefined;

  constructor(context: FleetContext) {
    this.#context = context;
  }

  /** The endpoint with this id, or undefined. */
  get(id: string): Upstream | undefined {
    return this.#members.get(id);
  }

  /** What is known of each endpoint's readings. */
  get scrapers(): ReadonlyMap<string, Scraper> {
    return new Map([...this.#members].map(([id, { scraper }]) => [id, scraper]));
  }

  /** From now on these are the endpoints. */
  apply(endpoints: readonly RoutedEndpoint[]): void {
    const wanted = new Map(endpoints.map((endpoint) => [endpoint.id, endpoint]));
    for (const [id, { routed }] of this.#members) {
      if (wanted.get(id)?.origin !== routed.origin) this.#remove(id);
    }
    for (const [id, routed] of wanted) {
      const member = this.#members.get(id);
      if (member === undefined) this.#add(routed);
      else this.#change(member, routed);
    }
  }

  /** Ends all readings, and all connections at once. Resolves when nothing is left. */
  async close(): Promise<void> {
    for (const id of [...this.#members.keys()]) this.#remove(id);
    for (const connections of this.#leaving) this.#whenClosed(connections.destroy());
    await Promise.all(this.#closing);
  }

  #add(routed: RoutedEndpoint): void {
    const { pool } = this.#context;
    const { timeouts, limits } = this.#context.settings();
    const connections = new ConnectionPool(routed.origin, {
      connections: null,
      pipelining: 1,
      connectTimeout: timeouts.connect,
      keepAliveTimeout: IDLE_CONNECTION_MS,
      maxHeaderSize: limits.answerHeaderBytes,
    });
    pool.add(routed.id, routed.endpoint);
    this.#members.set(routed.id, {
      routed,
      dispatcher: connections,
      connections,
      requestHeaders: routed.requestHeaders,
      scraper: this.#scrape(routed),
      scrapeKey: this.#scrapeKey(routed),
    });
  }

  #change(member: Member, routed: RoutedEndpoint): void {
    const { id } = routed;
    const { endpoint: before } = member.routed;
    if (JSON.stringify(before) !== JSON.stringify(routed.endpoint)) {
      this.#context.pool.get(id)?.update({ ...NO_OPTIONS, ...routed.endpoint });
    }
    const scrapeKey = this.#scrapeKey(routed);
    let { scraper } = member;
    if (scrapeKey !== member.scrapeKey) {
      this.#whenClosed(scraper.close());
      scraper = this.#scrape(routed);
    }
    const { requestHeaders } = routed;
    this.#members.set(id, { ...member, routed, requestHeaders, scraper, scrapeKey });
  }

  /** Requests that are under way there go on. */
  #remove(id: string): void {
    const member = this.#members.get(id);
    if (member === undefined) return;
    this.#members.delete(id);
    this.#context.pool.remove(id);
    this.#context.onRemoved(id);
    this.#whenClosed(member.scraper.close());
    const { connections } = member;
    this.#leaving.add(connections);
    this.#whenClosed(connections.close().finally(() => this.#leaving.delete(connections)));
  }

  #scrape({ target, id }: RoutedEndpoint): Scraper {
    const { interval, timeout, engine } = this.#context.settings();
    const logger = { warn: (text: string) => this.#warnOnce(text) };
    return startScraper(this.#context.pool, [{ ...target, id }], {
      ...{ interval, timeout, engine, logger },
    });
  }

  /** A scraper is started anew when one of these changes. */
  #scrapeKey({ target }: RoutedEndpoint): string {
    const { interval, timeout, engine } = this.#context.settings();
    const { url, headers, engine: own } = target;
    return JSON.stringify([url, headers, own, interval, timeout, engine]);
  }

  /** Every endpoint has a scraper, and all of them say the same. */
  #warnOnce(text: string): void {
    const settings = this.#context.settings();
    if (this.#warned?.settings !== settings) this.#warned = { settings, texts: new Set() };
    const { texts } = this.#warned;
    if (texts.has(text)) return;
    texts.add(text);
    this.#context.logger?.warn(text);
  }

  #whenClosed(closing: Promise<unknown>): void {
    const done = closing.finally(() => this.#closing.delete(done));
    this.#closing.add(done);
  }
}

/** What an endpoint goes back to when its options say nothing. */
const NO_OPTIONS: EndpointOptions = Object.fromEntries(
  Object.keys(ENDPOINT_FIELDS).map((key) => [key, undefined]),
);
