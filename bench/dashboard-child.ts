// The router of bench/dashboard.ts, in a process of its own: a thousand endpoints whose load changes before each
// event. It tells its CPU time when it is asked.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { performance } from "node:perf_hooks";
import { createRouter } from "../dist/router.js";

const ENDPOINTS = 1000;
const CHANGE_MS = 250;

const engine = createServer((_, response) => {
  const load = ["waiting 1", "running 9"].map((one) => `vllm:num_requests_${one}\n`).join("");
  response.end(`${load}vllm:kv_cache_usage_perc 0.3\n`);
});
await new Promise<void>((resolve) => engine.listen(0, "127.0.0.1", () => resolve()));
const { port } = engine.address() as AddressInfo; // it listens on a port
const endpoints = Array.from({ length: ENDPOINTS }, (_, i) => ({
  id: `http://10.0.${i >> 8}.${i & 255}:8000`,
  url: `http://127.0.0.1:${port}`,
}));
const router = createRouter({
  endpoints,
  // Reading a thousand endpoints costs far more than what is measured here: loads are written instead.
  ...{ interval: "1h", metricsStalenessThreshold: "2h", timeout: "20s" },
  ...{ listen: { host: "127.0.0.1", port: 0 }, admin: { host: "127.0.0.1", port: 0 } },
});
const { admin } = await router.start();

let step = 0;
setInterval(() => {
  step++;
  endpoints.forEach(({ id }, i) => {
    const wave = Math.sin(step / 20 + i);
    const sample = { waitingQueueSize: Math.round(3 + 3 * wave), runningRequests: i % 60 };
    router.pool.report(id, { ...sample, kvCacheUsagePercent: 0.45 + 0.4 * wave });
  });
}, CHANGE_MS);

process.on("message", () => {
  const { user, system } = process.cpuUsage();
  const { heapUsed } = process.memoryUsage();
  process.send?.({ cpuMs: (user + system) / 1000, atMs: performance.now(), heapUsed });
});
process.on("disconnect", () => process.exit(0));
process.send?.({ admin });
