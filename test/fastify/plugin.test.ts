import { connect } from "node:net";
import Fastify, { type FastifyInstance } from "fastify";
import OpenAI from "openai";
import { afterEach, describe, expect, test } from "vitest";
import type { PlimsollPluginOptions } from "../../src/fastify/options";
import { plimsollPlugin } from "../../src/fastify/plugin";
import { type AdmissionError, FlowController } from "../../src/flow/index";
import { ConfigError, EndpointPool } from "../../src/index";
import { beginStream, leasesOf, poolOf, sendEvent, startEngine } from "../fetch/engines";
import { until } from "../telemetry/servers";

const URL_A = "http://10.0.0.7:8000";
const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

/** A pool with one endpoint, idle or with a long queue. */
function onePool(waitingQueueSize = 0): EndpointPool {
  const pool = poolOf(URL_A);
  pool.report(URL_A, { waitingQueueSize, kvCacheUsagePercent: 0.1 });
  return pool;
}

function newApp(): FastifyInstance {
  // A client that aborts may have opened another connection already, which would never end by itself.
  const app = Fastify({ forceCloseConnections: true });
  apps.push(app);
  return app;
}

function makeApp(options: PlimsollPluginOptions): FastifyInstance {
  const app = newApp();
  app.register(plimsollPlugin, options);
  return app;
}

/** An app with one guarded route, which says what it was given. */
function oneRoute(options: PlimsollPluginOptions): FastifyInstance {
  const app = makeApp(options);
  app.register(async (scope) => {
    scope.post("/chat", async ({ plimsoll }) => ({
      endpoint: plimsoll?.lease?.endpoint.id ?? null,
      leases: leasesOf(options.pool),
    }));
  });
  return app;
}

const chat = { method: "POST", url: "/chat", payload: { a: 1 } } as const;

describe("a guarded route", () => {
  test("has a lease while it runs, and none when it has answered", async () => {
    const pool = onePool();
    const answer = await oneRoute({ pool }).inject(chat);
    expect(answer.json()).toEqual({ endpoint: URL_A, leases: 1 });
    expect(leasesOf(pool)).toBe(0);
  });

  test("sheds with 429, Retry-After and the reason, before the body is read", async () => {
    const pool = onePool(9);
    const app = oneRoute({ pool });
    let parsed = 0;
    app.addHook("preValidation", async () => {
      parsed++;
    });
    const answer = await app.inject(chat);
    expect(answer.statusCode).toBe(429);
    expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(answer.headers["x-plimsoll-reason"]).toBe("saturated");
    expect(answer.headers["x-plimsoll-gate"]).toBe("resource=queue; value=9; limit=5");
    expect(answer.json()).toMatchObject({ statusCode: 429, code: "PLIMSOLL_ADMISSION" });
    expect(answer.body).not.toContain("10.0.0.7");
    expect([parsed, leasesOf(pool)]).toEqual([0, 0]);
  });

  test("sheds with 503 when there is no endpoint", async () => {
    const answer = await oneRoute({ pool: new EndpointPool() }).inject(chat);
    expect(answer.statusCode).toBe(503);
    expect(answer.headers["retry-after"]).toBeDefined();
    expect(answer.headers["x-plimsoll-reason"]).toBe("no-endpoints");
  });

  test("takes no more at one instant than the pool can take", async () => {
    const pool = onePool(4);
    const app = makeApp({ pool });
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    app.register(async (scope) => {
      scope.post("/chat", () => gate.then(() => "done"));
    });
    await app.ready();
    const answers = Promise.all(Array.from({ length: 20 }, () => app.inject(chat)));
    await until(() => pool.evaluate().saturation >= 1, "it is full");
    await new Promise(setImmediate);
    open();
    const codes = (await answers).map(({ statusCode }) => statusCode);
    expect(codes.filter((code) => code === 200).length).toBeLessThan(20);
    expect(codes.filter((code) => code === 429).length).toBeGreaterThan(0);
    expect(leasesOf(pool)).toBe(0);
  });

  test("waits for its turn behind a controller that queues", async () => {
    const pool = onePool(9);
    const controller = new FlowController(pool);
    const answer = oneRoute({ pool, controller }).inject(chat);
    await until(() => controller.stats().waiting === 1, "it waits");
    pool.report(URL_A, { waitingQueueSize: 0, kvCacheUsagePercent: 0.1 });
    expect((await answer).statusCode).toBe(200);
  });

  test.each(["throws", "answers 500", "hijacks"])(
    "gives its lease back when it %s",
    async (how) => {
      const pool = onePool();
      const app = makeApp({ pool });
      app.register(async (scope) => {
        scope.get("/", async (_, reply) => {
          if (how === "throws") throw new Error("mine");
          if (how === "answers 500") return reply.code(500).send("no");
          reply.hijack();
          reply.raw.end("raw");
          return reply;
        });
      });
      await fetch(await app.listen({ host: "127.0.0.1", port: 0 }));
      await until(() => leasesOf(pool) === 0, "the lease is back");
    },
  );
});

