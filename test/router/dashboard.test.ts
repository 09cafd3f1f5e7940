// The dashboard of a running router: its files, its headers, and what it is told of requests.

import { get } from "node:http";
import { expect, test } from "vitest";
import type { FullEvent } from "../../src/dashboard/wire";
import { until } from "../telemetry/servers";
import { chat, send, useRouters } from "./engines";

const harness = useRouters();
const admin = { host: "127.0.0.1", port: 0 };

/** The first event that somebody is told who comes now. */
function fullOf(address: string): Promise<FullEvent> {
  return new Promise((resolve, reject) => {
    const request = get(`${address}/dashboard/events`, { agent: false }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        const [, data] = /^data: (.*)\n/m.exec(text) ?? [];
        if (data === undefined) return;
        request.destroy();
        resolve(JSON.parse(data));
      });
    });
    request.on("error", reject);
  });
}

test("the page and its files come with a strict policy, and name nothing elsewhere", async () => {
  const engine = await harness.engine();
  const { router } = await harness.router({ endpoints: [engine.url], admin });
  const address = router.addresses?.admin ?? "";
  const page = await send(address, { path: "/dashboard" });
  const html = page.body.toString();
  const files = [...html.matchAll(/(?:src|href)="(dashboard\/[^"]+)"/g)].map(([, path]) => path);
  expect(files.map((path) => path?.split(".").at(-1)).sort()).toEqual(["css", "js"]);
  expect(html).not.toMatch(/<style|<script(?![^>]*\ssrc=)|\sstyle=|\son\w+=|https?:/);
  for (const path of ["dashboard", ...files]) {
    const { status, headers } = await send(address, { path: `/${path}` });
    expect(status, path).toBe(200);
    expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'self';/);
    expect(headers["content-security-policy"]).not.toContain("unsafe");
    expect(headers["x-content-type-options"]).toBe("nosniff");
  }
  const packed = await send(address, {
    path: `/${files[0]}`,
    headers: { "accept-encoding": "gzip" },
  });
  expect(packed.headers["content-encoding"]).toBe("gzip");
  expect(packed.headers["cache-control"]).toContain("immutable");
  const moved = await send(address, { path: "/dashboard/" });
  expect([moved.status, moved.headers.location]).toEqual([308, "../dashboard"]);
});

test("it is told of requests that got no answer, and why", async () => {
  const engine = await harness.engine();
  engine.waiting = 50;
  const { router, url } = await harness.router({
    ...{ endpoints: [{ url: engine.url, models: "m" }], admin },
    flow: { bands: [{ name: "only" }], ttl: "50ms" },
  });
  const address = router.addresses?.admin ?? "";
  expect((await chat(url, { model: "m" })).status).toBe(429);
  expect((await chat(url, { model: "other" })).status).toBe(404);
  engine.waiting = 0;
  await until(() => !router.pool.evaluate().failedOpen, "it has room");
  expect((await chat(url, { model: "m" })).status).toBe(200);
  await until(() => router.snapshot().live === 0, "all have ended");
  const { drops, gates, head } = await fullOf(address);
  expect(drops.items).toMatchObject([
    { reason: "ttl-expired", status: 429, model: "m", band: "only" },
    { reason: "model-not-found", status: 404, model: null, band: null },
  ]);
  expect(drops.items[0]?.lastedMs).toBeGreaterThanOrEqual(49);
  expect(gates.map(({ model }) => model)).toEqual(["*", "m"]);
  expect(head.live).toBe(0);
});

test("it is told of a client that goes away", async () => {
  const engine = await harness.engine();
  engine.behave = () => undefined;
  const { router, url } = await harness.router({ endpoints: [engine.url], admin });
  const abort = new AbortController();
  const asked = fetch(`${url}/v1/x`, { method: "POST", body: "{}", signal: abort.signal });
  await until(() => engine.open.size === 1, "it is asked");
  abort.abort();
  await expect(asked).rejects.toThrow();
  await until(() => router.snapshot().live === 0, "it has ended");
  const { drops } = await fullOf(router.addresses?.admin ?? "");
  expect(drops.items).toMatchObject([{ reason: "client-gone", status: null, band: "0" }]);
});

test("history has a point each second, with the time to first token", async () => {
  const engine = await harness.engine();
  const { router, url } = await harness.router({ endpoints: [engine.url], admin });
  await chat(url, { stream: true });
  const address = router.addresses?.admin ?? "";
  const end = performance.now() + 5000;
  let points: FullEvent["history"]["items"] = [];
  while (points.length < 2 && performance.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    points = (await fullOf(address)).history.items;
  }
  expect(points.length).toBeGreaterThanOrEqual(2);
  const means = points.map(([, , mean]) => mean);
  expect(means.filter((mean) => mean !== null && mean > 0)).toHaveLength(1);
});
