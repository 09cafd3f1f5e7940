// What the dashboard costs at 1,000 endpoints, all of which change between any two events: CPU of the router
// with and without a listener, CPU and heap of the page, and bytes until the first data is shown.
//   npm run build && node --import tsx bench/dashboard.ts [seconds]        (CHROMIUM=/path where it is not Debian's)

import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type CDPSession, chromium, type Page } from "playwright-core";
import { type Row, report, smoke } from "./lib";

const SECONDS = smoke ? 3 : Number(process.argv[2] ?? 600);
/** The page's code is compiled, and its history of five minutes is full, before heaps are compared. */
const WARM_UP_SECONDS = smoke ? 1 : Math.min(300, SECONDS);
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

interface Usage {
  readonly cpuMs: number;
  readonly atMs: number;
  readonly heapUsed: number;
}

function hear<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve) => child.once("message", (said) => resolve(said as T)));
}

function usageOf(child: ChildProcess): Promise<Usage> {
  const answer = hear<Usage>(child);
  child.send("usage");
  return answer;
}

/** CPU of the router over some seconds, as percent of one core. */
async function routerShare(child: ChildProcess, seconds: number): Promise<number> {
  const before = await usageOf(child);
  await sleep(seconds * 1000);
  const after = await usageOf(child);
  return (100 * (after.cpuMs - before.cpuMs)) / (after.atMs - before.atMs);
}

/** CPU time of the page's process in ms, by what the kernel has counted. */
async function pageCpuMs(browser: CDPSession): Promise<number> {
  const { processInfo } = await browser.send("SystemInfo.getProcessInfo");
  const renderers = processInfo.filter(({ type }) => type === "renderer");
  return renderers.reduce((sum, { cpuTime }) => sum + 1000 * cpuTime, 0);
}

async function metricsOf(client: CDPSession): Promise<Map<string, number>> {
  const { metrics } = await client.send("Performance.getMetrics");
  return new Map(metrics.map(({ name, value }) => [name, value]));
}

/** Live bytes of the page's heap. */
async function heapOf(client: CDPSession): Promise<number> {
  for (let i = 0; i < 3; i++) await client.send("HeapProfiler.collectGarbage");
  return (await metricsOf(client)).get("JSHeapUsedSize") ?? Number.NaN;
}

function countBytes(client: CDPSession): () => number {
  let bytes = 0;
  client.on("Network.dataReceived", ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  client.on("Network.responseReceived", ({ response }) => {
    bytes += response.encodedDataLength;
  });
  return () => bytes;
}

async function firstPaintMs(page: Page): Promise<number> {
  return page.evaluate(
    () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
  );
}

const child = fork(fileURLToPath(new URL("./dashboard-child.ts", import.meta.url)), {
  execArgv: ["--import", "tsx"],
});
const { admin } = await hear<{ admin: string }>(child);
await sleep(3000);
const alone = await routerShare(child, smoke ? 2 : 20);

const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
const browser = await chromium.launch({ executablePath, args });
const whole = await browser.newBrowserCDPSession();
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
const page = await context.newPage();
const client = await context.newCDPSession(page);
await client.send("Network.enable");
await client.send("Performance.enable");
const bytes = countBytes(client);
await page.goto(`${admin}/dashboard`);
await page.waitForSelector("tr[data-id]");
const shownBytes = bytes();
await page.click("th.c-score button"); // sorting a thousand rows at each event is part of it
await sleep(WARM_UP_SECONDS * 1000);

const heapBefore = await heapOf(client);
const nodesBefore = (await metricsOf(client)).get("Nodes") ?? Number.NaN;
const tasksBefore = (await metricsOf(client)).get("TaskDuration") ?? Number.NaN;
const cpuBefore = await pageCpuMs(whole);
const bytesBefore = bytes();
const startedAt = performance.now();
const listening = await routerShare(child, SECONDS);
const elapsedMs = performance.now() - startedAt;
const cpuMs = (await pageCpuMs(whole)) - cpuBefore;
const tasks = ((await metricsOf(client)).get("TaskDuration") ?? Number.NaN) - tasksBefore;
const transferred = bytes() - bytesBefore;
const heapAfter = await heapOf(client);
const nodesAfter = (await metricsOf(client)).get("Nodes") ?? Number.NaN;

const perSecond = (value: number) => (1000 * value) / elapsedMs;
const row = (what: string, value: number, unit: string, bar = ""): Row => ({
  what,
  value: Number(value.toFixed(2)),
  unit,
  bar,
});
report("dashboard", [
  row("measured for", elapsedMs / 1000, "s"),
  row("router, nobody listens", alone, "% of a core"),
  row("router, one page listens", listening, "% of a core"),
  row("router, the dashboard alone", listening - alone, "% of a core", "< 5"),
  row("page, its process", perSecond(cpuMs / 10), "% of a core", "< 30"),
  row("page, tasks of its main thread", perSecond(100 * tasks), "% of a core"),
  row("page, heap before", heapBefore / 1000, "KB"),
  row("page, heap after", heapAfter / 1000, "KB", "as before"),
  row("page, nodes before", nodesBefore, ""),
  row("page, nodes after", nodesAfter, "", "as before"),
  row("until the first data are shown", shownBytes / 1000, "KB", "< 100"),
  row("until the first contentful paint", await firstPaintMs(page), "ms"),
  row("each second", perSecond(transferred / 1000), "KB"),
]);
await browser.close();
child.disconnect();
