// docs/recipes/nginx.conf, run by Debian's nginx in front of a router.

import { readFile } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { becomes, freePort, recipe, useProcesses } from "../docs/processes";
import { chat, eventOf, send } from "../router/engines";
import { until } from "../telemetry/servers";

const processes = useProcesses();

/** An engine, a router with this config, and nginx in front of it. */
async function stack(config: object = {}) {
  const engine = await processes.engine("a");
  const value = {
    endpoints: [engine.url],
    headers: { priority: "x-priority", tenant: "x-tenant" },
    interval: "20ms",
    metricsStalenessThreshold: "5s",
    ...config,
  };
  const path = processes.write("plimsoll.yaml", JSON.stringify(value));
  const local = ["--host", "127.0.0.1", "--port", "0", "--admin-port", "0"];
  const router = await processes.serve(["--config", path, ...local]);
  const port = await freePort();
  const text = recipe("nginx.conf")
    .replace("127.0.0.1:8080", new URL(router.url).host)
    .replace("listen 8000", `listen 127.0.0.1:${port}`);
  const prefix = processes.folder();
  const conf = processes.write("nginx.conf", text);
  const nginx = processes.run("nginx", ["-p", prefix, "-c", conf, "-g", "daemon off;"]);
  const url = `http://127.0.0.1:${port}`;
  const asked = () =>
    fetch(`${url}/v1/models`).then(
      (response) => response.text().then(() => response.ok),
      () => false, // nginx opens its port in a moment
    );
  await becomes(async () => nginx.seen.code !== undefined || (await asked()), "nginx answers");
  expect(nginx.seen.code, nginx.seen.err).toBeUndefined();
  engine.seen.length = 0;
  return { engine, router, url };
}

/** A streamed request, and the response once its head has come. */
function stream(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const path = "/v1/chat/completions";
    const request = httpRequest({ hostname, port, path, method: "POST" }, resolve);
    request.on("error", reject);
    request.end('{"model":"m","stream":true}');
  });
}

test("tokens of a stream go on as they come", async () => {
  const { engine, url } = await stack();
  let say: (text: string) => void = () => undefined;
  engine.behave = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    say = (text) => (text === "" ? response.end() : response.write(eventOf(text)));
  };
  const response = await stream(url);
  let got = "";
  response.on("data", (chunk) => {
    got += chunk;
  });
  for (const token of ["one", "two", "three"]) {
    say(token);
    // The engine says nothing more until this one has arrived.
    await until(() => got.endsWith(eventOf(token)), `${token} has come`);
  }
  say("");
  await until(() => response.complete, "it has ended");
  expect(got).toBe(["one", "two", "three"].map(eventOf).join(""));
});

test("many requests share few connections", async () => {
  const { url, router } = await stack();
  for (let i = 0; i < 30; i++) expect((await chat(url)).status).toBe(200);
  const { body } = await send(router.admin, { path: "/metrics" });
  expect(body.toString()).toMatch(/plimsoll_requests_total\{outcome="answered"\} 3\d/);
  // What nginx holds open to the router is what it uses again: one per worker at the most. Without keepalive,
  // none would be left.
  const held = await connectionsTo(new URL(router.url).port);
  expect(held.length).toBeGreaterThan(0);
  expect(held.length).toBeLessThan(10);
});

/** Local ports of established connections to a port, as Linux tells them. */
async function connectionsTo(port: string): Promise<string[]> {
  const hex = Number(port).toString(16).toUpperCase().padStart(4, "0");
  const lines = (await readFile("/proc/net/tcp", "utf8")).trim().split("\n").slice(1);
  return lines.flatMap((line) => {
    const [, local = "", remote = "", state] = line.trim().split(/\s+/);
    return remote === `0100007F:${hex}` && state === "01" ? [local] : [];
  });
}

test("the router's 429 arrives whole, with Retry-After and reason", async () => {
  const { engine, url } = await stack({ flow: { mode: "shed" }, queueDepthThreshold: 1 });
  engine.waiting = 50;
  await sleep(200);
  const refused = await chat(url);
  expect(refused.status).toBe(429);
  expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  expect(refused.headers["x-plimsoll-reason"]).toBe("saturated");
  expect(JSON.parse(refused.body.toString()).error.code).toBeDefined();
});

test("a client that hangs up is seen by the engine, and its lease ends", async () => {
  const { engine, url, router } = await stack();
  engine.behave = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(eventOf("begun"));
  };
  const response = await stream(url);
  await until(() => engine.open.size === 1, "it is served");
  response.destroy();
  await until(() => engine.open.size === 0, "the engine has seen it");
  const pool = JSON.parse((await send(router.admin, { path: "/pool" })).body.toString());
  expect(pool.pool.endpoints[0].leases).toBe(0);
});

test("who somebody is, a client cannot say itself", async () => {
  const { engine, url } = await stack();
  await chat(url, {}, { "x-priority": "high", "x-tenant": "somebody-else" });
  expect(engine.seen[0]?.headers).not.toHaveProperty("x-priority");
  expect(engine.seen[0]?.headers).not.toHaveProperty("x-tenant");
});

test("a body of some megabytes goes through", async () => {
  const { engine, url } = await stack();
  const answer = await chat(url, { picture: "x".repeat(5_000_000) });
  expect(answer.status).toBe(200);
  expect(engine.seen[0]?.body.length).toBeGreaterThan(5_000_000);
});
