// The traffic port: whatever a client sends, whole or broken, slow or large, becomes a request for the proxy
// or is refused by the limits of the server.

import Fastify, { type FastifyInstance } from "fastify";
import type { RouterSettings } from "./config";
import { Connections } from "./connections";
import type { RequestProxy } from "./proxy";

/** Timeouts of connections are looked at so often at the least, in ms. */
const LONGEST_CHECK_MS = 5000;

/** Makes the server; it does not listen yet. */
export function createTrafficServer(
  proxy: RequestProxy,
  { timeouts, limits }: RouterSettings,
): FastifyInstance {
  const connections = new Connections((answer) => proxy.refused(answer));
  const app = Fastify({
    logger: false,
    requestTimeout: timeouts.request,
    keepAliveTimeout: timeouts.keepAlive,
    return503OnClosing: false,
    forceCloseConnections: "idle",
    // Every path goes one way. Routing would decode it, and refuse what it cannot decode.
    rewriteUrl: () => "/",
    clientErrorHandler: (error, socket) => connections.fail(error, socket),
    http: {
      headersTimeout: Math.min(timeouts.requestHeaders, timeouts.request),
      maxHeaderSize: limits.requestHeaderBytes,
      connectionsCheckingInterval: Math.min(LONGEST_CHECK_MS, timeouts.requestHeaders / 4),
    },
  });
  // The hook runs for every method, before anything reads the body or judges its type.
  app.addHook("onRequest", (request, reply) => {
    reply.hijack();
    const { raw, originalUrl } = request;
    connections.enter(raw.socket, (onEnd) => proxy.handle(raw, reply.raw, originalUrl, onEnd));
  });
  app.server.maxConnections = limits.connections;
  return app;
}
