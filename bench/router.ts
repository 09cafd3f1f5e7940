// The router against the same proxy with round robin and no detector, and against nginx as the outer limit:
// throughput, latency at shares of capacity, memory under 2,000 streams, and how much of its CPU decisions take.
// The proxy has one core for itself; engines and load share the other.
//   npm run build && node --import tsx bench/router.ts

import { type ChildProcess, fork, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { median, type Row, report, smoke } from "./lib";
import { bundleChild, CHILD } from "./router-bundle";
import {
  type EngineManner,
  holdStreams,
  type LoadResult,
  measureCapacity,
  measureLatency,
  quantile,
  startEngines,
} from "./wire";

const ENGINES = 8;
/** Four at each engine: the pool is busy, and under its limits. */
const CONNECTIONS = 32;
const ROUNDS = smoke ? 1 : 9;
const SECONDS = smoke ? 0.3 : 2;
/** Of what the router reaches without a pause. */
const SHARES = [0.3, 0.5, 0.65, 0.8];
const STREAMS = smoke ? 50 : 2000;
const STREAM_SECONDS = smoke ? 1 : 60;
const TOKEN_EVERY_MS = 250;
const PROXY_CORE = "0";
const LOAD_CORE = "1";

interface Contestant {
  readonly name: string;
  readonly url: string;
  readonly child: ChildProcess;
}

function pin(child: ChildProcess, core: string): void {
  spawnSync("taskset", ["-a", "-c", "-p", core, String(child.pid)]);
}

async function startChild(name: string, urls: string[]): Promise<Contestant> {
  const child = fork(CHILD, [name, ...urls], { serialization: "advanced" });
  pin(child, PROXY_CORE);
  const url = await new Promise<string>((resolve, reject) => {
    child.once("error", reject).once("message", (said) => resolve((said as { url: string }).url));
  });
  pin(child, PROXY_CORE);
  return { name, url, child };
}

/** Processes of a process; none where the system has no way to tell. */
function workersOf({ pid }: ChildProcess): string[] {
  const { stdout } = spawnSync("pgrep", ["-P", String(pid)], { encoding: "utf8" });
  return (stdout ?? "").split("\n").filter(Boolean);
}

async function startNginx(urls: string[]): Promise<Contestant | undefined> {
  if (spawnSync("nginx", ["-v"]).error !== undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "plimsoll-nginx-"));
  const port = await freePort();
  const servers = urls.map((url) => `server ${new URL(url).host};`).join(" ");
  writeFileSync(
    join(folder, "nginx.conf"),
    `worker_processes 1; daemon off; pid ${folder}/pid; error_log ${folder}/error.log;
    events { worker_connections 8192; }
    http { access_log off; client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p;
      fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
      upstream engines { ${servers} keepalive 256; keepalive_requests 1000000; }
      server { listen 127.0.0.1:${port} reuseport; keepalive_requests 1000000;
        location / { proxy_pass http://engines; proxy_http_version 1.1; proxy_buffering off;
          proxy_set_header Connection ""; } } }`,
  );
  const child = spawn("nginx", ["-p", folder, "-c", "nginx.conf"], { stdio: "ignore" });
  await new Promise((resolve) => setTimeout(resolve, 500));
  for (const pid of workersOf(child)) {
    spawnSync("taskset", ["-a", "-c", "-p", PROXY_CORE, pid]);
  }
  return { name: "nginx", url: `http://127.0.0.1:${port}`, child };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

async function stop({ child }: Contestant): Promise<void> {
  const closed = new Promise((resolve) => child.once("close", resolve));
  child.kill("SIGTERM");
  await closed;
}

const rssMb = ({ child }: Contestant): number => {
  const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
};

const round = (value: number, digits = 2) => Number(value.toFixed(digits));
const fine = (result: LoadResult, name: string): LoadResult => {
  if (result.failed > 0) throw new Error(`${name}: ${result.failed} requests failed`);
  return result;
};

/** CPU time that a contestant has used so far, in µs; a tick is 10 ms. */
const cpuOf = ({ child }: Contestant): number => {
  const pids = [String(child.pid), ...workersOf(child)];
  const ticks = pids.map((pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return Number(fields[11]) + Number(fields[12]);
  });
  return ticks.reduce((a, b) => a + b, 0) * 10_000;
};

/** Every other round the other way round, so that what changes slowly touches all alike. */
const inTurn = <T>(all: readonly T[], round: number): readonly T[] =>
  round % 2 === 0 ? all : all.toReversed();

/** What one contestant showed, a figure per round. */
interface Found {
  readonly capacities: number[];
  readonly costs: number[];
  /** By share of the router's capacity: rate, p50, p99 of the round. */
  readonly latencies: Map<number, { rates: number[]; p50s: number[]; p99s: number[] }>;
  refused: number;
}

/** Differences and ratios are of one round: a shared machine can be twice as slow a minute later. */
const paired = (
  own: readonly number[],
  rival: readonly number[],
  f: (a: number, b: number) => number,
) => median(own.map((value, i) => f(value, rival[i] as number)));

/** Throughput without a pause, then latency at rates that are shares of what the router has just reached. */
async function compare(contestants: Contestant[]): Promise<[throughput: Row[], latency: Row[]]> {
  const found = contestants.map((one) => ({ one, ...emptyFound() }));
  const [own, rival] = found;
  if (own === undefined || rival === undefined) throw new Error("nothing to compare");
  for (const { url } of contestants) await measureCapacity(url, CONNECTIONS, SECONDS);
  for (let i = 0; i < ROUNDS; i++) {
    for (const { one, capacities, costs } of inTurn(found, i)) {
      const before = cpuOf(one);
      const result = fine(await measureCapacity(one.url, CONNECTIONS, SECONDS), one.name);
      capacities.push(result.perSecond);
      costs.push((cpuOf(one) - before) / result.latencies.length);
    }
    for (const share of SHARES) {
      const rate = share * (own.capacities[i] as number);
      for (const contestant of inTurn(found, i)) {
        const { url } = contestant.one;
        const { latencies, failed } = await measureLatency(url, CONNECTIONS, rate, SECONDS);
        const at = contestant.latencies.get(share);
        at?.rates.push(rate);
        at?.p50s.push(quantile(latencies, 0.5));
        at?.p99s.push(quantile(latencies, 0.99));
        contestant.refused += failed;
      }
    }
  }
  const throughput = found.map(({ one, capacities, costs, refused }) => ({
    name: one.name,
    "requests per second": Math.round(median(capacities)),
    "of round robin": round(paired(capacities, rival.capacities, (a, b) => a / b)),
    "CPU µs per request": round(median(costs), 1),
    refused,
  }));
  const latency = SHARES.flatMap((share) => {
    const base = rival.latencies.get(share);
    return found.map(({ one, latencies }) => {
      const { rates = [], p50s = [], p99s = [] } = latencies.get(share) ?? {};
      return {
        "of capacity": share,
        name: one.name,
        "requests per second": Math.round(median(rates)),
        "p50 ms": round(median(p50s)),
        "p99 ms": round(median(p99s)),
        "added p50 ms": round(paired(p50s, base?.p50s ?? [], (a, b) => a - b)),
        "added p99 ms": round(paired(p99s, base?.p99s ?? [], (a, b) => a - b)),
      };
    });
  });
  return [throughput, latency];
}

const emptyFound = (): Found => ({
  capacities: [],
  costs: [],
  latencies: new Map(SHARES.map((share) => [share, { rates: [], p50s: [], p99s: [] }])),
  refused: 0,
});

/** The most memory that many streams at a time take. */
async function measureStreams(urls: string[], manner: EngineManner): Promise<Row> {
  const router = await startChild("plimsoll", urls);
  const idle = rssMb(router);
  manner.tokenEveryMs = TOKEN_EVERY_MS;
  manner.tokens = (STREAM_SECONDS * 1000) / TOKEN_EVERY_MS;
  let most = 0;
  const timer = setInterval(() => {
    most = Math.max(most, rssMb(router));
  }, 250);
  const { latencies, failed } = await holdStreams(router.url, STREAMS);
  clearInterval(timer);
  manner.tokenEveryMs = undefined;
  const left = (await ask(router, "snapshot")) as { leases: number };
  await stop(router);
  return {
    streams: STREAMS,
    seconds: STREAM_SECONDS,
    "tokens per second": Math.round((STREAMS * 1000) / TOKEN_EVERY_MS),
    whole: latencies.length - failed,
    "leases left": left.leases,
    "idle MB": Math.round(idle),
    "most MB": Math.round(most),
  };
}

const DECISION =
  /^src\/(?:pool|board|choose|pick|lease|leases|ledger|load-writer|projection|pace|kernel|endpoint|evaluation|subscribers|staleness-warner|flow\/.*|router\/(?:pool-view|hold-off|affinity|gates))\.ts$/;

/** Which share of the CPU time at full load is spent where, by a sampling profile, once it is warm. */
async function profile(urls: string[]): Promise<Row[]> {
  const router = await startChild("plimsoll", urls);
  await measureCapacity(router.url, CONNECTIONS, smoke ? 0.3 : 5);
  await ask(router, "profile");
  await measureCapacity(router.url, CONNECTIONS, smoke ? 0.5 : 10);
  const { nodes, samples, timeDeltas } = (await ask(router, "profiled")) as Profile;
  await stop(router);
  const map = new SourceMap(JSON.parse(readFileSync(`${CHILD}.map`, "utf8")));
  const placeOf = placesOf(nodes, map);
  const times = new Map<string, number>();
  samples.forEach((id, i) => {
    const part = placeOf.get(id) ?? "other";
    times.set(part, (times.get(part) ?? 0) + (timeDeltas[i] ?? 0));
  });
  times.delete("idle");
  const busy = [...times.values()].reduce((a, b) => a + b, 0);
  return [...times]
    .sort(([, a], [, b]) => b - a)
    .map(([part, time]) => ({ part, "share of CPU, %": round((100 * time) / busy, 1) }));
}

/** Asks a contestant, and waits for what it says. */
function ask({ child }: Contestant, what: string): Promise<unknown> {
  return new Promise((resolve) => {
    child.once("message", resolve);
    child.send(what);
  });
}

interface Profile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: Frame;
  readonly children?: readonly number[];
}

