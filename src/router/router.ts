// The router as a whole: it puts the parts together, starts and stops them in the right order, and gives them
// a new configuration without dropping a request.

import type { FastifyInstance } from "fastify";
import type { Journal } from "../dashboard/journal";
import { type Duration, parseDuration } from "../duration";
import type { Endpoint } from "../endpoint";
import type { Logger } from "../logger";
import { EndpointPool } from "../pool";
import type { PoolSnapshot } from "../snapshot";
import { createAdminServer } from "./admin";
import { Rendezvous } from "./affinity";
import { BodyKeeper } from "./body";
import { type RouterSettings, resolveRouterConfig } from "./config";
import type { Address } from "./config-fields";
import { journalOf, noteIn } from "./dashboard";
import { EndpointList } from "./endpoint-list";
import { Fleet } from "./fleet";
import { type GateStats, Gates } from "./gates";
import { HoldOffs } from "./hold-off";
import { RouterMetrics } from "./metrics";
import type { RouterConfig } from "./options";
import { RequestProxy } from "./proxy";
import { needsRestart } from "./reload";
import type { Environment } from "./secrets";
import { createTrafficServer } from "./server";

/** What a router is given besides its configuration. */
export interface RouterOptions {
  /** Is told what people should know. Default: nobody. */
  readonly logger?: Logger | undefined;
  /** For `${NAME}` in addresses and headers. Default: such texts stay as they are. */
  readonly environment?: Environment | undefined;
  /** Numbers in [0, 1) that break ties. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** Where a started router can be reached. */
export interface RouterAddresses {
  /** Where clients connect, such as `http://127.0.0.1:8080`. */
  readonly traffic: string;
  /** Metrics and health; undefined when it is switched off. */
  readonly admin: string | undefined;
}

/** A router at one instant. */
export interface RouterSnapshot {
  readonly pool: PoolSnapshot;
  /** Endpoints that are held off, and count as saturated. */
  readonly heldOff: readonly string[];
  readonly gates: readonly GateStats[];
  /** Requests that are being served. */
  readonly live: number;
  /** Bytes of request bodies that are kept. */
  readonly keptBytes: number;
}

/** How long the first readings may take, in ms. */
const FIRST_READINGS_MS = 1000;

/**
 * A reverse proxy in front of model servers.
 *
 * @example
 * const router = createRouter({ endpoints: ["http://10.0.0.7:8000", "http://10.0.0.8:8000"] });
 * const { traffic } = await router.start();
 */
export class Router {
  /** The endpoints, and what is known of them. */
  readonly pool: EndpointPool;
  readonly #logger: Logger | undefined;
  readonly #environment: Environment | undefined;
  readonly #holdOffs: HoldOffs;
  readonly #gates: Gates;
  readonly #fleet: Fleet;
  readonly #list: EndpointList;
  readonly #keeper: BodyKeeper;
  readonly #proxy: RequestProxy;
  readonly #metrics: RouterMetrics;
  readonly #journal: Journal;
  readonly #traffic: FastifyInstance;
  readonly #admin: FastifyInstance | undefined;
  #settings: RouterSettings;
  #state: "new" | "started" | "closing" = "new";
  #startedAt = Number.NEGATIVE_INFINITY;
  #addresses: RouterAddresses | undefined;
  #closing: Promise<void> | undefined;
  /** The last reload: one comes after the other. */
  #reloading: Promise<void> = Promise.resolve();

