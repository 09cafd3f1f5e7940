// The admin port: metrics that tell what happened, without a label that grows, and health that is true.

import { describe, expect, test } from "vitest";
import { until } from "../telemetry/servers";
import { chat, type Engine, QUICK, send, useRouters } from "./engines";

const harness = useRouters();
const admin = { host: "127.0.0.1", port: 0 };

/** Series by name and labels. */
async function read(address: string): Promise<Map<string, number>> {
  const { body, headers } = await send(address, { path: "/metrics" });
  expect(headers["content-type"]).toContain("text/plain");
  const lines = body.toString().split("\n");
  return new Map(
    lines
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => {
        const at = line.lastIndexOf(" ");
        return [line.slice(0, at), Number(line.slice(at + 1))];
      }),
  );
}

describe("/metrics", () => {
  test("shows the pool, its endpoints, and what has happened", async () => {
    const [a, b] = [await harness.engine("a"), await harness.engine("b")];
    const { router, url } = await harness.router({ endpoints: [a.url, b.url], admin });
    const address = router.addresses?.admin ?? "";
    for (let i = 0; i < 6; i++) await chat(url, { stream: i % 2 === 0 });
    const series = await read(address);
    const of = (name: string) => series.get(`plimsoll_${name}`);
    for (const aggregation of ["mean", "capped", "weighted", "max"]) {
      expect(of(`saturation{aggregation="${aggregation}"}`)).toBeLessThan(0.5);
    }
    expect(of("candidates")).toBe(2);
    expect(of('endpoints{freshness="fresh"}')).toBe(2);
    expect(of('requests_total{outcome="answered"}')).toBe(6);
    expect(of("time_to_first_byte_seconds_count")).toBe(6);
    expect(of("upstream_duration_seconds_count")).toBe(6);
    expect(of('queue_wait_seconds_count{band="0"}')).toBe(6);
    expect(of('queue_requests{model="*",band="0"}')).toBe(0);
    const answers = [a, b].map((one) =>
      of(`upstream_answers_total{endpoint="${one.url}",class="2xx"}`),
    );
    expect((answers[0] ?? 0) + (answers[1] ?? 0)).toBe(6);
    for (const name of ["score", "waiting_requests", "kv_cache_usage_ratio", "leases"]) {
      expect(of(`endpoint_${name}{endpoint="${a.url}"}`), name).toBeDefined();
    }
    expect(of(`endpoint_candidate{endpoint="${a.url}"}`)).toBe(1);
    expect(of(`endpoint_sample_age_seconds{endpoint="${a.url}"}`)).toBeLessThan(5);
  });

  test("counts refusals, retries, drops and fail-open decisions by why", async () => {
    const [a, b] = [await harness.engine("a"), await harness.engine("b")];
    for (const one of [a, b]) one.behave = (_, response) => response.writeHead(503).end();
    const { router, url } = await harness.router({
      endpoints: [a.url, b.url],
      admin,
      retry: { attempts: 2, holdOff: "10ms", longestHoldOff: "10ms" },
      flow: { ceilings: { policy: "static", ceiling: 1000 }, mode: "shed" },
    });
    const address = router.addresses?.admin ?? "";
    expect((await chat(url)).status).toBe(503);
    for (const one of [a, b]) one.waiting = 50;
    await until(() => router.pool.evaluate().failedOpen, "both are full");
    await until(() => router.snapshot().heldOff.length === 0, "both may be asked");
    // Which endpoints do not pass is looked up again after 50 ms.
    await new Promise((resolve) => setTimeout(resolve, 60));
    await chat(url);
    const series = await read(address);
    expect(series.get('plimsoll_retries_total{reason="503"}')).toBeGreaterThanOrEqual(1);
    expect(series.get('plimsoll_upstream_refusals_total{reason="503"}')).toBeGreaterThanOrEqual(1);
    expect(series.get('plimsoll_filter_drops_total{reason="queue-full"}')).toBeGreaterThan(0);
    expect(series.get('plimsoll_decisions_total{reason="over-queue-limit"}')).toBeGreaterThan(0);
    expect(series.get("plimsoll_candidates")).toBe(0);
  });

  test("forgets an endpoint that is gone", async () => {
    const [a, b] = [await harness.engine("a"), await harness.engine("b")];
    const { router, url } = await harness.router({ endpoints: [a.url], admin });
    const address = router.addresses?.admin ?? "";
    await chat(url);
    const names = async (one: Engine) =>
      [...(await read(address)).keys()].filter((name) => name.includes(one.url));
    expect((await names(a)).length).toBeGreaterThan(5);
    await router.reload({ ...QUICK, endpoints: [b.url], admin });
    expect(await names(a)).toEqual([]);
  });

  test("has no series more for what clients make up", async () => {
    const engine = await harness.engine();
    const headers = { priority: "x-priority", tenant: "x-tenant" };
    const { router, url } = await harness.router({
      ...{ endpoints: [engine.url], admin, headers },
      affinity: { header: "x-session" },
    });
    const address = router.addresses?.admin ?? "";
    const name = (i: number) => `made-up-${i}`;
    const ask = (i: number) =>
      chat(
        url,
        { model: name(i), user: name(i), prompt_cache_key: name(i) },
        { "x-priority": name(i), "x-tenant": name(i), "x-session": name(i) },
      );
    await ask(0);
    await send(url);
    const before = [...(await read(address)).keys()];
    for (let i = 1; i < 20; i++) {
      await ask(i);
      await send(url, { path: `/${name(i)}`, method: "PURGE" });
    }
    const after = [...(await read(address)).keys()];
    expect(after).toEqual(before);
    expect(after.join()).not.toContain("made-up");
  });
});

describe("health", () => {
  test("is there from the start; readiness, once an endpoint is known to be there", async () => {
    const engine = await harness.engine();
    const { router } = await harness.router({
      endpoints: [engine.url],
      admin,
      interval: "10ms",
      metricsStalenessThreshold: "50ms",
    });
    const address = router.addresses?.admin ?? "";
    const statusOf = async (path: string) => (await send(address, { path })).status;
    expect([await statusOf("/healthz"), await statusOf("/readyz")]).toEqual([200, 200]);
    await engine.close();
    await until(() => !router.isReady, "it is known to be gone");
    expect([await statusOf("/healthz"), await statusOf("/readyz")]).toEqual([200, 503]);
  });

  test("without any endpoint it is not ready; without any telemetry it is, where that is ignored", async () => {
    const empty = await harness.router({ endpoints: [] });
    expect(empty.router.isReady).toBe(false);
    const engine = await harness.engine();
    const { router, url } = await harness.router({
      endpoints: [engine.url],
      stalenessPolicy: "ignore",
    });
    expect(router.isReady).toBe(true);
    expect((await chat(url)).status).toBe(200);
  });
});

test("/pool is the snapshot, as JSON", async () => {
  const engine = await harness.engine();
  const { router } = await harness.router({ endpoints: [engine.url], admin });
  const { body } = await send(router.addresses?.admin ?? "", { path: "/pool" });
  const shown = JSON.parse(body.toString());
  expect(Object.keys(shown)).toEqual(Object.keys(router.snapshot()));
  expect(shown).toMatchObject({ live: 0, heldOff: [], pool: { endpoints: [{ id: engine.url }] } });
});
