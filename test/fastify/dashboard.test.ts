// The dashboard in an application: below a prefix, behind the application's own hooks, and not shed by the
// plugin that guards everything else.

import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, expect, test } from "vitest";
import { plimsollDashboard } from "../../src/fastify/dashboard";
import { plimsollPlugin } from "../../src/fastify/plugin";
import { EndpointPool } from "../../src/pool";

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

function appOf(): FastifyInstance {
  const app = Fastify();
  apps.push(app);
  return app;
}

function fullPool(): EndpointPool {
  const pool = new EndpointPool({ metricsStalenessThreshold: "1h" });
  pool.add("a");
  pool.report("a", { waitingQueueSize: 50, kvCacheUsagePercent: 0.2 });
  return pool;
}

test("it is below its prefix, and is shown while all else is refused", async () => {
  const app = appOf();
  await app.register(plimsollPlugin, { pool: fullPool() });
  app.get("/work", async () => "done");
  await app.register(plimsollDashboard, { prefix: "/ops" });
  expect((await app.inject("/work")).statusCode).toBe(429);
  const page = await app.inject("/ops/dashboard");
  expect(page.statusCode).toBe(200);
  const [, script = ""] = /src="([^"]+)"/.exec(page.body) ?? [];
  expect((await app.inject(`/ops/${script}`)).statusCode).toBe(200);
});

test("its events show the pool and the controller, and end with the application", async () => {
  const app = appOf();
  await app.register(plimsollPlugin, { pool: fullPool() });
  await app.register(plimsollDashboard);
  const address = await app.listen({ host: "127.0.0.1", port: 0 });
  const response = await fetch(`${address}/dashboard/events`);
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (!/^data: .*\n/m.test(text)) text += decoder.decode((await reader?.read())?.value);
  const [, data = ""] = /^data: (.*)\n/m.exec(text) ?? [];
  expect(JSON.parse(data)).toMatchObject({
    head: { candidates: 0, live: null },
    gates: [{ model: "*", waiting: 0 }],
    about: [["a", "", 1, 5, 0.8, null, 1]],
  });
  const ended = (async () => {
    while (!(await reader?.read())?.done);
  })();
  await app.close();
  await ended;
});

test("the hooks of its scope guard it", async () => {
  const app = appOf();
  await app.register(plimsollPlugin, { pool: fullPool() });
  await app.register(async (scope) => {
    scope.addHook("onRequest", async (_, reply) => reply.code(401).send("no"));
    await scope.register(plimsollDashboard);
  });
  for (const path of ["/dashboard", "/dashboard/events"]) {
    expect((await app.inject(path)).statusCode, path).toBe(401);
  }
});

test("without the plugin it says what is missing", async () => {
  const app = appOf();
  await expect(app.register(plimsollDashboard)).rejects.toThrow(
    /plimsollPlugin must be registered/,
  );
});
