// Loopback engines that serve or misbehave on cue, and a router in front of them.

import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, expect } from "vitest";
import type { RouterConfig } from "../../src/router/options";
import { createRouter, type Router, type RouterOptions } from "../../src/router/router";
import { until } from "../telemetry/servers";

/** A request as an engine has seen it. */
export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

/** What an engine does with a request whose body it has read. */
export type Behaviour = (
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
) => unknown;

/** An engine. */
export interface Engine {
  readonly url: string;
  readonly port: number;
  /** Requests whose body has arrived, those for metrics not among them. */
  readonly seen: Seen[];
  /** Requests that it has not answered, and whose client is still there. */
  readonly open: Set<ServerResponse>;
  /** Requests that its metrics say wait. */
  waiting: number;
  behave: Behaviour;
  /** Sees a request before its body was read; true: it has dealt with it. */
  beforeBody: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  sockets: Set<Socket>;
  close(): Promise<void>;
}

/** Answers as an engine with this name: a stream of three tokens, or one JSON value. */
export function answerAs(name: string): Behaviour {
  return (request, response, body) => {
    if (/"stream":\s*true/.test(body.toString())) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const content of [name, "-", "end"]) response.write(eventOf(content));
      response.end("data: [DONE]\n\n");
      return;
    }
    const text = JSON.stringify({
      ...{ id: name, object: "chat.completion", method: request.method, path: request.url },
      choices: [{ index: 0, message: { role: "assistant", content: name }, finish_reason: "stop" }],
      bytes: body.length,
    });
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
    });
    response.end(text);
  };
}

/** A chunk of a streamed chat completion. */
export function eventOf(content: string): string {
  const choices = [{ index: 0, delta: { content } }];
  return `data: ${JSON.stringify({ object: "chat.completion.chunk", choices })}\n\n`;
}

/** Starts an engine. */
export async function startEngine(name = "engine", port = 0, host = "127.0.0.1"): Promise<Engine> {
  const seen: Seen[] = [];
  const open = new Set<ServerResponse>();
  const sockets = new Set<Socket>();
  const listener: RequestListener = async (request, response) => {
    if (request.url?.startsWith("/metrics")) {
      response.end(
        `vllm:num_requests_waiting ${engine.waiting}\n` +
          `vllm:num_requests_running ${open.size}\nvllm:kv_cache_usage_perc 0.1\n`,
      );
      return;
    }
    open.add(response);
    response.on("close", () => open.delete(response));
    if (engine.beforeBody?.(request, response) === true) return;
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      return; // the router has given the request up
    }
    const body = Buffer.concat(chunks);
    const { method = "", url = "", headers, rawHeaders } = request;
    seen.push({ method, url, headers, rawHeaders, body });
    await engine.behave(request, response, body);
  };
  const server = createServer({ keepAliveTimeout: 30_000 }, listener);
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined); // a router that hangs up is what some tests are about
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, host, () => resolve());
  });
  const { port: bound } = server.address() as AddressInfo;
  const engine: Engine = {
    ...{
      url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
      port: bound,
      seen,
      open,
      sockets,
      waiting: 0,
    },
    behave: answerAs(name),
    beforeBody: undefined,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return engine;
}

/** A configuration that is quick enough for tests. */
export const QUICK: RouterConfig = {
  interval: "20ms",
  metricsStalenessThreshold: "5s",
  listen: { host: "127.0.0.1", port: 0 },
  admin: false,
  retry: { holdOff: "50ms", longestHoldOff: "200ms" },
};

/** What one test file starts; closed again after each test. */
export interface RouterHarness {
  keep<T extends { close(): Promise<void> }>(one: T): T;
  engine(name?: string): Promise<Engine>;
  /** A started router that knows the load of all its endpoints. */
  router(config: RouterConfig, options?: RouterOptions): Promise<{ router: Router; url: string }>;
}

/** Sets a test file up. After each test, no request and no lease is left. */
export function useRouters(): RouterHarness {
  const open: { close(): Promise<void> }[] = [];
  const routers: Router[] = [];
  afterEach(async () => {
    for (const router of routers.splice(0)) await expectNothingLeft(router);
    for (const one of open.splice(0).reverse()) await one.close();
  });
  const keep = <T extends { close(): Promise<void> }>(one: T): T => {
    open.push(one);
    return one;
  };
  return {
    keep,
    engine: async (name) => keep(await startEngine(name)),
    router: async (config, options) => {
      const router = keep(createRouter({ ...QUICK, ...config }, options));
      routers.push(router);
      const { traffic } = await router.start();
      await until(() => router.pool.evaluate().fresh === router.pool.size, "all are read");
      return { router, url: traffic };
    },
  };
}

/** Every request has ended, and everything was given back. */
export async function expectNothingLeft(router: Router): Promise<void> {
  await until(() => router.snapshot().live === 0, "no request is left");
  const { pool, keptBytes } = router.snapshot();
  expect(pool.endpoints.map(({ leases }) => leases)).toEqual(pool.endpoints.map(() => 0));
  expect(keptBytes).toBe(0);
}

/** A raw answer: its status, its headers, and its body as far as it came. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** False when the connection ended before the answer did. */
  readonly isWhole: boolean;
}

/** Sends a request as it is given, and waits for the end of the answer. */
export function send(
  url: string,
  options: {
    method?: string;
    path?: string;
    headers?: Record<string, string | string[]>;
    body?: string | Buffer;
  } = {},
): Promise<RawAnswer> {
  const { method = "GET", path = "/v1/models", headers = {}, body } = options;
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const request = httpRequest({ hostname, port, method, path, headers, agent: false });
    request.on("error", reject);
    request.on("response", (response) => {
      const chunks: Buffer[] = [];
      const settle = () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          rawHeaders: response.rawHeaders,
          body: Buffer.concat(chunks),
          isWhole: response.complete,
        });
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("error", settle).on("end", settle);
    });
    request.end(body);
  });
}

/** Asks for a chat completion. */
export function chat(
  url: string,
  more: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  return send(url, {
    method: "POST",
    path: "/v1/chat/completions",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hello" }], ...more }),
  });
}

/** Sends bytes as they are; resolves to all that came back when the connection has ended. */
export function sendRaw(url: string, text: string, more?: (write: (text: string) => void) => void) {
  const { hostname, port } = new URL(url);
  return new Promise<string>((resolve) => {
    let answer = "";
    const socket = connect(Number(port), hostname);
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", () => undefined); // being cut off is an answer too
    socket.on("close", () => resolve(answer));
    socket.write(text);
    more?.((next) => socket.write(next));
  });
}