describe("which routes are guarded", () => {
  test("all but those that opt out, and unknown ones", async () => {
    const pool = onePool(9);
    const app = oneRoute({ pool });
    app.register(async (scope) => {
      scope.get("/open", { config: { plimsoll: false } }, async ({ plimsoll }) => ({ plimsoll }));
    });
    expect((await app.inject("/open")).json()).toEqual({ plimsoll: null });
    expect((await app.inject("/nothing")).statusCode).toBe(404);
    expect((await app.inject(chat)).statusCode).toBe(429);
  });

  test("or the marked ones alone", async () => {
    const app = oneRoute({ pool: onePool(9), guard: "marked" });
    app.register(async (scope) => {
      scope.get("/marked", { config: { plimsoll: {} } }, async () => "never");
    });
    expect((await app.inject(chat)).statusCode).toBe(200);
    expect((await app.inject("/marked")).statusCode).toBe(429);
  });

  test("those of the scope in which it is registered, and no others", async () => {
    const app = newApp();
    app.register(async (scope) => {
      await scope.register(plimsollPlugin, { pool: onePool(9) });
      scope.get("/inside", async () => "never");
    });
    app.get("/outside", async () => "always");
    expect((await app.inject("/outside")).statusCode).toBe(200);
    expect((await app.inject("/inside")).statusCode).toBe(429);
    expect(app.hasDecorator("plimsoll")).toBe(false);
  });

  test("each scope may have a pool of its own", async () => {
    const app = newApp();
    for (const [prefix, waiting] of [
      ["/a", 0],
      ["/b", 9],
    ] as const) {
      app.register(
        async (scope) => {
          await scope.register(plimsollPlugin, { pool: onePool(waiting), health: "/health" });
          scope.get("/", async () => "there");
        },
        { prefix },
      );
    }
    expect((await app.inject("/a")).statusCode).toBe(200);
    expect((await app.inject("/b")).statusCode).toBe(429);
    expect((await app.inject("/b/health")).json()).toMatchObject({ status: "saturated" });
  });
});

describe("priority, flow and tokens", () => {
  test("come from the route, else from the callbacks", async () => {
    const pool = onePool();
    const controller = new FlowController(pool, { bands: [{ name: "chat" }, { name: "batch" }] });
    const flows: string[] = [];
    const app = oneRoute({
      pool,
      controller,
      priority: ({ headers }) => (headers["x-urgent"] === "1" ? "chat" : undefined),
      flow: ({ url }) => {
        flows.push(url);
        return url;
      },
      tokens: () => 77,
    });
    app.register(async (scope) => {
      const config = { plimsoll: { priority: "batch", flow: "fixed", ttl: "1s" } };
      scope.get("/batch", { config }, async () => "done");
    });
    await app.inject(chat);
    await app.inject({ ...chat, headers: { "x-urgent": "1" } });
    await app.inject({ url: "/batch", headers: { "x-urgent": "1" } });
    expect(controller.stats().bands.map(({ admitted }) => admitted)).toEqual([1, 2]);
    expect(flows).toEqual(["/chat", "/chat"]);
    expect(pool.snapshot().meanPromptTokens).toBe(77);
  });

  test("the route's time to live ends its waiting", async () => {
    const pool = onePool(9);
    const app = makeApp({ pool, controller: new FlowController(pool) });
    app.register(async (scope) => {
      scope.get("/", { config: { plimsoll: { ttl: 0 } } }, async () => "never");
    });
    const answer = await app.inject("/");
    expect([answer.statusCode, answer.headers["x-plimsoll-reason"]]).toEqual([429, "ttl-expired"]);
  });

  test("a length that the route would not read does not count as a prompt", async () => {
    const pool = onePool();
    const app = oneRoute({ pool });
    const answer = await app.inject({ ...chat, headers: { "content-length": "999999999999" } });
    expect(answer.statusCode).toBe(413);
    expect(pool.snapshot().meanPromptTokens).toBe(1_048_576 / 4);
    expect(leasesOf(pool)).toBe(0);
  });
});

