// The admin port: metrics, health and the pool, for those who run the router. It is apart from traffic, and on
// loopback unless it is told otherwise.

import Fastify, { type FastifyInstance } from "fastify";
import type { Router } from "./router";

/** What the admin port shows. */
export type Shown = Pick<Router, "isReady" | "metrics" | "snapshot">;

/** Makes the server; it does not listen yet. */
export function createAdminServer(router: Shown): FastifyInstance {
  const app = Fastify({ logger: false, forceCloseConnections: true, bodyLimit: 1 });
  app.get("/metrics", async (_, reply) => {
    const { contentType, text } = await router.metrics();
    return reply.header("content-type", contentType).send(text);
  });
  app.get("/healthz", (_, reply) => reply.send({ status: "ok" }));
  app.get("/readyz", (_, reply) => {
    const { isReady } = router;
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? "ready" : "not ready" });
  });
  app.get("/pool", (_, reply) => reply.send(router.snapshot()));
  return app;
}
