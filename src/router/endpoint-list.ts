// All endpoints of a router, from wherever they come: its config, a file, names. Each source says its own
// list; whoever listens hears the whole one.

import { ConfigError, type ConfigFault } from "../errors";
import type { Logger } from "../logger";
import type { RouterSettings } from "./config";
import type { RoutedEndpoint } from "./endpoints";
import type { Environment } from "./secrets";
import { type EndpointSource, type OnEndpoints, watchFile, watchName } from "./sources";

interface Part {
  readonly source: EndpointSource;
  /** Undefined: it could not be read yet. */
  endpoints: readonly RoutedEndpoint[] | undefined;
}

/** The endpoints of all sources together. */
export class EndpointList {
  readonly #logger: Logger | undefined;
  readonly #onEndpoints: OnEndpoints;
  /** By what they were made from, so that a reload leaves alone what has not changed. */
  #parts: ReadonlyMap<string, Part> = new Map();
  #own: readonly RoutedEndpoint[] = [];
  /** Ids that more than one source names. */
  #shared: ReadonlySet<string> = new Set();
  #isClosed = false;

  constructor(logger: Logger | undefined, onEndpoints: OnEndpoints) {
    this.#logger = logger;
    this.#onEndpoints = onEndpoints;
  }

  /**
   * Asks each source that these settings name and that is not asked yet. Nothing has changed until what it
   * resolves to is called.
   *
   * @param mayWait a source that cannot be read yet counts as empty until it can; else it is a fault.
   * Rejects with ConfigError with every such fault.
   */
  async prepare(
    settings: RouterSettings,
    environment: Environment | undefined,
    { mayWait }: { readonly mayWait: boolean },
  ): Promise<() => void> {
    const parts = new Map<string, Part>();
    const fresh: Part[] = [];
    for (const [key, open] of this.#sourcesOf(settings, environment)) {
      let part = this.#parts.get(key);
      if (part === undefined) {
        part = this.#open(open);
        fresh.push(part);
      }
      parts.set(key, part);
    }
    await Promise.all(fresh.map(({ source }) => source.refresh()));
    const unread = fresh.filter(({ endpoints }) => endpoints === undefined);
    if (this.#isClosed || (unread.length > 0 && !mayWait)) {
      for (const { source } of fresh) source.close();
      if (this.#isClosed) return () => {};
      throw new ConfigError(unread.map(({ source }) => faultOf(source)));
    }
    return () => {
      for (const [key, { source }] of this.#parts) if (!parts.has(key)) source.close();
      this.#own = settings.endpoints;
      this.#parts = parts;
      this.#tell();
    };
  }

  /** Looks and asks no more. */
  close(): void {
    this.#isClosed = true;
    for (const { source } of this.#parts.values()) source.close();
  }

  #sourcesOf(
    { endpointsFile, dns, engine }: RouterSettings,
    environment: Environment | undefined,
  ): Map<string, (onEndpoints: OnEndpoints) => EndpointSource> {
    const sources = new Map<string, (onEndpoints: OnEndpoints) => EndpointSource>();
    const context = { engine, environment };
    if (endpointsFile !== undefined) {
      sources.set(JSON.stringify(["file", endpointsFile, engine]), (onEndpoints) =>
        watchFile(endpointsFile, context, onEndpoints, this.#logger),
      );
    }
    for (const source of dns) {
      sources.set(JSON.stringify(["dns", source]), (onEndpoints) =>
        watchName(source, onEndpoints, this.#logger),
      );
    }
    return sources;
  }

  #open(open: (onEndpoints: OnEndpoints) => EndpointSource): Part {
    const part: Part = {
      endpoints: undefined,
      source: open((endpoints) => {
        part.endpoints = endpoints;
        if ([...this.#parts.values()].includes(part)) this.#tell();
      }),
    };
    return part;
  }

  #tell(): void {
    if (this.#isClosed) return;
    const all = new Map<string, RoutedEndpoint>();
    const shared = new Set<string>();
    const lists = [this.#own, ...[...this.#parts.values()].map((part) => part.endpoints ?? [])];
    for (const endpoint of lists.flat()) {
      const { id } = endpoint;
      if (!all.has(id)) all.set(id, endpoint);
      else if (!shared.has(id)) {
        shared.add(id);
        if (this.#shared.has(id)) continue;
        this.#logger?.warn(`endpoint ${id} is named twice: the first one counts`);
      }
    }
    this.#shared = shared;
    this.#onEndpoints([...all.values()]);
  }
}

function faultOf({ path, name, fault = "cannot be read" }: EndpointSource): ConfigFault {
  return { path, value: name, rule: `must be readable (${fault})` };
}
