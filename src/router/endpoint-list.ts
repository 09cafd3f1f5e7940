// All endpoints of a router, from wherever they come: its config, a file, names. Each source says its own
// list; whoever listens hears the whole one.

import type { Logger } from "../logger";
import type { RouterSettings } from "./config";
import type { RoutedEndpoint } from "./endpoints";
import type { Environment } from "./secrets";
import { type EndpointSource, type OnEndpoints, watchFile, watchName } from "./sources";

interface Part {
  readonly source: EndpointSource;
  endpoints: readonly RoutedEndpoint[];
}

/** The endpoints of all sources together. */
export class EndpointList {
  readonly #logger: Logger | undefined;
  readonly #onEndpoints: OnEndpoints;
  /** By what they were made from, so that a reload leaves alone what has not changed. */
  readonly #parts = new Map<string, Part>();
  readonly #warned = new Set<string>();
  #own: readonly RoutedEndpoint[] = [];
  #isSetting = false;
  #isClosed = false;

  constructor(logger: Logger | undefined, onEndpoints: OnEndpoints) {
    this.#logger = logger;
    this.#onEndpoints = onEndpoints;
  }

  /** Takes the sources that these settings name. Resolves when each of them was asked once. */
  async set(settings: RouterSettings, environment: Environment | undefined): Promise<void> {
    const wanted = this.#sourcesOf(settings, environment);
    this.#isSetting = true;
    this.#own = settings.endpoints;
    const fresh: Promise<void>[] = [];
    for (const [key, open] of wanted) {
      if (this.#parts.has(key)) continue;
      const part: Part = { endpoints: [], source: open((list) => this.#take(part, list)) };
      this.#parts.set(key, part);
      fresh.push(part.source.refresh());
    }
    // The old sources count until the new ones have been asked, so that nothing is missing meanwhile.
    await Promise.all(fresh);
    for (const [key, { source }] of this.#parts) {
      if (wanted.has(key)) continue;
      source.close();
      this.#parts.delete(key);
    }
    this.#isSetting = false;
    this.#tell();
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

  #take(part: Part, endpoints: readonly RoutedEndpoint[]): void {
    part.endpoints = endpoints;
    if (!this.#isSetting) this.#tell();
  }

  #tell(): void {
    if (this.#isClosed) return;
    const all = new Map<string, RoutedEndpoint>();
    for (const endpoint of [
      this.#own,
      ...[...this.#parts.values()].map((p) => p.endpoints),
    ].flat()) {
      if (!all.has(endpoint.id)) all.set(endpoint.id, endpoint);
      else this.#warnOnce(`endpoint ${endpoint.id} is named twice: the first one counts`);
    }
    this.#onEndpoints([...all.values()]);
  }

  #warnOnce(text: string): void {
    if (this.#warned.has(text)) return;
    this.#warned.add(text);
    this.#logger?.warn(text);
  }
}
