// 200,000 requests through the router while its engines are killed, hung, restarted and slowed at random: each
// request gets exactly one whole answer or one clear error, and in the end nothing is left. Exits with 1 if not.
//   npm run build && node --import tsx bench/soak.ts [requests] [seed]

import { type ChildProcess, fork } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import {
  Agent,
  request as ask,
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";

import type { AddressInfo, Socket } from "node:net";
import type { RouterConfig } from "../src/router/options";
import { median, type Row, report, seededRandom, smoke } from "./lib";
import { bundleChild, CHILD } from "./router-bundle";

const REQUESTS = Number(process.argv[2] ?? (smoke ? 3000 : 200_000));
const SEED = Number(process.argv[3] ?? 1);
const ENGINES = 6;
const CLIENTS = 48;
const TROUBLE_EVERY = 50;
const CONFIG: RouterConfig = {
  interval: "50ms",
  metricsStalenessThreshold: "500ms",
  retry: { holdOff: "20ms", longestHoldOff: "200ms" },
  timeouts: { answer: "1s", idle: "1s", total: "20s", connect: "1s" },
  flow: { ttl: "5s" },
};

type Manner = "fine" | "slow" | "hung" | "resetting" | "cutting" | "busy";
const MANNERS: readonly Manner[] = ["fine", "fine", "slow", "hung", "resetting", "cutting", "busy"];

/** An engine that can be killed and started again at the same port. */
class TroubledEngine {
  manner: Manner = "fine";
  port = 0;
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();

  async start(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = createServer((request, response) => this.#serve(request, response));
    this.#server = server;
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => socket.destroy()); // trouble is what this is about
      socket.on("close", () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(this.port, "127.0.0.1", () => resolve()));
    this.port = (server.address() as AddressInfo).port;
  }

  async kill(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => {
      if (server === undefined) resolve();
      else server.close(() => resolve());
    });
    for (const socket of this.#sockets) socket.resetAndDestroy();
    await closed;
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    if (request.url?.startsWith("/metrics")) {
      if (this.manner !== "hung") {
        response.end("vllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0.1\n");
      }
      return;
    }
    let id = "";
    request.setEncoding("utf8").on("data", (chunk) => {
      id += chunk;
    });
    request.on("end", () => this.#answer(JSON.parse(id).id, request, response));
  }

  #answer(id: number, { socket }: IncomingMessage, response: ServerResponse): void {
    const { manner } = this;
    if (manner === "hung") return;
    if (manner === "resetting") socket.resetAndDestroy();
    else if (manner === "busy") response.writeHead(id % 2 === 0 ? 503 : 429).end("busy");
    else {
      const stream = id % 2 === 0;
      response.writeHead(200, { "content-type": stream ? "text/event-stream" : "text/plain" });
      response.write(`data: ${id}\n\n`);
      const finish = () => response.end(`data: end ${id}\n\n`);
      if (manner === "cutting") setTimeout(() => socket.resetAndDestroy(), 2);
      else setTimeout(finish, manner === "slow" ? 40 : 1);
    }
  }
}

type Ending = "whole" | "refused" | "cut" | "WRONG";

/** One request, and how it ended. */
function sendOne(url: URL, agent: Agent, id: number): Promise<Ending> {
  return new Promise((resolve) => {
    const body = JSON.stringify({ id, model: "m", stream: id % 2 === 0 });
    const headers = { "content-type": "application/json" };
    const options = { host: url.hostname, port: url.port, method: "POST", agent, headers };
    const request = ask({ ...options, path: "/v1/chat/completions" });
    let answers = 0;
    request.on("response", (response) => {
      answers++;
      let text = "";
      response.setEncoding("latin1").on("data", (chunk) => {
        text += chunk;
      });
      const settle = () => {
        const isFine = response.statusCode === 200;
        const isOwn = text === `data: ${id}\n\ndata: end ${id}\n\n`;
        if (answers > 1) resolve("WRONG");
        else if (!response.complete) resolve(isFine ? "cut" : "WRONG");
        else if (isFine) resolve(isOwn ? "whole" : "WRONG");
        else
          resolve(text === "busy" || "x-plimsoll-reason" in response.headers ? "refused" : "WRONG");
      };
      response.on("end", settle).on("error", settle);
    });
    // The router itself never hangs up on a request that it has not answered.
    request.on("error", () => {
      if (answers === 0) resolve("WRONG");
    });
    request.end(body);
  });
}

async function startRouter(urls: string[]): Promise<{ child: ChildProcess; url: URL }> {
  await bundleChild();
  const env = { ...process.env, BENCH_CONFIG: JSON.stringify(CONFIG) };
  const child = fork(CHILD, ["plimsoll", ...urls], { env, execArgv: ["--expose-gc"] });
  const said = await new Promise<unknown>((resolve) => child.once("message", resolve));
  return { child, url: new URL((said as { url: string }).url) };
}

const rssMb = (pid: number | undefined) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
const handlesOf = (pid: number | undefined) => readdirSync(`/proc/${pid}/fd`).length;

const random = seededRandom(SEED);
const engines = Array.from({ length: ENGINES }, () => new TroubledEngine());
for (const engine of engines) await engine.start();
const urls = engines.map(({ port }) => `http://127.0.0.1:${port}`);
const { child, url } = await startRouter(urls);
const agent = new Agent({ keepAlive: true });
const endings: Record<Ending, number> = { whole: 0, refused: 0, cut: 0, WRONG: 0 };
const memory: number[] = [];
let troubles = 0;
let sent = 0;

async function makeTrouble(): Promise<void> {
  troubles++;
  const engine = engines[Math.floor(random() * ENGINES)] as TroubledEngine; // below the length
  const dice = random();
  if (dice < 0.25) await engine.kill();
  else await engine.start();
  engine.manner = MANNERS[Math.floor(random() * MANNERS.length)] ?? "fine";
  // Two are left in peace, so that there is somebody to answer.
  for (const one of engines.slice(0, 2)) {
    one.manner = "fine";
    await one.start();
  }
}

await Promise.all(
  Array.from({ length: CLIENTS }, async () => {
    while (sent < REQUESTS) {
      const id = ++sent;
      if (id % TROUBLE_EVERY === 0) await makeTrouble();
      if (id % Math.ceil(REQUESTS / 50) === 0) memory.push(rssMb(child.pid));
      endings[await sendOne(url, agent, id)]++;
    }
  }),
);
agent.destroy();
for (const engine of engines) {
  engine.manner = "fine";
  await engine.start();
}
// Idle connections are closed after 4 s.
await new Promise((resolve) => setTimeout(resolve, 6000));
const left = await new Promise<{ live: number; leases: number }>((resolve) => {
  child.once("message", (said) => resolve(said as { live: number; leases: number }));
  child.send("snapshot");
});
const handles = handlesOf(child.pid);
const third = Math.floor(memory.length / 3);
const early = median(memory.slice(third, 2 * third));
const late = median(memory.slice(-third));
child.kill("SIGTERM");
for (const engine of engines) await engine.kill();
const row: Row = {
  ...{ requests: sent, troubles, seed: SEED, ...endings, live: left.live, leases: left.leases },
  "open files": handles,
  "MB in the middle third": Math.round(early),
  "MB in the last third": Math.round(late),
};
if (REQUESTS >= 100_000) report("router-soak", [row]);
else console.log(JSON.stringify(row));
const isFlat = REQUESTS < 100_000 || late < 1.2 * early;
// Besides its own, a router at rest has a connection per scraper.
const isClean = endings.WRONG === 0 && left.live === 0 && left.leases === 0 && handles < 60;
process.exitCode = isFlat && isClean ? 0 : 1;
