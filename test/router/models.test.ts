// Requests that ask for a model: how it is read, where they go, and what happens when nobody serves it.

import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { RouterConfig } from "../../src/router/options";
import { until } from "../telemetry/servers";
import { chat, QUICK, send, useRouters } from "./engines";

const harness = useRouters();

describe("models", () => {
  test("a request goes only to endpoints that serve its model", async () => {
    const [a, b, c] = [
      await harness.engine("a"),
      await harness.engine("b"),
      await harness.engine("c"),
    ];
    const { router, url } = await harness.router({
      endpoints: [
        { url: a.url, models: "small" },
        { url: b.url, models: ["large", "m\u00fc"] },
        { url: c.url },
      ],
    });
    const askedFor = async (model: string, times = 12) => {
      for (const one of [a, b, c]) one.seen.length = 0;
      for (let i = 0; i < times; i++) expect((await chat(url, { model })).status).toBe(200);
      return [a, b, c].map(({ seen }) => seen.length > 0);
    };
    expect(await askedFor("small")).toEqual([true, false, true]);
    expect(await askedFor("large")).toEqual([false, true, true]);
    expect(await askedFor("m\u00fc")).toEqual([false, true, true]);
    for (const model of ["other", "*", "(other)", "__proto__"]) {
      expect(await askedFor(model)).toEqual([false, false, true]);
    }
    const gates = router.snapshot().gates.map(({ model }) => model);
    expect(gates).toEqual(["*", "small", "large", "m\u00fc", "(other)"]);
  });

  test("a model that nobody serves is not found, in the words of OpenAI", async () => {
    const engine = await harness.engine();
    const { url } = await harness.router({ endpoints: [{ url: engine.url, models: "small" }] });
    const answer = await chat(url, { model: "other" });
    expect([answer.status, answer.headers["x-plimsoll-reason"]]).toEqual([404, "model-not-found"]);
    expect(JSON.parse(answer.body.toString())).toEqual({
      error: {
        message: 'no endpoint serves the model "other"',
        type: "invalid_request_error",
        param: null,
        code: "model_not_found",
      },
    });
    expect((await send(url)).status).toBe(200);
  });

  test("one model that is saturated holds back no other", async () => {
    const [a, b] = [await harness.engine("a"), await harness.engine("b")];
    a.waiting = 50;
    const { url } = await harness.router({
      endpoints: [
        { url: a.url, models: "a" },
        { url: b.url, models: "b" },
      ],
      flow: { ttl: "30ms" },
    });
    expect((await chat(url, { model: "b" })).status).toBe(200);
    const answer = await chat(url, { model: "a" });
    expect([answer.status, answer.headers["x-plimsoll-reason"]]).toEqual([429, "ttl-expired"]);
  });

  describe("of which is asked", () => {
    const two = async (limits: RouterConfig = {}) => {
      const [a, b] = [await harness.engine("a"), await harness.engine("b")];
      const endpoints = [
        { url: a.url, models: "a" },
        { url: b.url, models: "b" },
      ];
      return { a, b, ...(await harness.router({ endpoints, ...limits })) };
    };
    const post = (url: string, body: string | Buffer, headers: Record<string, string> = {}) =>
      send(url, { method: "POST", path: "/v1/completions", body, headers });

    test("behind a prompt that is longer than what is kept", async () => {
      const { a, b, url, router } = await two({ retry: { keepBodyBytes: 1000 } });
      for (let i = 0; i < 6; i++) {
        const body = JSON.stringify({ messages: ["x".repeat(500_000)], model: "b", n: i });
        const answer = await post(url, body, { "content-type": "application/json" });
        expect(JSON.parse(answer.body.toString())).toMatchObject({ id: "b", bytes: body.length });
      }
      expect([a.seen.length, b.seen.length]).toEqual([0, 6]);
      await until(() => router.snapshot().keptBytes === 0, "nothing is kept");
    });

    test("behind more than all bodies together may take: 413, and nobody is asked", async () => {
      const retry = { keepBodyBytes: 1000, keepTotalBytes: 100_000 };
      const { a, b, url } = await two({ retry });
      const body = JSON.stringify({ messages: ["x".repeat(500_000)], model: "b" });
      const { status, headers } = await post(url, body);
      expect([status, headers["x-plimsoll-reason"]]).toEqual([413, "body-too-large"]);
      expect(a.seen.length + b.seen.length).toBe(0);
    });

    test.each([
      ["text/plain", "identity"],
      ["", "Identity"],
      ["application/x-www-form-urlencoded", ""],
    ])("in JSON under the type %j and the coding %j", async (type, coding) => {
      const { a, url } = await two();
      const headers = { "content-type": type, ...(coding && { "content-encoding": coding }) };
      for (let i = 0; i < 6; i++) {
        expect((await post(url, '{"model":"b"}', headers)).status).toBe(200);
      }
      expect(a.seen.length).toBe(0);
    });

    test("in a form, behind its file", async () => {
      const { a, b, url } = await two({ retry: { keepBodyBytes: 1000 } });
      const form = new FormData();
      form.append("file", new Blob([new Uint8Array(300_000)]), "speech.wav");
      form.append("model", "b");
      const { status } = await fetch(`${url}/v1/audio/transcriptions`, {
        ...{ method: "POST", body: form },
      });
      expect([status, a.seen.length, b.seen.length]).toEqual([200, 0, 1]);
    });

    test("in a body that is compressed: 415, and nobody is asked", async () => {
      const { a, b, url } = await two();
      const body = gzipSync('{"model":"b"}');
      const { status, headers } = await post(url, body, { "content-encoding": "gzip" });
      expect([status, headers["x-plimsoll-reason"]]).toEqual([415, "unreadable-body"]);
      expect(a.seen.length + b.seen.length).toBe(0);
      const any = await harness.router({ endpoints: [a.url] });
      const passed = await post(any.url, body, { "content-encoding": "gzip" });
      expect([passed.status, a.seen[0]?.body.equals(body)]).toEqual([200, true]);
    });
  });

  describe("whose last endpoint goes", () => {
    const without = async (flow: RouterConfig["flow"]) => {
      const [a, b] = [await harness.engine("a"), await harness.engine("b")];
      const endpoints = [
        { url: a.url, models: "a" },
        { url: b.url, models: "b" },
      ];
      const home = await harness.router({ endpoints, flow });
      const set = (...which: number[]) =>
        home.router.reload({ ...QUICK, flow, endpoints: which.map((i) => endpoints[i] ?? "") });
      return { a, b, set, ...home };
    };

    test("is waited for, and what waits is served when one comes", async () => {
      const { a, b, set, url, router } = await without({});
      a.waiting = 50;
      await until(() => router.pool.get(a.url)?.waiting === 50, "it is full");
      const answer = chat(url, { model: "a" });
      await until(() => router.snapshot().gates[1]?.waiting === 1, "it waits");
      await set(1);
      const late = chat(url, { model: "a" });
      await until(() => router.snapshot().gates[1]?.waiting === 2, "both wait");
      expect((await chat(url, { model: "b" })).status).toBe(200);
      a.waiting = 0;
      await set(0, 1);
      expect([(await answer).status, (await late).status]).toEqual([200, 200]);
      expect([a.seen.length, b.seen.length]).toEqual([2, 1]);
    });

    test("has no endpoints, and does not shut down", async () => {
      const { set, url } = await without({ ttl: "50ms" });
      await set(1);
      const { status, headers } = await chat(url, { model: "a" });
      expect([status, headers["x-plimsoll-reason"]]).toEqual([503, "no-endpoints"]);
      await set();
      const none = await chat(url, { model: "a" });
      expect([none.status, none.headers["x-plimsoll-reason"]]).toEqual([503, "no-endpoints"]);
    });

    test("is served by those that serve any, once there are some", async () => {
      const { a, b, url, router } = await without({});
      await router.reload({ ...QUICK, endpoints: [{ url: a.url, models: "a" }, b.url] });
      await until(() => router.pool.evaluate().fresh === 2, "both are read");
      expect((await chat(url, { model: "b" })).headers["x-plimsoll-endpoint"]).toBe(b.url);
      await router.reload({ ...QUICK, endpoints: [b.url] });
      expect((await chat(url, { model: "a" })).headers["x-plimsoll-endpoint"]).toBe(b.url);
    });
  });
});
