// Engines that refuse, reset, hang and lie, and clients that go away at every stage: each request gets one
// whole answer or one clear error, and nothing is left behind (see `useRouters`).

import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { Rendezvous } from "../../src/router/affinity";
import type { RouterConfig } from "../../src/router/options";
import { until } from "../telemetry/servers";
import { type Behaviour, chat, eventOf, send, startEngine, useRouters } from "./engines";

const harness = useRouters();

/** One engine that misbehaves, one that does not, and a session that goes to the former first. */
async function pair(config: RouterConfig = {}) {
  const [bad, good] = [await harness.engine("bad"), await harness.engine("good")];
  const home = await harness.router({ ...config, endpoints: [bad.url, good.url] });
  const choices = [bad, good].map(({ url }) => ({ id: url, weight: 1 }));
  const rendezvous = new Rendezvous();
  const prefersBad = (key: string) => rendezvous.choose(key, choices, () => false)?.id === bad.url;
  let i = 0;
  while (!prefersBad(`s${i}`)) i++;
  return { bad, good, ...home, key: `s${i}` };
}

const reset: Behaviour = (request) => request.socket.resetAndDestroy();

describe("an endpoint that does not take a request", () => {
  const cases: [string, Behaviour][] = [
    ["resets before its headers", reset],
    ["closes before its headers", (request) => request.socket.destroy()],
    ["half-closes before its headers", (request) => request.socket.end()],
    ["answers garbage", ({ socket }) => socket.end("\u0000\u0001 this is no HTTP\r\n\r\n")],
    ["closes within its headers", ({ socket }) => socket.end("HTTP/1.1 200 OK\r\nX-A: ")],
    ["sends huge headers", (_, response) => response.setHeader("x", "y".repeat(99_999)).end()],
    ["answers 429", (_, response) => response.writeHead(429).end("busy")],
    ["answers 503", (_, response) => response.writeHead(503).end("busy")],
    ["answers 503 and hangs within it", (_, response) => response.writeHead(503).write("bu")],
    [
      "answers 503 with a body that never ends",
      (_, response) => {
        response.writeHead(503);
        const timer = setInterval(() => response.write("x".repeat(99_999)), 1);
        response.on("close", () => clearInterval(timer));
      },
    ],
  ];

  test.each(cases)("%s: another one answers", async (_, behave) => {
    const { bad, good, url, key } = await pair();
    bad.behave = behave;
    const answer = await chat(url, { prompt_cache_key: key });
    expect([answer.status, answer.isWhole]).toEqual([200, true]);
    expect(answer.headers["x-plimsoll-endpoint"]).toBe(good.url);
    expect([bad.seen.length, good.seen.length]).toEqual([1, 1]);
    // Both have seen the same.
    expect(good.seen[0]?.body.equals(bad.seen[0]?.body ?? Buffer.alloc(0))).toBe(true);
  });

  test("refuses the connection: another one answers, and it is held off for a time", async () => {
    const { bad, good, url, key, router } = await pair();
    await bad.close();
    for (let i = 0; i < 5; i++) {
      const answer = await chat(url, { prompt_cache_key: key });
      expect([answer.status, answer.headers["x-plimsoll-endpoint"]]).toEqual([200, good.url]);
    }
    await until(() => router.snapshot().heldOff.length === 0, "it may be tried again");
  });

  test("while it is held off it is not asked, and counts as saturated", async () => {
    const { bad, url, key, router } = await pair({
      retry: { holdOff: "10s", longestHoldOff: "20s" },
    });
    bad.behave = (_, response) => response.writeHead(503, { "retry-after": "3600" }).end();
    for (let i = 0; i < 20; i++) {
      expect((await chat(url, { prompt_cache_key: key })).status).toBe(200);
    }
    expect(bad.seen.length).toBe(1);
    expect(router.snapshot()).toMatchObject({ heldOff: [bad.url] });
    expect(router.snapshot().gates[0]?.saturation).toBeGreaterThanOrEqual(0.5);
  });

  test("tries are bounded, and the last answer is the client's to see", async () => {
    const { bad, good, url } = await pair({
      retry: { attempts: 2, holdOff: "20ms", longestHoldOff: "50ms" },
    });
    for (const one of [bad, good]) {
      one.behave = (_, response) =>
        response.writeHead(429, { "retry-after": "7", "content-type": "text/x" }).end("busy");
    }
    const answer = await chat(url);
    expect([answer.status, answer.body.toString()]).toEqual([429, "busy"]);
    expect(answer.headers).toMatchObject({ "retry-after": "7", "content-type": "text/x" });
    expect(bad.seen.length + good.seen.length).toBe(2);
    for (const one of [bad, good]) one.behave = reset;
    const lost = await chat(url);
    expect([lost.status, lost.headers["x-plimsoll-reason"]]).toEqual([502, "upstream-unreachable"]);
  });

  test("when nobody is left it waits for the first who may be asked again", async () => {
    const engine = await harness.engine();
    const { url } = await harness.router({ endpoints: [engine.url] });
    const { behave } = engine;
    engine.behave = (request, response, body) => {
      engine.behave = behave;
      reset(request, response, body);
    };
    expect((await chat(url)).status).toBe(200);
    expect(engine.seen.length).toBe(2);
  });

  test("a request that is cut off wherever it goes is sent twice, and holds nobody off", async () => {
    const engines = await Promise.all(["a", "b", "c", "d"].map((name) => harness.engine(name)));
    const { url, router } = await harness.router({
      endpoints: engines.map((one) => one.url),
      retry: { attempts: 4, holdOff: "10s", longestHoldOff: "10s" },
    });
    for (const one of engines) {
      const { behave } = one;
      one.behave = (request, response, body) =>
        (body.includes("poison") ? reset : behave)(request, response, body);
    }
    for (let i = 0; i < 8; i++) {
      const answer = await chat(url, { user: "poison" });
      expect([answer.status, answer.headers["x-plimsoll-reason"]]).toEqual([
        502,
        "upstream-unreachable",
      ]);
    }
    expect(engines.reduce((sum, { seen }) => sum + seen.length, 0)).toBe(16);
    expect(router.snapshot().heldOff).toEqual([]);
    expect((await chat(url)).status).toBe(200);
  });

  test("an endpoint that cuts off what another one answers is held off", async () => {
    const { bad, url, key, router } = await pair({
      retry: { holdOff: "10s", longestHoldOff: "10s" },
    });
    bad.behave = reset;
    for (let i = 0; i < 5; i++) {
      expect((await chat(url, { prompt_cache_key: key })).status).toBe(200);
    }
    expect(bad.seen.length).toBe(1);
    expect(router.snapshot().heldOff).toEqual([bad.url]);
  });

  test("the 503 of a last try holds its endpoint off, and counts as a refusal", async () => {
    const { bad, url, key, router } = await pair({
      retry: { attempts: 1, holdOff: "10s", longestHoldOff: "10s" },
    });
    bad.behave = (_, response) => response.writeHead(503).end("busy");
    expect((await chat(url, { prompt_cache_key: key })).status).toBe(503);
    expect(router.snapshot().heldOff).toEqual([bad.url]);
    expect((await router.metrics()).text).toContain(
      'plimsoll_upstream_refusals_total{reason="503"} 1',
    );
    expect((await chat(url, { prompt_cache_key: key })).status).toBe(200);
  });

  test("what is no HTTP counts as a bad answer", async () => {
    const { bad, url, key, router } = await pair();
    bad.behave = ({ socket }) => socket.end("\u0000\u0001 this is no HTTP\r\n\r\n");
    expect((await chat(url, { prompt_cache_key: key })).status).toBe(200);
    expect((await router.metrics()).text).toContain(
      'plimsoll_upstream_refusals_total{reason="bad-answer"} 1',
    );
  });

  test("who has to wait for endpoints that are held off is told so", async () => {
    const engine = await harness.engine();
    engine.behave = (_, response) => response.writeHead(503).end("busy");
    const { url } = await harness.router({
      endpoints: [{ url: engine.url, models: "m" }],
      retry: { attempts: 1, holdOff: "10s", longestHoldOff: "10s" },
      flow: { mode: "shed" },
    });
    await chat(url);
    const { status, headers } = await chat(url);
    expect(status).toBe(429);
    expect(headers["x-plimsoll-gate"]).toMatch(/^resource=held-off; value=\d+(\.\d+)?; limit=0$/);
  });

  test("a request whose body was not kept is not sent twice", async () => {
    const { bad, good, url } = await pair({ retry: { keepBodyBytes: 100, holdOff: "20ms" } });
    for (const one of [bad, good]) one.behave = reset;
    const body = "x".repeat(10_000);
    const answer = await send(url, { method: "POST", path: "/", body });
    expect([answer.status, answer.headers["x-plimsoll-reason"]]).toEqual([
      502,
      "upstream-unreachable",
    ]);
    expect(bad.seen.length + good.seen.length).toBe(1);
    for (const one of [bad, good]) {
      one.behave = (_, response) => response.writeHead(503).end("busy");
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
    const busy = await send(url, { method: "POST", path: "/", body });
    expect([busy.status, busy.body.toString()]).toEqual([503, "busy"]);
  });

  test("a long body goes to another endpoint while none of it was sent", async () => {
    const { bad, good, url } = await pair({
      retry: { keepBodyBytes: 100, holdOff: "20ms" },
    });
    await bad.close();
    const body = "x".repeat(100_000);
    for (let i = 0; i < 6; i++) {
      const answer = await send(url, { method: "POST", path: "/", body });
      expect(JSON.parse(answer.body.toString())).toMatchObject({ bytes: body.length });
    }
    expect(good.seen.length).toBe(6);
  });
});

describe("an endpoint that has begun to answer", () => {
  const begin: Behaviour = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(eventOf("half"));
  };

  test.each<[string, Behaviour]>([
    ["resets", ({ socket }) => socket.resetAndDestroy()],
    ["closes", ({ socket }) => socket.destroy()],
    ["half-closes", ({ socket }) => socket.end()],
    ["sends garbage for a chunk", ({ socket }) => socket.write("zz\r\nno chunk\r\n")],
  ])("%s: the client sees that the answer is cut, and nobody is asked again", async (_, end) => {
    const { bad, good, url } = await pair();
    for (const one of [bad, good]) {
      one.behave = async (request, response, body) => {
        begin(request, response, body);
        await new Promise((resolve) => setTimeout(resolve, 20));
        end(request, response, body);
      };
    }
    const answer = await chat(url, { stream: true });
    expect(answer).toMatchObject({ status: 200, isWhole: false });
    expect(answer.body.toString()).toBe(eventOf("half"));
    expect(bad.seen.length + good.seen.length).toBe(1);
  });

  test("sends less than it said: the client sees that the answer is cut", async () => {
    const engine = await harness.engine();
    engine.behave = (_, response) => {
      response.writeHead(200, { "content-length": 100 });
      response.write("less");
      setTimeout(() => response.socket?.end(), 20);
    };
    const { url } = await harness.router({ endpoints: [engine.url] });
    expect(await send(url)).toMatchObject({ status: 200, isWhole: false });
  });

  test("ends by closing where it has said so: that is the end", async () => {
    const engine = await harness.engine();
    engine.behave = ({ socket }) =>
      socket.end("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it");
    const { url } = await harness.router({ endpoints: [engine.url] });
    const answer = await send(url);
    expect([answer.body.toString(), answer.isWhole]).toEqual(["all of it", true]);
  });

  test("answers before it has read the whole body: the answer arrives", async () => {
    const engine = await harness.engine();
    engine.beforeBody = (_, response) => {
      response.writeHead(413).end("too much");
      return true;
    };
    const { url } = await harness.router({
      endpoints: [engine.url],
      retry: { keepBodyBytes: 100 },
    });
    const body = Buffer.alloc(200_000, "x");
    const answer = await send(url, { method: "POST", path: "/", body });
    expect([answer.status, answer.body.toString()]).toEqual([413, "too much"]);
  });
});

