// Canned engines and a load generator on bare sockets, so cheap that the proxy between them is what is measured.

import type { AddressInfo } from "node:net";
import { connect, createServer, type Server, type Socket } from "node:net";

const HEAD_END = "\r\n\r\n";
const LAST_CHUNK = "0\r\n\r\n";
const PAGE =
  "vllm:num_requests_waiting 0\nvllm:num_requests_running 1\nvllm:kv_cache_usage_perc 0.1\n";
const PAGE_ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: ${PAGE.length}\r\n\r\n${PAGE}`;

/** A chat of about 1 KB. */
export const BODY = JSON.stringify({
  model: "m",
  stream: true,
  messages: [{ role: "user", content: "word ".repeat(200) }],
});
const REQUEST =
  "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n" +
  `content-length: ${BODY.length}\r\n\r\n${BODY}`;

const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const token = (i: number) =>
  `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"token ${i}"}}]}\n\n`;
const STREAM_HEAD = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n`;
const SHORT_STREAM = STREAM_HEAD + [0, 1, 2, 3].map((i) => chunk(token(i))).join("") + LAST_CHUNK;

/** How engines answer: four tokens at once, or one every so often until they are told to end. */
export interface EngineManner {
  tokenEveryMs: number | undefined;
  tokens: number;
}

