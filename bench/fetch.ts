// What createFetch adds to a request over the bare `fetch` to the same loopback server, streamed and
// not, with and without a flow controller; and 100,000 mixed calls, a tenth of them aborted, after
// which no lease may be left.
//   npm run build && tsx bench/fetch.ts

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { createFetch } from "../dist/fetch.js";
import { FlowController } from "../dist/flow.js";
import { EndpointPool } from "../dist/index.js";
import { median, report, seededRandom, smoke } from "./lib";

const ROUNDS = smoke ? 40 : 4000;
const WARM_UP = smoke ? 10 : 1000;
const MIXED_CALLS = smoke ? 1000 : 100_000;
const AT_ONCE = 50;
const CHUNKS = 8;

const ANSWER = JSON.stringify({
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", content: "x".repeat(800) } }],
  usage: { prompt_tokens: 500, completion_tokens: 200, total_tokens: 700 },
});
const CHUNK = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "word " } }] })}\n\n`;
const QUESTION = {
  model: "m",
  messages: [{ role: "user", content: "A question of some length. ".repeat(80) }],
};

/** The engine, in a process of its own: answers at once, as JSON or as a stream. */
function serveEngine(): void {
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      if (!request.url?.endsWith("stream")) {
        response.writeHead(200, { "content-type": "application/json" }).end(ANSWER);
        return;
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      let left = CHUNKS;
      const write = () => {
        if (left-- === 0) response.end("data: [DONE]\n\n");
        else response.write(CHUNK, () => setImmediate(write));
      };
      write();
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
}

type Fetch = (url: string, init: RequestInit) => Promise<Response>;
type Kind = "json" | "stream";

const INIT = {
  method: "POST",
  headers: { "content-type": "application/json", authorization: "Bearer none" },
  body: JSON.stringify(QUESTION),
};

/** One request, read as the SDKs read it. */
async function ask(fetchLike: Fetch, url: string, kind: Kind, signal?: AbortSignal): Promise<void> {
  const init = signal === undefined ? INIT : { ...INIT, signal };
  const response = await fetchLike(`${url}/v1/chat/completions?${kind}`, init);
  if (kind === "json") {
    await response.json();
    return;
  }
  const reader = response.body?.getReader();
  while (reader !== undefined && !(await reader.read()).done);
}

function makePool(url: string): EndpointPool {
  const pool = new EndpointPool({ metricsStalenessThreshold: "1h" });
  pool.add(url);
  pool.report(url, { waitingQueueSize: 0, kvCacheUsagePercent: 0.1, runningRequests: 0 });
  return pool;
}

/** Requests one after the other, the contestants in turn, and the median time of each. */
async function compare(url: string, kind: Kind, withSignal: boolean): Promise<number[]> {
  const gatedPool = makePool(url);
  const contestants: Fetch[] = [
    fetch,
    createFetch(makePool(url)),
    createFetch(gatedPool, { controller: new FlowController(gatedPool) }),
  ];
  const times: number[][] = contestants.map(() => []);
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    for (let i = 0; i < contestants.length; i++) {
      // Whoever comes after another finds its sockets warm, so that nobody always comes first.
      const turn = (i + Math.abs(round)) % contestants.length;
      const signal = withSignal ? new AbortController().signal : undefined;
      const start = process.hrtime.bigint();
      await ask(contestants[turn] as Fetch, url, kind, signal); // turn is below their number
      const took = Number(process.hrtime.bigint() - start) / 1000;
      if (round >= 0) times[turn]?.push(took);
    }
  }
  return times.map(median);
}

/** Many requests at once, streamed and not, a tenth of them aborted somewhere; the leases left. */
async function mix(url: string): Promise<{ left: number; aborted: number; ms: number }> {
  const pool = makePool(url);
  const pooled = createFetch(pool);
  const random = seededRandom(7);
  let asked = 0;
  let aborted = 0;
  const work = async () => {
    while (asked++ < MIXED_CALLS) {
      const kind = random() < 0.5 ? "json" : "stream";
      const abort = new AbortController();
      if (random() < 0.1) setTimeout(() => abort.abort(), random() * 3);
      try {
        await ask(pooled, url, kind, abort.signal);
      } catch (error) {
        if (!abort.signal.aborted) throw error;
        aborted++;
      }
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const left = pool.snapshot().endpoints.reduce((sum, { leases }) => sum + leases, 0);
  return { left, aborted, ms: performance.now() - start };
}

async function main(): Promise<void> {
  const engine: ChildProcess = fork(fileURLToPath(import.meta.url), ["engine"]);
  const [port] = await once(engine, "message");
  const url = `http://127.0.0.1:${port}`;
  const rows = [];
  for (const kind of ["json", "stream"] as const) {
    for (const withSignal of [false, true]) {
      const [bare = 0, pooled = 0, gated = 0] = await compare(url, kind, withSignal);
      const tenth = (value: number) => Math.round(value * 10) / 10;
      rows.push({
        answer: kind === "json" ? "JSON" : `stream of ${CHUNKS + 1} pieces`,
        "with a signal": withSignal ? "yes" : "no",
        "bare fetch, us": tenth(bare),
        "createFetch adds, us": tenth(pooled - bare),
        "with a controller adds, us": tenth(gated - bare),
      });
    }
  }
  report("fetch", rows);
  const { left, aborted, ms } = await mix(url);
  report("fetch-mixed", [
    { calls: MIXED_CALLS, "at once": AT_ONCE, aborted, "leases left": left, ms: Math.round(ms) },
  ]);
  engine.kill();
  if (left !== 0) throw new Error(`${left} leases were left`);
}

if (process.argv[2] === "engine") serveEngine();
else await main();