describe("an endpoint that hangs", () => {
  test("before its headers: 504 after the time for an answer, and nobody else is asked", async () => {
    const { bad, good, url } = await pair({ timeouts: { answer: "100ms" } });
    for (const one of [bad, good]) one.behave = () => undefined;
    const answer = await chat(url);
    expect([answer.status, answer.headers["x-plimsoll-reason"]]).toEqual([504, "upstream-silent"]);
    expect(bad.seen.length + good.seen.length).toBe(1);
    await until(() => bad.open.size + good.open.size === 0, "the endpoint is told");
  });

  test("within its answer: the client is cut off after the time between two parts", async () => {
    const engine = await harness.engine();
    engine.behave = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(eventOf("half"));
    };
    const { url } = await harness.router({ endpoints: [engine.url], timeouts: { idle: "100ms" } });
    expect(await chat(url, { stream: true })).toMatchObject({ status: 200, isWhole: false });
    await until(() => engine.open.size === 0, "the endpoint is told");
  });

  test("for longer than a request may take as a whole: 504, or cut once it has begun", async () => {
    const engine = await harness.engine();
    engine.behave = () => undefined;
    const { url } = await harness.router({ endpoints: [engine.url], timeouts: { total: "100ms" } });
    const answer = await chat(url);
    expect([answer.status, answer.headers["x-plimsoll-reason"]]).toEqual([504, "timed-out"]);
    engine.behave = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const timer = setInterval(() => response.write(eventOf("more")), 5);
      response.on("close", () => clearInterval(timer));
    };
    expect(await chat(url, { stream: true })).toMatchObject({ status: 200, isWhole: false });
    engine.waiting = 50;
    await until(() => engine.open.size === 0, "the endpoint is told");
  });
});

