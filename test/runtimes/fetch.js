// What Node, Bun and Deno run: createFetch of the built package against servers on loopback, in each
// runtime's own way to fail, stream and abort. Prints what happened, which must be the same everywhere.

import { createServer } from "node:http";
import { createFetch } from "../../dist/fetch.js";
import { EndpointPool } from "../../dist/index.js";

let broken = 0;
let gone = () => {};
const engine = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => {
    body += chunk;
  });
  request.on("end", () => answer(request.url, body, response));
});

function answer(url, body, response) {
  if (url.startsWith("/echo")) {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ url, body }));
    return;
  }
  response.on("close", () => {
    if (response.writableFinished) return;
    broken++;
    gone();
  });
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write("data: 1\n\n");
  if (url.startsWith("/stream")) response.end("data: 2\n\n");
}

const hangsUp = createServer((request) => request.socket.destroy());
const busy = createServer((_, response) => response.writeHead(503).end("busy"));

async function listen(server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}`;
}

const unused = createServer();
const refuses = await listen(unused);
await new Promise((resolve) => unused.close(resolve));
const urls = [refuses, await listen(hangsUp), await listen(busy), await listen(engine)];

function makePool() {
  const pool = new EndpointPool({ metricsStalenessThreshold: "1h" });
  urls.forEach((url, i) => {
    pool.add(url);
    pool.report(url, { waitingQueueSize: i, kvCacheUsagePercent: 0.1, runningRequests: 100 * i });
  });
  return pool;
}

const log = [];

/** Runs one case with a pool whose first three endpoints fail, and notes the leases at its end. */
async function run(name, use) {
  const pool = makePool();
  const what = await use(createFetch(pool, { retries: 3 }), pool);
  const left = pool.snapshot().endpoints.reduce((sum, { leases }) => sum + leases, 0);
  log.push(`${name}: ${JSON.stringify(what)}, ${left} left`);
}

const post = (body) => ({ method: "POST", body });
const failure = async (promise) => promise.then(String, (error) => error.name);

await run("JSON", async (pooled) => (await pooled("http://pool/echo?a=1", post("x"))).json());
await run("Request", async (pooled) => (await pooled(new Request("http://pool/echo"))).json());
await run("stream", async (pooled) => new Response((await pooled("/stream")).body).text());
await run("looked at", async (pooled) => {
  const response = await pooled("/echo");
  return [response.body !== null, response.bodyUsed, (await response.json()).url];
});
await run("clone", async (pooled) => {
  const response = await pooled("/stream");
  const copy = response.clone();
  return Promise.all([response.text(), new Response(copy.body).text()]);
});
await run("cancel", async (pooled) => {
  const closed = new Promise((resolve) => {
    gone = resolve;
  });
  const reader = (await pooled("/hang")).body.getReader();
  await reader.read();
  await reader.cancel();
  await closed;
  return broken;
});
await run("abort", async (pooled) => {
  const closed = new Promise((resolve) => {
    gone = resolve;
  });
  const abort = new AbortController();
  const reader = (await pooled("/hang", { signal: abort.signal })).body.getReader();
  await reader.read();
  const reading = failure(reader.read());
  abort.abort();
  await closed;
  return [await reading, broken];
});
await run("body once", async (pooled) => {
  const init = { ...post(new Blob(["x"]).stream()), duplex: "half" };
  return failure(pooled("/echo", init));
});

console.log(log.join("\n"));
globalThis.process.exit();
