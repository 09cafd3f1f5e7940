// Loopback endpoints that answer well or badly on cue.

import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from "node:net";
import { afterEach } from "vitest";
import { EndpointPool } from "../../src/index";
import type { EndpointSnapshot } from "../../src/snapshot";
import { type Scraper, type ScraperOptions, startScraper } from "../../src/telemetry/scraper";
import type { TargetOptions } from "../../src/telemetry/targets";

/** A server and how to be rid of it. */
export interface Endpoint {
  readonly url: string;
  readonly port: number;
  /** Requests so far, their path and query. */
  readonly asked: string[];
  close(): Promise<void>;
}

/** A page as vLLM prints it. */
export function pageOf(waiting: number, kv: number | null = 0.25): string {
  const usage = kv === null ? "" : `vllm:kv_cache_usage_perc{engine="0"} ${kv}\n`;
  return `vllm:num_requests_waiting{engine="0"} ${waiting}\nvllm:num_requests_running{engine="0"} 1\n${usage}`;
}

/** A real HTTP server on a free port. */
export async function serve(
  listener: RequestListener,
  host = "127.0.0.1",
  port = 0,
): Promise<Endpoint> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    listener(request, response);
  });
  await listen(server, host, port);
  return endpointOf(server, asked, host, () => server.closeAllConnections());
}

/** A server that writes raw bytes, for answers that no HTTP server would give. */
export async function serveRaw(answer: (socket: Socket) => void): Promise<Endpoint> {
  const sockets = new Set<Socket>();
  const asked: string[] = [];
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined); // the client hangs up on what it refuses
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", () => {
      asked.push("raw");
      answer(socket);
    });
  });
  await listen(server, "127.0.0.1", 0);
  return endpointOf(server, asked, "127.0.0.1", () => {
    for (const socket of sockets) socket.destroy();
  });
}

function listen(server: Server | TcpServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => resolve());
  });
}

function endpointOf(
  server: Server | TcpServer,
  asked: string[],
  host: string,
  hangUp: () => void,
): Endpoint {
  const { port } = server.address() as AddressInfo;
  const name = host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${name}:${port}`,
    port,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        hangUp();
      }),
  };
}

/** Resolves once `check` holds; fails after ten seconds. */
export async function until(check: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 10_000;
  while (!check()) {
    if (performance.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** What a request asks for. */
export function queryOf(request: IncomingMessage): URLSearchParams {
  return new URL(request.url ?? "", "http://x").searchParams;
}

/** What one test file starts: servers and scrapers, closed again after each test. */
export interface Harness {
  keep<T extends { close(): Promise<void> }>(one: T): T;
  /** A scraper that is quick enough for a test: every 5 ms, 400 ms per reading. */
  scrape(
    targets: (string | TargetOptions)[],
    options?: ScraperOptions,
    pool?: EndpointPool,
  ): { readonly pool: EndpointPool; readonly scraper: Scraper };
  /** An endpoint that always answers well. */
  good(waiting?: number): Promise<Endpoint>;
}

/** Sets a test file up. */
export function useHarness(): Harness {
  const open: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close();
  });
  const keep = <T extends { close(): Promise<void> }>(one: T): T => {
    open.push(one);
    return one;
  };
  return {
    keep,
    scrape: (targets, options, pool = new EndpointPool()) => {
      const quick = { interval: 5, timeout: 400, ...options };
      return { pool, scraper: keep(startScraper(pool, targets, quick)) };
    },
    good: async (waiting = 2) => keep(await serve((_, response) => response.end(pageOf(waiting)))),
  };
}

/** What the pool knows of an endpoint. */
export function stateOf(pool: EndpointPool, id: string): EndpointSnapshot | undefined {
  return pool.snapshot().endpoints.find((endpoint) => endpoint.id === id);
}