describe("a client that goes away", () => {
  test("while it waits leaves its place in the queue", async () => {
    const pool = onePool(9);
    const controller = new FlowController(pool);
    const app = oneRoute({ pool, controller });
    const address = await app.listen({ host: "127.0.0.1", port: 0 });
    const abort = new AbortController();
    const answer = fetch(`${address}/chat`, { method: "POST", signal: abort.signal });
    await until(() => controller.stats().waiting === 1, "it waits");
    abort.abort();
    await expect(answer).rejects.toThrow();
    await until(() => controller.stats().waiting === 0, "it waits no more");
    expect(controller.stats().bands[0]?.refused.cancelled).toBe(1);
    expect(leasesOf(pool)).toBe(0);
  });

  test("during an earlier hook leaves no lease", async () => {
    const pool = onePool();
    const app = newApp();
    let hooked = 0;
    app.addHook("onRequest", async (_, reply) => {
      hooked++;
      await until(() => reply.raw.closed, "the client is gone");
    });
    const reasons: string[] = [];
    const onRefused = ({ reason }: AdmissionError) => void reasons.push(reason);
    app.register(plimsollPlugin, { pool, onRefused });
    app.register(async (scope) => {
      scope.get("/", async () => "late");
    });
    const { port } = new URL(await app.listen({ host: "127.0.0.1", port: 0 }));
    const socket = connect(Number(port), "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    await until(() => hooked === 1, "it was asked");
    socket.destroy();
    await until(() => reasons.length === 1, "it was refused");
    expect([reasons, leasesOf(pool)]).toEqual([["cancelled"], 0]);
  });

  test("aborts what the route has sent to an engine, and frees both at once", async () => {
    const engine = await startEngine((_, response) => {
      beginStream(response);
      sendEvent(response, { content: "a" }, null);
    });
    const pool = poolOf(engine.url);
    const app = makeApp({ pool });
    app.register(async (scope) => {
      scope.get("/", async ({ plimsoll }, reply) => {
        const answer = await plimsoll?.fetch("/v1/chat/completions");
        return reply.send(answer?.body);
      });
    });
    const abort = new AbortController();
    const address = await app.listen({ host: "127.0.0.1", port: 0 });
    const answer = await fetch(address, { signal: abort.signal });
    await answer.body?.getReader().read();
    expect(leasesOf(pool)).toBe(1);
    abort.abort();
    await until(() => engine.broken.length === 1 && leasesOf(pool) === 0, "both are free");
  });
});

describe("request.plimsoll.fetch", () => {
  test("spends the lease of the request, so that it is counted once", async () => {
    const engine = await startEngine();
    const pool = poolOf(engine.url);
    const app = makeApp({ pool });
    const counts: number[] = [];
    app.register(async (scope) => {
      scope.post("/chat", async ({ plimsoll }) => {
        if (plimsoll === null) throw new Error("not guarded");
        counts.push(leasesOf(pool));
        const client = new OpenAI({
          baseURL: "http://pool/v1",
          apiKey: "-",
          fetch: plimsoll.fetch,
        });
        const ask = async () => {
          const messages = [{ role: "user" as const, content: "Hello" }];
          const answer = client.chat.completions.create({ model: "m", messages });
          await until(() => leasesOf(pool) === 1, "it was sent");
          counts.push(leasesOf(pool));
          return (await answer).choices[0]?.message.content;
        };
        const texts = [await ask()];
        counts.push(leasesOf(pool));
        return [...texts, await ask()];
      });
    });
    expect((await app.inject(chat)).json()).toEqual(["Hello back", "Hello back"]);
    expect(counts).toEqual([1, 1, 0, 1]);
    expect(leasesOf(pool)).toBe(0);
  });

  test("goes on to another endpoint than that of the lease where need be", async () => {
    const busy = await startEngine((_, response) => response.writeHead(503).end());
    const engine = await startEngine();
    const pool = poolOf(busy.url, engine.url);
    const app = makeApp({ pool });
    app.register(async (scope) => {
      scope.get("/", async ({ plimsoll }) => {
        const answer = await plimsoll?.fetch("/v1/chat/completions");
        const leases = leasesOf(pool);
        await answer?.text();
        return { status: answer?.status, first: plimsoll?.lease?.endpoint.id, leases };
      });
    });
    expect((await app.inject("/")).json()).toEqual({ status: 200, first: busy.url, leases: 1 });
    expect(leasesOf(pool)).toBe(0);
  });

  test("is not aborted by an answer that ended as it should", async () => {
    const engine = await startEngine();
    const app = makeApp({ pool: poolOf(engine.url) });
    const signals: AbortSignal[] = [];
    app.register(async (scope) => {
      scope.get("/", async ({ plimsoll }) => {
        if (plimsoll !== null) signals.push(plimsoll.signal);
        return "done";
      });
    });
    await app.inject("/");
    await (await fetch(await app.listen({ host: "127.0.0.1", port: 0 }))).text();
    await app.close();
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
  });
});

describe("the health route", () => {
  test.each<[string, number, () => EndpointPool]>([
    ["ok", 200, () => onePool()],
    ["saturated", 200, () => onePool(9)],
    ["no-endpoints", 503, () => new EndpointPool()],
    [
      "blind",
      503,
      () => {
        const pool = new EndpointPool();
        pool.add(URL_A);
        return pool;
      },
    ],
  ])("says %s with %i", async (status, code, makePool) => {
    const app = makeApp({ pool: makePool(), health: "/health" });
    const answer = await app.inject("/health");
    expect([answer.statusCode, answer.json().status]).toEqual([code, status]);
    expect(answer.headers["cache-control"]).toBe("no-store");
    expect(answer.body).not.toContain("10.0.0.7");
  });

  test("has the counts, which fastify.plimsoll has too", async () => {
    const app = makeApp({ pool: onePool(), health: "/health" });
    const report = (await app.inject("/health")).json();
    expect(report).toEqual(app.plimsoll.health());
    expect(report).toMatchObject({ endpoints: 1, candidates: 1, fresh: 1, stale: 0, waiting: 0 });
  });

  test("is not there unless it is asked for", async () => {
    expect((await makeApp({ pool: onePool() }).inject("/health")).statusCode).toBe(404);
  });
});

describe("the end of the instance", () => {
  test("refuses what waits with 503, and closes the scraper", async () => {
    const pool = onePool(9);
    const controller = new FlowController(pool);
    let closed = 0;
    const scraper = {
      close: async () => {
        closed++;
      },
    };
    const app = oneRoute({ pool, controller, scraper });
    const address = await app.listen({ host: "127.0.0.1", port: 0 });
    const answer = fetch(`${address}/chat`, { method: "POST" });
    await until(() => controller.stats().waiting === 1, "it waits");
    await app.close();
    const { status, headers } = await answer;
    expect([status, headers.get("x-plimsoll-reason")]).toEqual([503, "shutting-down"]);
    expect([closed, app.plimsoll.health().status]).toEqual([1, "closing"]);
  });

  test("serves what waits within the time to drain", async () => {
    const pool = onePool(9);
    const controller = new FlowController(pool);
    const app = oneRoute({ pool, controller, drain: "30s" });
    const address = await app.listen({ host: "127.0.0.1", port: 0 });
    const answer = fetch(`${address}/chat`, { method: "POST" });
    await until(() => controller.stats().waiting === 1, "it waits");
    const closing = app.close();
    await until(() => controller.stats().closing, "it closes");
    pool.report(URL_A, { waitingQueueSize: 0, kvCacheUsagePercent: 0.1 });
    expect((await answer).status).toBe(200);
    await closing;
  });
});

describe("a refusal", () => {
  test("goes to the error handler", async () => {
    const app = oneRoute({ pool: onePool(9) });
    app.setErrorHandler((error, _, reply) => reply.send({ mine: String(error) }));
    const answer = await app.inject(chat);
    expect(answer.statusCode).toBe(429);
    expect(answer.json().mine).toContain("saturated");
  });

  test.each(["returns", "sends"])("or to onRefused, which %s the answer", async (how) => {
    const app = oneRoute({
      pool: onePool(9),
      onRefused: ({ reason }, _, reply) => {
        if (how === "returns") return { mine: reason };
        reply.code(503).send({ mine: reason });
        return undefined;
      },
    });
    const answer = await app.inject(chat);
    expect(answer.statusCode).toBe(how === "returns" ? 429 : 503);
    expect(answer.headers["retry-after"]).toBeDefined();
    expect(answer.json()).toEqual({ mine: "saturated" });
  });
});

describe("options", () => {
  const faultsOf = async (ready: PromiseLike<unknown>): Promise<string[]> => {
    try {
      await ready;
    } catch (error) {
      if (error instanceof ConfigError) return error.faults.map(({ path }) => path).sort();
      throw error;
    }
    return [];
  };

  test("all faults are reported together when the instance starts", async () => {
    const wrong: object = { helth: "/x", health: "x", drain: "x", guard: "some", flow: 1 };
    const app = newApp();
    const faults = await faultsOf(
      app.register(plimsollPlugin, wrong as PlimsollPluginOptions).ready(), // wrong on purpose
    );
    expect(faults).toEqual(["drain", "flow", "guard", "health", "helth", "pool"]);
  });

  test("so are those of a route", async () => {
    const app = makeApp({ pool: onePool() });
    app.register(async (scope) => {
      const wrong: object = { priority: "none", ttl: "x", prio: 1 };
      scope.get("/a", { config: { plimsoll: wrong } }, async () => "never");
    });
    expect(await faultsOf(app.ready())).toEqual([
      "/a: config.plimsoll.prio",
      "/a: config.plimsoll.priority",
      "/a: config.plimsoll.ttl",
    ]);
  });

  test("Fastify's own options of register are left to it", async () => {
    const app = newApp();
    await app.register(plimsollPlugin, { pool: onePool(), health: "/h", prefix: "/p" });
    expect((await app.inject("/h")).statusCode).toBe(200);
  });
});
