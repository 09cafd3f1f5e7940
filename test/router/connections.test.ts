// Clients that send several requests at once, nonsense, or more than is wanted, on connections as they are.

import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { until } from "../telemetry/servers";
import { type Behaviour, chat, eventOf, send, sendRaw, useRouters } from "./engines";

const harness = useRouters();

/** A client that says what it has heard so far. */
function open(url: string) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const client = { socket, heard: "", isClosed: false };
  socket.on("data", (chunk) => {
    client.heard += chunk;
  });
  socket.on("error", () => undefined); // being cut off is what some tests are about
  socket.on("close", () => {
    client.isClosed = true;
  });
  return client;
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;

describe("several requests that are sent at once", () => {
  test("are served one after another, in their order", async () => {
    const engine = await harness.engine();
    const { behave } = engine;
    let most = 0;
    engine.behave = (request, response, body) => {
      most = Math.max(most, engine.open.size);
      setTimeout(() => behave(request, response, body), 5);
    };
    const { url } = await harness.router({ endpoints: [engine.url] });
    const { socket } = open(url);
    socket.write(["/1", "/2", "/3", "/4"].map(get).join(""));
    await until(() => engine.seen.length === 4, "all were sent");
    expect(engine.seen.map((one) => one.url)).toEqual(["/1", "/2", "/3", "/4"]);
    expect(most).toBe(1);
    socket.destroy();
  });

  test("end with their client, those that have not begun too", async () => {
    const engine = await harness.engine();
    engine.behave = () => undefined;
    const { url, router } = await harness.router({ endpoints: [engine.url] });
    const { socket } = open(url);
    socket.write(get("/1") + get("/2") + get("/3"));
    await until(() => engine.seen.length === 1, "the first was sent");
    expect(router.snapshot().live).toBe(1);
    socket.destroy();
    await until(() => engine.open.size === 0, "the endpoint is told");
    await until(() => router.snapshot().live === 0, "nothing is left");
    expect(engine.seen.length).toBe(1);
  });

  test("may not be many", async () => {
    const engine = await harness.engine();
    engine.behave = () => undefined;
    const { url, router } = await harness.router({ endpoints: [engine.url] });
    const client = open(url);
    client.socket.write(get("/").repeat(1000));
    await until(() => client.isClosed, "it is cut off");
    await until(() => router.snapshot().live === 0, "nothing is left");
  });
});

describe("what is no request", () => {
  test("is answered in the form of all errors, and counted", async () => {
    const engine = await harness.engine();
    const { url, router } = await harness.router({ endpoints: [engine.url] });
    const answer = await sendRaw(url, "HELLO\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toContain("x-plimsoll-reason: bad-request\r\n");
    expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).toMatchObject({
      error: { type: "invalid_request_error", code: "bad-request" },
    });
    const { text } = await router.metrics();
    expect(text).toContain('plimsoll_requests_total{outcome="bad-request"} 1');
  });

  const slow: Behaviour = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    let left = 10;
    const timer = setInterval(() => {
      response.write(eventOf(`part ${left}`));
      if (--left > 0) return;
      clearInterval(timer);
      response.end();
    }, 10);
  };

  test("does not get into the answer that is under way, which ends as it should", async () => {
    const engine = await harness.engine();
    engine.behave = slow;
    const { url } = await harness.router({ endpoints: [engine.url] });
    const client = open(url);
    client.socket.write(get("/"));
    await until(() => client.heard.includes("part 10"), "it has begun");
    for (let i = 0; i < 5; i++) client.socket.write("nonsense\r\n\r\n");
    await until(() => client.isClosed, "it ends");
    expect(client.heard.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(client.heard).toContain('part 1"');
    expect(client.heard).toMatch(/\r\n0\r\n\r\n$/);
  });

  test("in the place of a chunk is answered with 400, and counted once", async () => {
    const engine = await harness.engine();
    const { url, router } = await harness.router({ endpoints: [engine.url] });
    const head = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    const answer = await sendRaw(url, head, (write) => setTimeout(write, 20, "zz\r\nno chunk"));
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain("x-plimsoll-reason: bad-request");
    await until(() => router.snapshot().live === 0, "it has ended");
    const { text } = await router.metrics();
    expect(text).toContain('plimsoll_requests_total{outcome="bad-request"} 1');
    expect(engine.seen.length).toBe(0);
  });

  test("has a coding of which nothing is known: 501", async () => {
    const engine = await harness.engine();
    const { url } = await harness.router({ endpoints: [engine.url] });
    const head = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n";
    const answer = await sendRaw(url, `${head}connection: close\r\n\r\n0\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 501 /);
    expect(engine.seen.length).toBe(0);
  });
});

describe("a client that still sends", () => {
  test("hears that its body is too large", async () => {
    const engine = await harness.engine();
    const { url } = await harness.router({
      endpoints: [engine.url],
      limits: { bodyBytes: 1000 },
    });
    for (let i = 0; i < 5; i++) {
      const body = Buffer.alloc(30 * 2 ** 20);
      const answer = await send(url, { method: "POST", path: "/", body });
      expect([answer.status, answer.headers["x-plimsoll-reason"]]).toEqual([413, "body-too-large"]);
      expect(JSON.parse(answer.body.toString()).error.code).toBe("body-too-large");
    }
    expect(engine.seen.length).toBe(0);
  });

  test("hears that it is too slow, in the form of all errors", async () => {
    const engine = await harness.engine();
    const { url, router } = await harness.router({
      endpoints: [engine.url],
      timeouts: { requestHeaders: "100ms", request: "200ms" },
    });
    const head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nx";
    const answer = await sendRaw(url, head);
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer).toContain("x-plimsoll-reason: request-timeout");
    const { text } = await router.metrics();
    expect(text).toContain('plimsoll_requests_total{outcome="request-timeout"} 1');
  });

  test("hears that the router stops", async () => {
    const engine = await harness.engine();
    const { url, router } = await harness.router({ endpoints: [engine.url] });
    const head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nx";
    const answer = sendRaw(url, head);
    await until(() => router.snapshot().live === 1, "it has begun");
    await router.close({ drain: "30ms" });
    expect(await answer).toMatch(/^HTTP\/1\.1 503 .*x-plimsoll-reason: shutting-down/s);
  });

  test("of a body that is passed on hears what the endpoint has to say before its end", async () => {
    const engine = await harness.engine();
    engine.beforeBody = (_, response) => {
      response.writeHead(401).end("who are you");
      return true;
    };
    const { url } = await harness.router({
      endpoints: [engine.url],
      retry: { keepBodyBytes: 100 },
    });
    for (let i = 0; i < 5; i++) {
      const body = Buffer.alloc(30 * 2 ** 20);
      const answer = await send(url, { method: "POST", path: "/", body });
      expect([answer.status, answer.body.toString()]).toEqual([401, "who are you"]);
    }
    expect((await chat(url)).status).toBe(401);
  });
});