/** Engines that answer every chat alike. Returns their addresses, and what ends them. */
export async function startEngines(
  n: number,
  manner: EngineManner,
): Promise<{ urls: string[]; close(): void }> {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const urls: string[] = [];
  for (let i = 0; i < n; i++) {
    const server = createServer({ noDelay: true }, (socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
      socket.on("error", () => socket.destroy()); // the proxy hangs up at the end
      readRequests(socket, (isPage) => answer(socket, isPage, manner));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    servers.push(server);
    urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  }
  return {
    urls,
    close: () => {
      for (const server of servers) server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function readRequests(socket: Socket, onRequest: (isPage: boolean) => void): void {
  let text = "";
  socket.setEncoding("latin1").on("data", (data) => {
    text += data;
    for (;;) {
      const head = text.indexOf(HEAD_END);
      if (head < 0) return;
      const isPage = text.startsWith("GET");
      const end = head + HEAD_END.length + (isPage ? 0 : BODY.length);
      if (text.length < end) return;
      text = text.slice(end);
      onRequest(isPage);
    }
  });
}

function answer(socket: Socket, isPage: boolean, { tokenEveryMs, tokens }: EngineManner): void {
  if (isPage) socket.write(PAGE_ANSWER);
  else if (tokenEveryMs === undefined) socket.write(SHORT_STREAM);
  else {
    socket.write(STREAM_HEAD + chunk(token(0)));
    let sent = 1;
    const timer = setInterval(() => {
      if (socket.destroyed) clearInterval(timer);
      else if (sent++ < tokens) socket.write(chunk(token(sent)));
      else {
        clearInterval(timer);
        socket.write(LAST_CHUNK);
      }
    }, tokenEveryMs);
  }
}

/** One connection that asks, and calls back when the answer is whole. */
class Client {
  readonly #socket: Socket;
  #onAnswer: ((isFine: boolean) => void) | undefined;
  #tail = "";
  #isFine = true;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true });
    this.#socket.setEncoding("latin1").on("data", (data: string) => this.#read(data));
    this.#socket.on("error", () => this.#socket.destroy());
    this.#socket.on("close", () => this.#settle(false));
  }

  ask(onAnswer: (isFine: boolean) => void): void {
    this.#onAnswer = onAnswer;
    this.#tail = "";
    this.#isFine = true;
    this.#socket.write(REQUEST);
  }

  close(): void {
    this.#onAnswer = undefined;
    this.#socket.destroy();
  }

  #read(data: string): void {
    if (this.#tail === "") this.#isFine = data.startsWith("HTTP/1.1 200");
    this.#tail = (this.#tail + data).slice(-LAST_CHUNK.length);
    // A refusal has a length, and ends with its JSON.
    if (this.#tail === LAST_CHUNK || (!this.#isFine && this.#tail.endsWith("}}"))) {
      this.#settle(this.#isFine);
    }
  }

  #settle(isFine: boolean): void {
    const done = this.#onAnswer;
    this.#onAnswer = undefined;
    done?.(isFine);
  }
}

/** What a run has found. */
export interface LoadResult {
  readonly perSecond: number;
  readonly failed: number;
  /** Latencies in ms, sorted. */
  readonly latencies: Float64Array;
}

/** Asks over `connections` without a pause: how much goes through at the most. */
export async function measureCapacity(
  url: string,
  connections: number,
  seconds: number,
): Promise<LoadResult> {
  const latencies: number[] = [];
  let failed = 0;
  const start = performance.now();
  const end = start + seconds * 1000;
  const clients = Array.from({ length: connections }, () => new Client(url));
  await Promise.all(
    clients.map(
      (client) =>
        new Promise<void>((resolve) => {
          const ask = () => {
            const sent = performance.now();
            if (sent >= end) return resolve();
            client.ask((isFine) => {
              if (!isFine) failed++;
              latencies.push(performance.now() - sent);
              if (isFine) ask();
              else resolve();
            });
          };
          ask();
        }),
    ),
  );
  const took = (performance.now() - start) / 1000;
  for (const client of clients) client.close();
  return resultOf(latencies, failed, took);
}

/**
 * Asks at a fixed rate over `connections`, whatever the answers do. Latency counts from when a request was due,
 * even while it has to wait for a connection.
 */
export async function measureLatency(
  url: string,
  connections: number,
  perSecond: number,
  seconds: number,
): Promise<LoadResult> {
  const clients = Array.from({ length: connections }, () => new Client(url));
  const idle = [...clients];
  const latencies: number[] = [];
  let failed = 0;
  const total = Math.round(perSecond * seconds);
  const start = performance.now();
  const overdue: number[] = [];
  let next = 0;
  const ask = (due: number) => {
    const client = idle.pop();
    if (client === undefined) overdue.push(due);
    else send(client, due);
  };
  const send = (client: Client, due: number) => {
    client.ask((isFine) => {
      if (!isFine) failed++;
      latencies.push(performance.now() - due);
      const later = overdue[next];
      if (later === undefined) idle.push(client);
      else {
        next++;
        send(client, later);
      }
    });
  };
  for (let sent = 0; sent < total; ) {
    const now = performance.now();
    for (; sent < total && start + (sent * 1000) / perSecond <= now; sent++) {
      ask(start + (sent * 1000) / perSecond);
    }
    await new Promise(setImmediate);
  }
  while (idle.length < connections) await new Promise((resolve) => setTimeout(resolve, 1));
  const took = (performance.now() - start) / 1000;
  for (const client of clients) client.close();
  return resultOf(latencies, failed, took);
}

/** Opens `count` streams at a time, and waits for the end of all. */
export async function holdStreams(url: string, count: number): Promise<LoadResult> {
  const latencies: number[] = [];
  let failed = 0;
  const start = performance.now();
  await Promise.all(
    Array.from({ length: count }, async () => {
      const client = new Client(url);
      const isFine = await new Promise<boolean>((resolve) => client.ask(resolve));
      if (!isFine) failed++;
      latencies.push(performance.now() - start);
      client.close();
    }),
  );
  return resultOf(latencies, failed, (performance.now() - start) / 1000);
}

function resultOf(latencies: number[], failed: number, seconds: number): LoadResult {
  const sorted = Float64Array.from(latencies).sort();
  return { perSecond: (latencies.length - failed) / seconds, failed, latencies: sorted };
}

/** A quantile of sorted values. */
export function quantile(sorted: Float64Array, q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}
