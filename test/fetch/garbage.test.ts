// An answer that is never read must not count for ever: a process of its own drops answers in every
// state, collects garbage, and looks at the leases and at what the engine saw.

import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

const SCRIPT = `
import { createServer } from "node:http";
import { createFetch } from "./dist/fetch.js";
import { EndpointPool } from "./dist/index.js";
let broken = 0;
const finishers = [];
const server = createServer((request, response) => {
  response.on("close", () => { if (!response.writableFinished) broken++; });
  if (request.url === "/json") {
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write("data: 1\\n\\n");
  finishers.push(() => response.end("data: 2\\n\\n"));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = "http://127.0.0.1:" + server.address().port;
const pool = new EndpointPool({ metricsStalenessThreshold: "1h" });
pool.add(url);
pool.report(url, { waitingQueueSize: 0, kvCacheUsagePercent: 0 });
const leases = () => pool.snapshot().endpoints[0].leases;
const collect = async (isDone) => {
  for (let i = 0; i < 200 && !isDone(); i++) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};
const { signal } = new AbortController();
const uses = {
  "JSON, unread": async () => { await createFetch(pool)("/json", { signal }); },
  "stream, unread": async () => { await createFetch(pool)("/stream", { signal }); },
  "stream, looked at": async () => { (await createFetch(pool)("/stream", { signal })).body; },
  "stream, half read": async () => {
    const { body } = await createFetch(pool)("/stream", { signal });
    await body.getReader().read();
  },
  "stream, clone half read": async () => {
    const copy = (await createFetch(pool)("/stream", { signal })).clone();
    await copy.body.getReader().read();
  },
};
const seen = {};
for (const [name, use] of Object.entries(uses)) {
  broken = 0;
  await use();
  const taken = leases();
  const isStream = name.startsWith("stream");
  await collect(() => leases() === 0 && (!isStream || broken === 1));
  seen[name] = [taken, leases(), isStream ? broken : 0];
}
// What is still being read is not garbage, whoever has dropped the answer.
finishers.length = 0;
const reading = [
  createFetch(pool)("/stream").then((response) => response.text()),
  createFetch(pool)("/stream").then(({ body }) => new Response(body).text()),
];
while (finishers.length < 2) await new Promise((resolve) => setTimeout(resolve, 2));
for (let i = 0; i < 20; i++) {
  gc();
  await new Promise((resolve) => setTimeout(resolve, 2));
}
seen.reading = leases();
for (const finish of finishers) finish();
seen.texts = await Promise.all(reading);
seen.left = leases();
console.log(JSON.stringify(seen));
process.exit();
`;

test("answers that nobody can read any more give their leases back, and the engine stops", () => {
  const flags = ["--expose-gc", "--input-type=module", "-e", SCRIPT];
  const seen = JSON.parse(
    execFileSync(process.execPath, flags, { encoding: "utf8", timeout: 60_000 }),
  );
  expect(seen).toEqual({
    "JSON, unread": [1, 0, 0],
    "stream, unread": [1, 0, 1],
    "stream, looked at": [1, 0, 1],
    "stream, half read": [1, 0, 1],
    "stream, clone half read": [1, 0, 1],
    reading: 2,
    texts: ["data: 1\n\ndata: 2\n\n", "data: 1\n\ndata: 2\n\n"],
    left: 0,
  });
});