interface Frame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** The part of every node. WebAssembly is its caller's: the kernel is one, undici's parser another. */
function placesOf(nodes: readonly ProfileNode[], map: SourceMap): ReadonlyMap<number, string> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const places = new Map<number, string>();
  const visit = ({ id, callFrame, children = [] }: ProfileNode, caller: string) => {
    const place = callFrame.url.startsWith("wasm:") ? caller : partOf(callFrame, map);
    places.set(id, place);
    for (const child of children) {
      const node = byId.get(child);
      if (node !== undefined) visit(node, place);
    }
  };
  const [root] = nodes;
  if (root !== undefined) visit(root, "other");
  return places;
}

function partOf({ functionName, url, lineNumber, columnNumber }: Frame, map: SourceMap): string {
  if (functionName === "(idle)") return "idle";
  if (url.includes("/undici/")) return "undici";
  if (url.includes("/fastify/") || url.includes("/find-my-way/")) return "fastify";
  if (url.includes("/prom-client/")) return "metrics";
  if (url === "" || url.startsWith("node:")) return "node and V8";
  if (!url.includes("bench-router")) return "other";
  const entry = map.findEntry(lineNumber, columnNumber);
  const source = "originalSource" in entry ? entry.originalSource.replace(/^(?:\.\.\/)+/, "") : "";
  if (DECISION.test(source)) return "decisions";
  if (source.startsWith("src/telemetry/")) return "scraping";
  if (source.startsWith("src/router/metrics")) return "metrics";
  return source.startsWith("src/router/") ? "proxy" : `other (${source})`;
}

spawnSync("taskset", ["-a", "-c", "-p", LOAD_CORE, String(process.pid)]);
await bundleChild();
const manner: EngineManner = { tokenEveryMs: undefined, tokens: 0 };
const engines = await startEngines(ENGINES, manner);
const contestants = [
  await startChild("plimsoll", engines.urls),
  await startChild("round-robin", engines.urls),
];
const nginx = await startNginx(engines.urls);
if (nginx !== undefined) contestants.push(nginx);
const [throughput, latency] = await compare(contestants);
report("router", throughput);
report("router-latency", latency);
for (const one of contestants) await stop(one);
report("router-cpu", await profile(engines.urls));
report("router-streams", [await measureStreams(engines.urls, manner)]);
engines.close();
