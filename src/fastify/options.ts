// What the plugin and a route may be told, and what Fastify's own types gain by it. Judged once: the
// plugin's options when it is registered, a route's when it is declared.

import type { FastifyReply, FastifyRequest } from "fastify";
import { durationField, type Field, type Fields, oneOf, readFields } from "../config";
import { type Duration, parseDuration } from "../duration";
import { ConfigError, type ConfigFault, describeValue } from "../errors";
import { FlowController } from "../flow/controller";
import type { AdmissionError } from "../flow/errors";
import { EndpointPool } from "../pool";
import type { Admission } from "./admission";

/** How the plugin guards its routes. */
export interface PlimsollPluginOptions {
  /** The endpoints behind the service. */
  readonly pool: EndpointPool;
  /**
   * Who decides; closed with the instance. Default: one that refuses at once what may not go now.
   * With `new FlowController(pool)` requests wait for their turn.
   */
  readonly controller?: FlowController | undefined;
  /** Which routes: `all` but those that opt out, or the `marked` ones alone. Default "all". */
  readonly guard?: "all" | "marked" | undefined;
  /** Path of a route that says how the pool is; false: none. Default false. */
  readonly health?: string | false | undefined;
  /** How long requests that wait may still be served once the instance closes. Default 0. */
  readonly drain?: Duration | undefined;
  /** A scraper, or whatever else is to be closed with the instance. Default: nothing. */
  readonly scraper?: { close(): Promise<void> } | undefined;
  /** Band of a request whose route names none. Default: the lowest. */
  readonly priority?: ((request: FastifyRequest) => string | number | undefined) | undefined;
  /** Whose request it is, where its route does not say; flows take turns. Default: one for all. */
  readonly flow?: ((request: FastifyRequest) => string | undefined) | undefined;
  /** Prompt tokens. Asked before the body is read. Default: a quarter of its length. */
  readonly tokens?: ((request: FastifyRequest) => number | undefined) | undefined;
  /**
   * Answers a refused request; status and headers are set. Default: the error goes to the error
   * handler.
   */
  readonly onRefused?:
    | ((error: AdmissionError, request: FastifyRequest, reply: FastifyReply) => unknown)
    | undefined;
}

/** What a route may say of itself as `config.plimsoll`. */
export interface RouteAdmission {
  /** Its band, by name or index. */
  readonly priority?: string | number | undefined;
  /** Its flow. */
  readonly flow?: string | undefined;
  /** How long its requests may wait; shortens the controller's. */
  readonly ttl?: Duration | undefined;
}

/** How the pool is, for a load balancer and for people. It names no endpoint. */
export interface HealthReport {
  /**
   * `ok`; `saturated`: sheds or holds back, and works; `blind`: no endpoint has a fresh reading;
   * `no-endpoints`; `closing`. The last three are answered with 503.
   */
  readonly status: "ok" | "saturated" | "blind" | "no-endpoints" | "closing";
  /** What the gate looks at; 1 = at its ideal. */
  readonly saturation: number;
  readonly endpoints: number;
  /** How many may take a request; 0 when none passes. */
  readonly candidates: number;
  readonly fresh: number;
  readonly stale: number;
  readonly unusable: number;
  /** Requests that wait. */
  readonly waiting: number;
}

/** `fastify.plimsoll`. */
export interface PlimsollInstance {
  readonly pool: EndpointPool;
  readonly controller: FlowController;
  /** How the pool is now. */
  health(): HealthReport;
}

declare module "fastify" {
  interface FastifyInstance {
    readonly plimsoll: PlimsollInstance;
  }
  interface FastifyRequest {
    /** Null on a route that is not guarded. */
    plimsoll: Admission | null;
  }
  interface FastifyContextConfig {
    /** False: this route is not guarded. An object also marks it, see `guard`. */
    readonly plimsoll?: false | RouteAdmission | undefined;
  }
}

/** Checked options, durations in ms. */
export interface ResolvedPluginOptions
  extends Omit<PlimsollPluginOptions, "controller" | "guard" | "health" | "drain"> {
  readonly controller: FlowController;
  readonly guard: "all" | "marked";
  readonly health: string | false;
  readonly drain: number;
}

const FIELDS: Fields<PlimsollPluginOptions> = {
  pool: field("an EndpointPool", (value) => value instanceof EndpointPool),
  controller: field("a FlowController", (value) => value instanceof FlowController),
  guard: oneOf<"all" | "marked">("all", "marked"),
  health: field(
    'a path such as "/health", or false',
    (value) => value === false || (typeof value === "string" && value.startsWith("/")),
  ),
  drain: durationField('a duration >= 0, such as "10s"', (ms) => ms >= 0),
  scraper: field("something with a method close", hasClose),
  priority: callback(),
  flow: callback(),
  tokens: callback(),
  onRefused: callback(),
};

/** @throws ConfigError with every fault. */
export function resolvePluginOptions(options: unknown): ResolvedPluginOptions {
  const faults: ConfigFault[] = [];
  // Fastify's own options of `register`, which are not for the plugin.
  const { prefix: _, logLevel: __, logSerializers: ___, ...own } = Object(options);
  const given = readFields(FIELDS, own, "", faults);
  const { pool } = given;
  if (pool === undefined && !faults.some(({ path }) => path === "pool")) {
    faults.push({ path: "pool", value: pool, rule: `must be ${FIELDS.pool.rule}` });
  }
  if (faults.length > 0 || pool === undefined) throw new ConfigError(faults);
  return {
    ...given,
    pool,
    controller: given.controller ?? new FlowController(pool, { mode: "shed" }),
    guard: given.guard ?? "all",
    health: given.health ?? false,
    drain: parseDuration(given.drain ?? 0),
  };
}

/**
 * Checks what a route says of itself.
 *
 * @param url of the route, for the message.
 * @param bands the names of the controller's bands.
 * @throws ConfigError with every fault.
 */
export function checkRoute(value: unknown, url: string, bands: readonly string[]): void {
  if (value === undefined || value === false) return;
  const fields: Fields<RouteAdmission> = {
    priority: field(`one of ${bands.map(describeValue).join(", ")}, or an index of them`, (band) =>
      typeof band === "number" ? band in bands : bands.includes(String(band)),
    ),
    flow: field("a text", (flow) => typeof flow === "string"),
    ttl: durationField('a duration >= 0, such as "10s"', (ms) => ms >= 0),
  };
  const faults: ConfigFault[] = [];
  readFields(fields, value, `${url}: config.plimsoll`, faults);
  if (faults.length > 0) throw new ConfigError(faults);
}

/** An option that is taken as it is once `isRight` has looked at it. */
function field<T>(rule: string, isRight: (value: unknown) => boolean): Field<T> {
  return { rule, read: (value) => (isRight(value) ? (value as T) : undefined) };
}

/** That it is a function is all that can be known of one. */
function callback<T>(): Field<T> {
  return field("a function", (value) => typeof value === "function");
}

function hasClose(value: unknown): boolean {
  return typeof value === "object" && value !== null && "close" in value;
}