  /** @throws ConfigError with every fault. */
  constructor(config: RouterConfig, options: RouterOptions = {}) {
    const { logger, environment, random } = options;
    this.#logger = logger;
    this.#environment = environment;
    this.#settings = resolveRouterConfig(config, environment);
    const settings = () => this.#settings;
    const poolLogger = { warn: (text: string) => this.#warnOfPool(text) };
    this.pool = new EndpointPool(this.#settings.detector, { logger: poolLogger, random });
    const { pool } = this;
    this.#holdOffs = new HoldOffs(() => this.#settings.retry);
    const holdOffs = this.#holdOffs;
    this.#metrics = new RouterMetrics({
      ...{ pool, heldOff: () => holdOffs.heldAt(pool.now()), snapshot: () => this.snapshot() },
    });
    this.#gates = new Gates(
      {
        ...{ pool, holdOffs, rendezvous: new Rendezvous<Endpoint>() },
        onDecision: (reason) => this.#metrics.onDecision(reason),
      },
      this.#settings.flow,
    );
    this.#journal = journalOf(pool, this.#gates);
    this.#fleet = new Fleet({
      ...{ pool, settings, logger },
      onRemoved: (id) => {
        holdOffs.forget(id);
        this.#metrics.forget(id);
      },
    });
    this.#list = new EndpointList(logger, (endpoints) => {
      this.#fleet.apply(endpoints);
      this.#gates.setEndpoints(endpoints);
    });
    this.#keeper = new BodyKeeper(settings);
    this.#proxy = new RequestProxy({
      ...{ settings, holdOffs, keeper: this.#keeper },
      observer: noteIn(this.#journal, () => pool.now(), this.#metrics),
      now: () => pool.now(),
      find: (model) => this.#gates.find(model),
      needsModel: () => this.#gates.needsModel,
      upstream: (id) => this.#fleet.get(id),
      onSample: (id, sample) => {
        if (pool.get(id) !== undefined) pool.report(id, sample);
      },
      onFault: (error) => this.#warnOfFault("a request failed", error),
    });
    this.#traffic = createTrafficServer(this.#proxy, this.#settings);
    if (this.#settings.admin === undefined) return;
    const source = { journal: this.#journal, snapshot: () => this.snapshot() };
    const onFault = (error: unknown) => this.#warnOfFault("the dashboard saw nothing", error);
    this.#admin = createAdminServer(this, { source, onFault });
  }

  /** Where it can be reached; undefined before it was started. */
  get addresses(): RouterAddresses | undefined {
    return this.#addresses;
  }

  /** Whether it should be sent requests: it is started, and some endpoint is known to be there. */
  get isReady(): boolean {
    if (this.#state !== "started" || this.pool.size === 0) return false;
    // Whoever ignores staleness may have endpoints without any telemetry.
    return this.pool.config.stalenessPolicy === "ignore" || this.pool.evaluate().fresh > 0;
  }

  /**
   * Finds the endpoints, begins to read them, and listens.
   *
   * Rejects when an address cannot be listened on; then nothing is left open.
   */
  async start(): Promise<RouterAddresses> {
    if (this.#state !== "new") throw new Error("a router can be started once");
    this.#state = "started";
    this.#startedAt = performance.now();
    try {
      const take = await this.#list.prepare(this.#settings, this.#environment, { mayWait: true });
      take();
      if (this.#admin !== undefined) this.#journal.start();
      const { listen, admin } = this.#settings;
      const adminAddress =
        this.#admin === undefined || admin === undefined
          ? undefined
          : await listenOn(this.#admin, admin);
      const traffic = await listenOn(this.#traffic, listen);
      this.#addresses = Object.freeze({ traffic, admin: adminAddress });
      return this.#addresses;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /**
   * Another configuration from now on. Requests under way, and those that wait, go on under the one they came
   * under.
   *
   * @returns options that have changed and need a restart, such as `listen.port`.
   * Rejects with ConfigError with every fault, among them a file or a name that is new and cannot be read;
   * nothing has changed then.
   */
  reload(config: RouterConfig): Promise<readonly string[]> {
    const done = this.#reloading.then(() => this.#reload(config));
    this.#reloading = done.then(
      () => {},
      () => {}, // it is told to who has asked for it
    );
    return done;
  }

  /** The router as plain data. */
  snapshot(): RouterSnapshot {
    return {
      pool: this.pool.snapshot(),
      heldOff: [...this.#holdOffs.heldAt(this.pool.now())],
      gates: this.#gates.stats(),
      live: this.#proxy.live,
      keptBytes: this.#keeper.bytes,
    };
  }

  /** Its metrics, as Prometheus reads them. */
  metrics(): Promise<{ readonly contentType: string; readonly text: string }> {
    return this.#metrics.print();
  }

  /**
   * Takes no new connection, lets requests under way end, and stops.
   *
   * @param options.drain how long they may take; what is left then is cut. Default 0.
   */
  close(options: { readonly drain?: Duration | undefined } = {}): Promise<void> {
    const drainMs = parseDuration(options.drain ?? 0);
    if (this.#closing !== undefined && drainMs <= 0) this.#proxy.endAll();
    this.#closing ??= this.#close(drainMs);
    return this.#closing;
  }

  #warnOfFault(what: string, error: unknown): void {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#logger?.warn(`${what} by a fault of the router itself: ${text}`);
  }

  /** That nothing has been read yet is no news while the first readings are on their way. */
  #warnOfPool(text: string): void {
    const firstReadingsMs = this.#settings.timeout ?? FIRST_READINGS_MS;
    if (performance.now() - this.#startedAt > firstReadingsMs) this.#logger?.warn(text);
  }

  async #reload(config: RouterConfig): Promise<readonly string[]> {
    const next = resolveRouterConfig(config, this.#environment);
    this.#mustBeStarted();
    const take = await this.#list.prepare(next, this.#environment, { mayWait: false });
    this.#mustBeStarted();
    const left = needsRestart(this.#settings, next);
    this.#gates.setFlow(next.flow);
    this.pool.reconfigure(next.detector);
    this.#settings = next;
    take();
    for (const path of left) this.#logger?.warn(`${path} has changed: it needs a restart`);
    return left;
  }

  #mustBeStarted(): void {
    if (this.#state !== "started") throw new Error("only a started router can be reloaded");
  }

  async #close(drainMs: number): Promise<void> {
    this.#state = "closing";
    this.#list.close();
    this.#proxy.stopKeeping();
    const limit = setTimeout(() => this.#proxy.endAll(), drainMs);
    const stopped = this.#traffic.close();
    await Promise.all([this.#gates.close(drainMs), this.#proxy.idle()]);
    clearTimeout(limit);
    this.#traffic.server.closeAllConnections();
    await stopped;
    await this.#fleet.close();
    this.#journal.close();
    await this.#admin?.close();
  }
}

/** Checks a configuration and makes a router; `start` starts it. @throws ConfigError with every fault. */
export function createRouter(config: RouterConfig, options?: RouterOptions): Router {
  return new Router(config, options);
}

async function listenOn(app: FastifyInstance, { host, port }: Address): Promise<string> {
  await app.listen({ host, port });
  const address = app.server.address();
  if (typeof address !== "object" || address === null) return `http://${host}:${port}`;
  const name = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return `http://${name}:${address.port}`;
}
