// CPU of reading 100 loopback endpoints of 50 KB pages at 20 Hz, against undici alone reading the
// same bodies on the same schedule. The endpoints live in a process of their own.
//   npm run build && npx tsx bench/scrape.ts

import { type ChildProcess, fork } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { Pool } from "undici";
import { EndpointPool } from "../dist/index.js";
import { startScraper } from "../dist/telemetry.js";
import { median, report, smoke } from "./lib";
import { makeVllmPage } from "./pages";

const ENDPOINTS = 100;
const INTERVAL_MS = 50;
const SECONDS = smoke ? 1 : 6;
const ROUNDS = smoke ? 1 : 5;

/** The endpoints: one server per port, all with the same page, whatever the query asks for. */
async function serve(): Promise<void> {
  const page = Buffer.from(makeVllmPage(7, 42, 0.4375));
  const ports: number[] = [];
  for (let i = 0; i < ENDPOINTS; i++) {
    const server = createServer((_, response) => {
      response.writeHead(200, { "content-type": "text/plain", "content-length": page.length });
      response.end(page);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    ports.push((server.address() as AddressInfo).port);
  }
  process.send?.(ports);
}

interface Cost {
  /** CPU time of this process as a share of one core. */
  readonly cpu: number;
  readonly reads: number;
}

async function measure(run: () => { count(): number; stop(): Promise<void> }): Promise<Cost> {
  const task = run();
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

/** Each body read into one buffer, nothing else. */
function readBarely(urls: string[]) {
  let count = 0;
  let stopped = false;
  const pools = urls.map((url) => new Pool(url, { connections: 1 }));
  pools.forEach((pool, i) => {
    const next = async () => {
      if (stopped) return;
      const begun = performance.now();
      const { body } = await pool.request({ method: "GET", path: "/metrics" });
      await body.arrayBuffer();
      count++;
      setTimeout(next, Math.max(0, INTERVAL_MS - (performance.now() - begun)));
    };
    setTimeout(next, (i / urls.length) * INTERVAL_MS);
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

function scrape(urls: string[]) {
  const pool = new EndpointPool();
  const scraper = startScraper(pool, urls, { interval: INTERVAL_MS });
  return {
    count: () => scraper.targets.reduce((sum, target) => sum + target.reads, 0),
    stop: async () => {
      const { max, fresh } = pool.evaluate();
      if (fresh !== ENDPOINTS || max !== 7 / 5) throw new Error(`read ${fresh} endpoints`);
      await scraper.close();
    },
  };
}

async function compare(): Promise<void> {
  const child: ChildProcess = fork(fileURLToPath(import.meta.url), ["serve"]);
  const ports = await new Promise<number[]>((resolve) => child.once("message", resolve as never));
  const urls = ports.map((port) => `http://127.0.0.1:${port}`);
  const costs: Record<string, Cost[]> = { undici: [], startScraper: [] };
  for (let round = 0; round < ROUNDS; round++) {
    costs.undici?.push(await measure(() => readBarely(urls)));
    costs.startScraper?.push(await measure(() => scrape(urls)));
  }
  child.kill();
  const cpuOf = (name: string) => median((costs[name] ?? []).map(({ cpu }) => cpu));
  report(
    "scrape",
    Object.entries(costs).map(([name, list]) => ({
      reader: name,
      "reads per second": Math.round(median(list.map(({ reads }) => reads)) / SECONDS),
      "CPU, % of one core": Math.round(cpuOf(name) * 1000) / 10,
      "of undici alone": Math.round((cpuOf(name) / cpuOf("undici")) * 100) / 100,
    })),
  );
}

if (process.argv[2] === "serve") await serve();
else await compare();
