// Loopback endpoints that answer well or badly on cue.

import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from "node:net";

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

/** Resolves once `check` holds; fails after two seconds. */
export async function until(check: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 2000;
  while (!check()) {
    if (performance.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** What a request asks for. */
export function queryOf(request: IncomingMessage): URLSearchParams {
  return new URL(request.url ?? "", "http://x").searchParams;
}