describe("a client that goes away", () => {
  /** A client that stops as soon as `when` holds. */
  async function leave(url: string, text: string, when: () => boolean): Promise<void> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.on("error", () => undefined); // it is the one who hangs up
    socket.write(text);
    socket.resume();
    await until(when, "the stage is reached");
    socket.destroy();
  }
  const post = (body: string, length = body.length) =>
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`;

  test("within its headers", async () => {
    const engine = await harness.engine();
    const { url, router } = await harness.router({ endpoints: [engine.url] });
    let looks = 0;
    await leave(url, "POST / HTTP/1.1\r\nhost: x\r\nx-a: ", () => ++looks > 5);
    expect(router.snapshot().live).toBe(0);
  });

  test("within a body that is kept", async () => {
    const engine = await harness.engine();
    const { url, router } = await harness.router({ endpoints: [engine.url] });
    await leave(url, post("{", 1000), () => router.snapshot().live === 1);
    await until(() => router.snapshot().live === 0, "it has ended");
    expect(engine.seen.length + engine.open.size).toBe(0);
  });

  test("within a body that is passed on", async () => {
    const engine = await harness.engine();
    const { url, router } = await harness.router({
      endpoints: [engine.url],
      retry: { keepBodyBytes: 10 },
    });
    await leave(url, post("x".repeat(100), 1000), () => engine.open.size === 1);
    await until(() => router.snapshot().live === 0, "it has ended");
    await until(() => engine.open.size === 0, "the endpoint is told");
    expect(router.snapshot().heldOff).toEqual([]);
  });

  test("while it waits", async () => {
    const engine = await harness.engine();
    engine.waiting = 50;
    const { url, router } = await harness.router({ endpoints: [engine.url] });
    await leave(url, post("{}"), () => router.snapshot().gates[0]?.waiting === 1);
    await until(() => router.snapshot().gates[0]?.waiting === 0, "it waits no more");
    expect(engine.seen.length).toBe(0);
  });

  test("before the answer's headers", async () => {
    const engine = await harness.engine();
    engine.behave = () => undefined;
    const { url, router } = await harness.router({ endpoints: [engine.url] });
    await leave(url, post("{}"), () => engine.seen.length === 1);
    await until(() => engine.open.size === 0, "the endpoint is told");
    expect(router.snapshot().heldOff).toEqual([]);
  });

  test("between two tries", async () => {
    const engine = await harness.engine();
    engine.behave = (_, response) => response.writeHead(503).end("busy");
    const { url, router } = await harness.router({
      endpoints: [engine.url],
      retry: { holdOff: "10s", longestHoldOff: "10s" },
    });
    const waits = () => engine.seen.length === 1 && router.snapshot().gates[0]?.waiting === 1;
    await leave(url, post("{}"), waits);
    await until(() => router.snapshot().live === 0, "it has ended");
  });

  test("within a stream, and the lease is free at once", async () => {
    const engine = await harness.engine();
    engine.behave = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(eventOf("half"));
    };
    const { url, router } = await harness.router({ endpoints: [engine.url] });
    const started = () => {
      const [endpoint] = router.pool.snapshot().endpoints;
      return endpoint?.leases === 1 && endpoint.unstartedLeases === 0;
    };
    await leave(url, post("{}"), started);
    await until(() => engine.open.size === 0, "the endpoint is told");
  });

  test("while it does not read: it is cut off after a time", async () => {
    const engine = await harness.engine();
    engine.behave = (_, response) => {
      response.writeHead(200, { "content-type": "application/octet-stream" });
      response.write(Buffer.alloc(64 * 2 ** 20));
    };
    const { url, router } = await harness.router({
      endpoints: [engine.url],
      timeouts: { clientStall: "100ms" },
    });
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.on("error", () => undefined); // it is cut off
    socket.write(post("{}"));
    await until(() => engine.seen.length === 1, "it was sent");
    await until(() => router.snapshot().live === 0, "it was cut off");
    await until(() => engine.open.size === 0, "the endpoint is told");
    socket.destroy();
  });
});

describe("a whole fleet", () => {
  test("of which all are down, and then back: what waited is served", async () => {
    let engine = await harness.engine();
    const { url, router } = await harness.router({
      endpoints: [engine.url],
      interval: "20ms",
      timeout: "50ms",
      metricsStalenessThreshold: "100ms",
    });
    const { port } = engine;
    await engine.close();
    await until(() => router.pool.evaluate().fresh === 0, "it is known to be down");
    const answers = Array.from({ length: 20 }, () => chat(url));
    await until(() => router.snapshot().gates[0]?.waiting === 20, "all wait");
    engine = harness.keep(await startEngine("back", port));
    for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
  });

  test("that answers 429 to everything: each client gets one answer", async () => {
    const engines = await Promise.all(["a", "b", "c"].map((name) => harness.engine(name)));
    const { url, router } = await harness.router({
      endpoints: engines.map((one) => one.url),
      flow: { ttl: "2s" },
    });
    let isStorm = true;
    for (const one of engines) {
      const { behave } = one;
      one.behave = (request, response, body) =>
        isStorm ? response.writeHead(429).end("busy") : behave(request, response, body);
    }
    const storm = await Promise.all(Array.from({ length: 100 }, () => chat(url)));
    expect(new Set(storm.map(({ status }) => status))).toEqual(new Set([429]));
    isStorm = false;
    await until(() => router.snapshot().heldOff.length === 0, "the storm is over");
    expect((await chat(url)).status).toBe(200);
  });

  test("behind two routers: both serve, and neither knows of the other", async () => {
    const engines = await Promise.all(["a", "b", "c"].map((name) => harness.engine(name)));
    const endpoints = engines.map((one) => one.url);
    const routers = [await harness.router({ endpoints }), await harness.router({ endpoints })];
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        chat(routers[i % 2]?.url ?? "", { stream: i % 3 === 0 }),
      ),
    );
    for (const { status, isWhole } of answers) expect([status, isWhole]).toEqual([200, true]);
    for (const { seen } of engines) expect(seen.length).toBeGreaterThan(0);
  });
});
