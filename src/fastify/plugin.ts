// The plugin itself: hooks, decorators, the health route, and what happens at the end.

import type {
  FastifyInstance,
  FastifyPluginAsync,
  FastifyReply,
  FastifyRequest,
  RouteOptions,
} from "fastify";
import fastifyPlugin from "fastify-plugin";
import { refusalHeaders } from "../flow/answer";
import type { AdmitOptions, Permit } from "../flow/controller";
import { AdmissionError } from "../flow/errors";
import { Client, RequestAdmission } from "./admission";
import {
  checkRoute,
  type HealthReport,
  type PlimsollPluginOptions,
  type ResolvedPluginOptions,
  type RouteAdmission,
  resolvePluginOptions,
} from "./options";

const CHARACTERS_PER_TOKEN = 4;
const UNHEALTHY: ReadonlySet<HealthReport["status"]> = new Set([
  "blind",
  "no-endpoints",
  "closing",
]);

/**
 * Guards the routes of an instance: a request is let through while the pool has room, and is else
 * refused with 429 or 503, `retry-after`, and the reason in `x-plimsoll-reason`. One that was let
 * through carries its lease as `request.plimsoll`.
 *
 * It guards the instance that it is registered on and everything within, from before the body is
 * read. A route opts out with `config: { plimsoll: false }`, and names its band with
 * `config: { plimsoll: { priority: "batch" } }`. Requests for no route are not guarded.
 *
 * @throws ConfigError from `ready`, with every fault of its options, or of a route's.
 * @example
 * await app.register(plimsollPlugin, { pool, health: "/health" });
 * app.post("/chat", (request) => chat(request.body, request.plimsoll.fetch));
 */
export const plimsollPlugin: FastifyPluginAsync<PlimsollPluginOptions> = fastifyPlugin(register, {
  fastify: "5.x",
  name: "plimsoll",
});

async function register(app: FastifyInstance, given: PlimsollPluginOptions): Promise<void> {
  const options = resolvePluginOptions(given);
  const { pool, controller, health, drain, scraper } = options;
  const bands = controller.stats().bands.map(({ name }) => name);
  const instance = { pool, controller, health: () => reportHealth(options) };
  app.decorate("plimsoll", Object.freeze(instance));
  app.decorateRequest("plimsoll", null);
  app.addHook("onRoute", ({ config, url }: RouteOptions) => {
    checkRoute(config?.plimsoll, url, bands);
  });
  app.addHook("onRequest", (request, reply) => guard(request, reply, options));
  // Before the server stops listening: what waits would keep its connections open.
  app.addHook("preClose", () => controller.close({ drain }));
  app.addHook("onClose", async () => scraper?.close());
  if (health === false) return;
  app.get(health, { config: { plimsoll: false } }, async (_, reply) => {
    const report = reportHealth(options);
    reply.header("cache-control", "no-store");
    reply.code(UNHEALTHY.has(report.status) ? 503 : 200);
    return report;
  });
}

async function guard(
  request: FastifyRequest,
  reply: FastifyReply,
  options: ResolvedPluginOptions,
): Promise<unknown> {
  const route = request.routeOptions.config.plimsoll;
  if (request.is404 || route === false) return undefined;
  if (route === undefined && options.guard === "marked") return undefined;
  const client = new Client(reply);
  let permit: Permit;
  try {
    permit = await options.controller.admit(wantsOf(request, route, options, client.signal));
  } catch (error) {
    if (error instanceof AdmissionError) return refuse(error, request, reply, options);
    throw error;
  }
  request.plimsoll = new RequestAdmission(options.pool, permit, client);
  return undefined;
}

function wantsOf(
  request: FastifyRequest,
  route: RouteAdmission | undefined,
  { priority, flow, tokens }: ResolvedPluginOptions,
  signal: AbortSignal,
): AdmitOptions {
  return {
    priority: route?.priority ?? priority?.(request),
    flow: route?.flow ?? flow?.(request),
    ttl: route?.ttl,
    tokens: tokens === undefined ? estimateTokens(request) : tokens(request),
    signal,
  };
}

/** From the length that the client declares, which may not exceed what the route would read. */
function estimateTokens(request: FastifyRequest): number | undefined {
  const length = Number(request.headers["content-length"] ?? Number.NaN);
  if (!(length >= 0)) return undefined;
  return Math.min(length, request.routeOptions.bodyLimit) / CHARACTERS_PER_TOKEN;
}

async function refuse(
  error: AdmissionError,
  request: FastifyRequest,
  reply: FastifyReply,
  { onRefused }: ResolvedPluginOptions,
): Promise<unknown> {
  // 499 is what proxies write down when a client is gone: no fault of the server, which 5xx would say.
  reply.code(error.status ?? 499).headers(refusalHeaders(error));
  if (onRefused === undefined) throw error;
  const payload = await onRefused(error, request, reply);
  if (!reply.sent) reply.send(payload);
  return reply;
}

function reportHealth({ pool, controller }: ResolvedPluginOptions): HealthReport {
  const { saturation, waiting, closing, bands } = controller.stats();
  const { fresh, stale, unusable, candidates, failedOpen } = pool.evaluate();
  const ceiling = Math.max(...bands.map((band) => band.ceiling));
  const status = closing
    ? "closing"
    : pool.size === 0
      ? "no-endpoints"
      : fresh === 0
        ? "blind"
        : saturation >= ceiling
          ? "saturated"
          : "ok";
  return {
    status,
    saturation,
    endpoints: pool.size,
    candidates: failedOpen ? 0 : candidates.length,
    fresh,
    stale,
    unusable,
    waiting,
  };
}
