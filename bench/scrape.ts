// CPU of reading 100 loopback endpoints of 50 KB pages at 20 Hz, against undici alone reading the
// same bodies on the same schedule: by its `request`, as people use it, and by its bare `dispatch`,
// the least that it can cost. The endpoints, and every contestant in every round, have a process of
// their own, so that nobody's garbage and nobody's warm code is counted twice.
//   npm run build && npx tsx bench/scrape.ts

import { type ChildProcess, fork } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { Pool } from "undici";
import { EndpointPool } from "../dist/index.js";
import { startScraper } from "../dist/telemetry.js";
import { median, report, seededRandom, smoke } from "./lib";
import { makeVllmPage } from "./pages";

const ENDPOINTS = 100;
const INTERVAL_MS = 50;
const SECONDS = smoke ? 1 : 4;
const ROUNDS = smoke ? 1 : 7;
const PAGE = Buffer.from(makeVllmPage(7, 42, 0.4375));

/** Without the limits of time, which cost undici a little too. */
const POOL = { connections: 1, headersTimeout: 0, bodyTimeout: 0 };

/** The endpoints: one server per port, all with the same page, whatever the query asks for. */
async function serve(): Promise<void> {
  const ports: number[] = [];
  for (let i = 0; i < ENDPOINTS; i++) {
    const server = createServer((_, response) => {
      response.writeHead(200, { "content-type": "text/plain", "content-length": PAGE.length });
      response.end(PAGE);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    ports.push((server.address() as AddressInfo).port);
  }
  process.send?.(ports);
}

/** A reader that has begun. */
interface Run {
  /** Pages so far. */
  count(): number;
  /** Throws when what was read is wrong. */
  stop(): Promise<void>;
}

interface Cost {
  /** CPU time of this process as a share of one core. */
  readonly cpu: number;
  readonly reads: number;
}

async function measure(task: Run): Promise<Cost> {
  await sleep(1000); // connections are made, code is warm
  const cpu = process.cpuUsage();
  const before = task.count();
  const start = performance.now();
  await sleep(SECONDS * 1000);
  const { user, system } = process.cpuUsage(cpu);
  const elapsedMs = performance.now() - start;
  const reads = task.count() - before;
  await task.stop();
  return { cpu: (user + system) / 1000 / elapsedMs, reads };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Reads one body into one buffer, and nothing else. */
type ReadBody = (pool: Pool) => Promise<ArrayBufferView | ArrayBuffer>;

/** As undici's documentation has it. */
async function request(pool: Pool): Promise<ArrayBuffer> {
  const { body } = await pool.request({ method: "GET", path: "/metrics" });
  return body.arrayBuffer();
}

/** undici without its streams. */
function dispatch(pool: Pool): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    pool.dispatch(
      { method: "GET", path: "/metrics" },
      {
        onRequestStart: () => undefined,
        onResponseStart: () => undefined,
        onResponseData: (_, chunk) => void chunks.push(chunk),
        onResponseEnd: () => resolve(whole(chunks)),
        onResponseError: (_, error) => reject(error),
      },
    );
  });
}

function whole(chunks: Uint8Array[]): Uint8Array {
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}

function readBarely(urls: string[], read: ReadBody): Run {
  let count = 0;
  let stopped = false;
  const random = seededRandom(1);
  const pools = urls.map((url) => new Pool(url, POOL));
  pools.forEach((pool) => {
    let dueAt = performance.now() + random() * INTERVAL_MS;
    const next = async () => {
      if (stopped) return;
      const { byteLength } = await read(pool);
      if (byteLength !== PAGE.length) throw new Error(`read ${byteLength} bytes`);
      count++;
      schedule();
    };
    const schedule = () => {
      const now = performance.now();
      dueAt = Math.max(now, dueAt + INTERVAL_MS);
      setTimeout(next, dueAt - now);
    };
    schedule();
  });
  return {
    count: () => count,
    stop: async () => {
      stopped = true;
      await sleep(2 * INTERVAL_MS);
      await Promise.all(pools.map((pool) => pool.close()));
    },
  };
}

function scrape(urls: string[]): Run {
  const pool = new EndpointPool();
  const scraper = startScraper(pool, urls, { interval: INTERVAL_MS, random: seededRandom(1) });
  return {
    count: () => scraper.targets.reduce((sum, target) => sum + target.reads, 0),
    stop: async () => {
      const { max, fresh } = pool.evaluate();
      if (fresh !== ENDPOINTS || max !== 7 / 5) throw new Error(`read ${fresh} endpoints`);
      await scraper.close();
    },
  };
}

const CONTESTANTS: Record<string, (urls: string[]) => Run> = {
  "undici, request": (urls) => readBarely(urls, request),
  "undici, dispatch": (urls) => readBarely(urls, dispatch),
  startScraper: scrape,
};

/** Starts this file again, for one part; gives the process and the first thing that it says. */
async function start<T>(...args: string[]): Promise<[ChildProcess, T]> {
  const child = fork(fileURLToPath(import.meta.url), args);
  const said = await new Promise<T>((resolve, reject) => {
    child.once("message", (message) => resolve(message as T)); // it is this file that says it
    child.once("exit", (code) => reject(new Error(`${args[0]} ended with ${code}`)));
  });
  return [child, said];
}

async function compare(): Promise<void> {
  const [server, ports] = await start<number[]>("serve");
  const costs = new Map<string, Cost[]>();
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of Object.keys(CONTESTANTS)) {
      const [client, cost] = await start<Cost>(name, JSON.stringify(ports));
      client.kill();
      costs.set(name, [...(costs.get(name) ?? []), cost]);
    }
  }
  server.kill();
  const cpuOf = (name: string) => median((costs.get(name) ?? []).map(({ cpu }) => cpu));
  const ratio = (name: string, to: string) => Math.round((cpuOf(name) / cpuOf(to)) * 100) / 100;
  report(
    "scrape",
    [...costs].map(([name, list]) => ({
      reader: name,
      "reads per second": Math.round(median(list.map(({ reads }) => reads)) / SECONDS),
      "CPU, % of one core": Math.round(cpuOf(name) * 1000) / 10,
      "of request": ratio(name, "undici, request"),
      "of dispatch": ratio(name, "undici, dispatch"),
    })),
  );
}

const [, , part = "", ports = "[]"] = process.argv;
const contestant = CONTESTANTS[part];
// A part ends with the process that began it, however that ends.
process.on("disconnect", () => process.exit());
if (part === "serve") await serve();
else if (contestant !== undefined) {
  const urls = JSON.parse(ports).map((port: number) => `http://127.0.0.1:${port}`);
  process.send?.(await measure(contestant(urls)));
} else await compare();
