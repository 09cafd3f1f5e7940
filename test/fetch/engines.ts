// Loopback engines that speak the OpenAI API, well or badly on cue, and a pool of them.

import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:net";
import { afterEach } from "vitest";
import { EndpointPool } from "../../src/index";
import { type Endpoint, serve, serveRaw } from "../telemetry/servers";

/** What an engine was asked, as it came. */
export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** An engine and what it was asked. */
export interface Engine extends Endpoint {
  readonly requests: Asked[];
  /** Connections that broke before their answer was whole. */
  readonly broken: number[];
}

/** Answers one request whose body has come. */
export type Answer = (asked: Asked, response: ServerResponse) => void;

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

/** An engine that lives until the end of the test. */
export async function startEngine(answer: Answer = answerChat): Promise<Engine> {
  const requests: Asked[] = [];
  const broken: number[] = [];
  const endpoint = await serve(async (request, response) => {
    response.on("close", () => {
      if (!response.writableFinished) broken.push(broken.length);
    });
    const body = await readAll(request);
    const { method = "", url = "", headers } = request;
    const asked = { method, url, headers, body };
    requests.push(asked);
    answer(asked, response);
  });
  open.push(endpoint);
  return Object.assign(endpoint, { requests, broken });
}

/** A server that hangs up on every request, with what it wrote before. */
export async function startBroken(before = ""): Promise<Endpoint> {
  const endpoint = await serveRaw((socket) => socket.end(before));
  open.push(endpoint);
  return endpoint;
}

/** An address at which nobody listens. */
export async function deadUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

/** A pool of idle endpoints that stay fresh; the first ones are picked first. */
export function poolOf(...urls: string[]): EndpointPool {
  const pool = new EndpointPool({ metricsStalenessThreshold: "1h" });
  urls.forEach((url, i) => {
    pool.add(url);
    pool.report(url, { waitingQueueSize: i, kvCacheUsagePercent: 0.1, runningRequests: 9 * i });
  });
  return pool;
}

/** Leases that have not ended. */
export function leasesOf(pool: EndpointPool): number {
  return pool.snapshot().endpoints.reduce((sum, { leases }) => sum + leases, 0);
}

/** Leases of which no byte was seen. */
export function unstartedOf(pool: EndpointPool): number {
  return pool.snapshot().endpoints.reduce((sum, { unstartedLeases }) => sum + unstartedLeases, 0);
}

/** Answers JSON. */
export function sendJSON(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

/** The head of a streamed answer, and nothing of its body. */
export function beginStream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
}

/** One event of a streamed answer. */
export function sendEvent(response: ServerResponse, delta: unknown, finish: string | null): void {
  const chunk = {
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: finish }],
  };
  response.write(`data: ${JSON.stringify(chunk)}\n\n`);
}

const CALL = { name: "weather", arguments: '{"city":"Kiel"}' };

/** Answers a chat: streamed or not; with a tool call when tools were offered and none was used. */
export function answerChat(asked: Asked, response: ServerResponse): void {
  const { stream, tools, messages } = JSON.parse(asked.body || "{}");
  const roles: string[] = (messages ?? []).map(({ role }: { role: string }) => role);
  const callsTool = tools !== undefined && !roles.includes("tool");
  if (stream !== true) {
    const message = callsTool
      ? { content: null, tool_calls: [{ id: "t1", type: "function", function: CALL }] }
      : { content: "Hello back" };
    sendJSON(response, {
      id: "c",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [
        {
          index: 0,
          message: { role: "assistant", ...message },
          finish_reason: callsTool ? "tool_calls" : "stop",
        },
      ],
      usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
    });
    return;
  }
  beginStream(response);
  if (callsTool) {
    const whole = { index: 0, id: "t1", type: "function", function: { ...CALL, arguments: "" } };
    sendEvent(response, { role: "assistant", content: null, tool_calls: [whole] }, null);
    for (const piece of ['{"city":', '"Kiel"}']) {
      sendEvent(response, { tool_calls: [{ index: 0, function: { arguments: piece } }] }, null);
    }
    sendEvent(response, {}, "tool_calls");
  } else {
    sendEvent(response, { role: "assistant", content: "Hello" }, null);
    sendEvent(response, { content: " back" }, null);
    sendEvent(response, {}, "stop");
  }
  response.end("data: [DONE]\n\n");
}

async function readAll(request: IncomingMessage): Promise<string> {
  let text = "";
  request.setEncoding("utf8");
  for await (const chunk of request) text += chunk;
  return text;
}
