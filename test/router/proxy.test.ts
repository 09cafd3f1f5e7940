// What a request becomes on its way: anything passes, streams pass as they come, and the lease follows.

import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { until } from "../telemetry/servers";
import { answerAs, chat, eventOf, send, useRouters } from "./engines";

const harness = useRouters();

describe("passing through", () => {
  test.each([
    ["GET", "/v1/models"],
    ["HEAD", "/v1/models"],
    ["POST", "/v1/completions?x=1&y=%20"],
    ["PUT", "/anything/%zz/..;/a?b#c"],
    ["PATCH", "//double//slashes"],
    ["DELETE", "/v1/files/1"],
    ["OPTIONS", "/v1/models"],
    ["PROPFIND", "/"],
    ["PURGE", "/cache"],
  ])("%s %s reaches the endpoint as it is", async (method, path) => {
    const engine = await harness.engine();
    const { url } = await harness.router({ endpoints: [engine.url] });
    const { status } = await send(url, { method, path });
    expect(status).toBe(200);
    expect(engine.seen.map((one) => [one.method, one.url])).toEqual([[method, path]]);
  });

  test("bodies of any type and size arrive byte by byte, both ways", async () => {
    const engine = await harness.engine();
    engine.behave = (request, response, body) => {
      response.writeHead(200, { "content-type": request.headers["content-type"] ?? "" });
      response.end(body);
    };
    const { url } = await harness.router({
      endpoints: [engine.url],
      retry: { keepBodyBytes: 1000 },
    });
    for (const size of [0, 1, 999, 1000, 1001, 100_000, 5_000_000]) {
      const body = Buffer.alloc(size, "xyz\u0000");
      const headers = { "content-type": "not a / type" };
      const answer = await send(url, { method: "POST", path: "/", headers, body });
      expect(answer.body.equals(body), `${size} bytes`).toBe(true);
      expect(answer.headers["content-type"]).toBe("not a / type");
    }
  });

  test("a compressed answer stays as it is", async () => {
    const engine = await harness.engine();
    const zipped = gzipSync("a long text ".repeat(1000));
    engine.behave = (_, response) => {
      response.writeHead(200, { "content-encoding": "gzip", "content-length": zipped.length });
      response.end(zipped);
    };
    const { url } = await harness.router({ endpoints: [engine.url] });
    const answer = await send(url);
    expect(answer.body.equals(zipped)).toBe(true);
    expect(answer.headers["content-encoding"]).toBe("gzip");
  });

  test("errors of the endpoint are the client's to see, and nothing is tried again", async () => {
    const engine = await harness.engine();
    const { url } = await harness.router({ endpoints: [engine.url] });
    for (const status of [400, 404, 418, 500, 502]) {
      engine.behave = (_, response) => response.writeHead(status).end("why");
      const answer = await chat(url);
      expect([answer.status, answer.body.toString()]).toEqual([status, "why"]);
    }
    expect(engine.seen.length).toBe(5);
  });

  test("answers without a body, or to HEAD, end at once", async () => {
    const engine = await harness.engine();
    const { url } = await harness.router({ endpoints: [engine.url] });
    for (const status of [204, 304]) {
      engine.behave = (_, response) => response.writeHead(status).end();
      expect((await send(url)).status).toBe(status);
    }
    engine.behave = (_, response) => response.writeHead(200, { "content-length": 1234 }).end();
    const head = await send(url, { method: "HEAD" });
    expect([head.headers["content-length"], head.body.length]).toEqual(["1234", 0]);
  });

  test("an early hint is not taken for the answer", async () => {
    const engine = await harness.engine();
    engine.behave = (_, response) => {
      response.writeEarlyHints({ link: "</a>; rel=preload" });
      response.end("after");
    };
    const { url } = await harness.router({ endpoints: [engine.url] });
    expect((await send(url)).body.toString()).toBe("after");
  });

  test("the answer names its endpoint, under a name of one's own or not at all", async () => {
    const engine = await harness.engine();
    const usual = await harness.router({ endpoints: [engine.url] });
    expect((await send(usual.url)).headers["x-plimsoll-endpoint"]).toBe(engine.url);
    const named = await harness.router({
      endpoints: [{ url: engine.url, id: "gpu 7 \u00e4" }],
      headers: { endpoint: "x-served-by" },
    });
    engine.behave = (_, response) => response.setHeader("X-Served-By", "somebody else").end();
    expect((await send(named.url)).headers["x-served-by"]).toBe("gpu%207%20%C3%A4");
    const silent = await harness.router({
      endpoints: [engine.url],
      headers: { endpoint: false },
    });
    expect((await send(silent.url)).headers).not.toHaveProperty("x-plimsoll-endpoint");
  });
});

describe("streams", () => {
  test("each event goes on when it comes, and the first byte starts the lease", async () => {
    const engine = await harness.engine();
    let go: (() => void) | undefined;
    engine.behave = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      const events = ["a", "b"];
      go = () => {
        const next = events.shift();
        if (next === undefined) response.end();
        else response.write(eventOf(next));
      };
    };
    const { router, url } = await harness.router({ endpoints: [engine.url] });
    const leases = () => router.pool.snapshot().endpoints[0];
    const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", body: "{}" });
    // Its headers are there before any token, and say nothing of a start.
    expect(leases()).toMatchObject({ leases: 1, unstartedLeases: 1 });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    go?.();
    expect((await reader?.read())?.value).toBe(eventOf("a"));
    expect(leases()).toMatchObject({ leases: 1, unstartedLeases: 0 });
    go?.();
    expect((await reader?.read())?.value).toBe(eventOf("b"));
    go?.();
    expect((await reader?.read())?.done).toBe(true);
    await until(() => leases()?.leases === 0, "the lease is released");
  });

  test("an answer that is no stream does not report a start", async () => {
    const engine = await harness.engine();
    let finish: (() => void) | undefined;
    engine.behave = (_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.write("{");
      finish = () => response.end("}");
    };
    const { router, url } = await harness.router({ endpoints: [engine.url] });
    const response = await fetch(url);
    await until(() => finish !== undefined, "the first byte was sent");
    expect(router.pool.snapshot().endpoints[0]).toMatchObject({ leases: 1, unstartedLeases: 1 });
    finish?.();
    expect(await response.text()).toBe("{}");
  });

  test("a client that does not read holds the endpoint back", async () => {
    const engine = await harness.engine();
    let written = 0;
    const chunk = Buffer.alloc(65_536);
    engine.behave = (_, response) => {
      response.writeHead(200, { "content-type": "application/octet-stream" });
      const fill = () => {
        do written += chunk.length;
        while (response.write(chunk));
      };
      response.on("drain", fill);
      fill();
    };
    const { url } = await harness.router({ endpoints: [engine.url] });
    const abort = new AbortController();
    const response = await fetch(url, { signal: abort.signal });
    const reader = response.body?.getReader();
    await reader?.read();
    // All buffers on the way fill up, and then nothing moves any more.
    let before = -1;
    while (written !== before) {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(written).toBeLessThan(64 * 2 ** 20);
    abort.abort();
  });

  test("two requests of one connection are two requests", async () => {
    const engine = await harness.engine("one");
    const { url } = await harness.router({ endpoints: [engine.url] });
    for (let i = 0; i < 3; i++) {
      const response = await fetch(`${url}/${i}`, { method: "POST", body: "x".repeat(i) });
      expect(await response.json()).toMatchObject({ path: `/${i}`, bytes: i });
    }
  });

  test("the trailer of a chunked answer is dropped, and its body is whole", async () => {
    const engine = await harness.engine();
    engine.behave = (_, response) => {
      response.writeHead(200, { trailer: "x-checksum", "transfer-encoding": "chunked" });
      response.write("body");
      response.addTrailers({ "x-checksum": "abc" });
      response.end();
    };
    const { url } = await harness.router({ endpoints: [engine.url] });
    const answer = await send(url);
    expect([answer.body.toString(), answer.isWhole]).toEqual(["body", true]);
    expect(answer.headers).not.toHaveProperty("trailer");
  });
});

describe("in-band telemetry", () => {
  test("that nobody has asked for is not believed, and not passed on", async () => {
    const engine = await harness.engine();
    engine.behave = (_, response) => {
      response.setHeader("endpoint-load-metrics", "TEXT named_metrics.num_requests_waiting=300");
      response.end("fine");
    };
    const quiet = { interval: "10s", metricsStalenessThreshold: "60s" };
    const { router, url } = await harness.router({ endpoints: [engine.url], ...quiet });
    expect((await send(url)).headers).not.toHaveProperty("endpoint-load-metrics");
    expect(router.pool.snapshot().endpoints[0]?.waitingQueueSize).toBe(0);
  });

  test("is asked for, read, and kept from the client", async () => {
    const engine = await harness.engine();
    engine.behave = (_, response) => {
      response.setHeader(
        "endpoint-load-metrics",
        "TEXT named_metrics.kv_cache_usage_perc=0.5, named_metrics.num_requests_waiting=3",
      );
      response.end("fine");
    };
    const { router, url } = await harness.router({
      endpoints: [engine.url],
      interval: "1s",
      metricsStalenessThreshold: "60s",
      inBand: true,
    });
    const answer = await send(url, { headers: { "endpoint-load-metrics-format": "TEXT" } });
    expect(answer.headers).not.toHaveProperty("endpoint-load-metrics");
    expect(engine.seen[0]?.headers["endpoint-load-metrics-format"]).toBe("JSON");
    expect(router.pool.snapshot().endpoints[0]).toMatchObject({
      waitingQueueSize: 3,
      kvCacheUsagePercent: 0.5,
    });
  });
});

describe("sessions", () => {
  const served = async (url: string, more: object, headers: Record<string, string> = {}) =>
    (await chat(url, { ...more }, headers)).headers["x-plimsoll-endpoint"];

  test("of a header, a cache key or a user, as configured, stay at one endpoint", async () => {
    const engines = [];
    for (let i = 0; i < 5; i++) engines.push(await harness.engine());
    const { url } = await harness.router({
      endpoints: engines.map((one) => one.url),
      affinity: { header: "X-Session", body: ["prompt_cache_key", "user"] },
    });
    for (let session = 0; session < 6; session++) {
      const name = `s${session}`;
      const all = new Set<string | string[] | undefined>();
      for (let i = 0; i < 3; i++) {
        all.add(await served(url, {}, { "x-session": name }));
        all.add(await served(url, { prompt_cache_key: name }));
        all.add(await served(url, { user: name, prompt_cache_key: "" }));
        all.add(await served(url, { user: "other" }, { "x-session": name }));
      }
      expect(all.size).toBe(1);
    }
  });

  test("move on when their endpoint is full, and come back", async () => {
    const engines = [await harness.engine(), await harness.engine(), await harness.engine()];
    const { router, url } = await harness.router({ endpoints: engines.map((one) => one.url) });
    const home = await served(url, { prompt_cache_key: "k" });
    const engine = engines.find((one) => one.url === home);
    if (engine === undefined) throw new Error("no home");
    engine.waiting = 100;
    const isFull = () => router.pool.candidates().length === 2;
    await until(isFull, "it is full");
    const second = await served(url, { prompt_cache_key: "k" });
    expect(second).not.toBe(home);
    expect(await served(url, { prompt_cache_key: "k" })).toBe(second);
    engine.waiting = 0;
    await until(() => !isFull(), "it has room");
    expect(await served(url, { prompt_cache_key: "k" })).toBe(home);
  });
});

describe("holding back", () => {
  test("a saturated pool lets requests wait, and go when it has room", async () => {
    const engine = await harness.engine();
    engine.waiting = 50;
    const { router, url } = await harness.router({ endpoints: [engine.url] });
    const answer = chat(url);
    await until(() => router.snapshot().gates[0]?.waiting === 1, "it waits");
    expect(engine.seen.length).toBe(0);
    engine.waiting = 0;
    expect((await answer).status).toBe(200);
  });

  test("a refusal says when to try again, why, and what closed the gate", async () => {
    const engine = await harness.engine();
    engine.waiting = 7;
    const { url } = await harness.router({ endpoints: [engine.url], flow: { mode: "shed" } });
    const { status, headers, body } = await chat(url);
    expect(status).toBe(429);
    expect(Number(headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(headers).toMatchObject({
      "x-plimsoll-reason": "saturated",
      "x-plimsoll-gate": "resource=queue; value=7; limit=5",
    });
    expect(JSON.parse(body.toString()).error).toMatchObject({
      type: "rate_limit_exceeded",
      code: "saturated",
    });
  });

  test("a pool without endpoints answers 503 at once", async () => {
    const { url } = await harness.router({ endpoints: [], flow: { mode: "shed" } });
    const { status, headers } = await chat(url);
    expect([status, headers["x-plimsoll-reason"]]).toEqual([503, "no-endpoints"]);
    expect(headers["retry-after"]).toBeDefined();
  });

  test("bands and tenants come from headers, if these are trusted", async () => {
    const engine = await harness.engine();
    engine.waiting = 50;
    const bands = [{ name: "high" }, { name: "low", maxRequests: 0 }];
    const headers = { priority: "x-priority", tenant: "x-tenant" };
    const { router, url } = await harness.router({
      ...{ endpoints: [engine.url], flow: { bands }, headers },
    });
    const high = chat(url, {}, { "x-priority": "high", "x-tenant": "a" });
    await until(() => router.snapshot().gates[0]?.bands[0]?.waiting === 1, "it waits");
    // What no band is called is the lowest, and that may hold nothing.
    for (const name of ["low", "odd", "0"]) {
      expect((await chat(url, {}, { "x-priority": name })).status).toBe(429);
    }
    engine.waiting = 0;
    expect((await high).status).toBe(200);
    const deaf = await harness.router({ endpoints: [engine.url], flow: { bands } });
    engine.waiting = 50;
    await until(() => deaf.router.pool.saturation() > 1, "it is saturated");
    expect((await chat(deaf.url, {}, { "x-priority": "high" })).status).toBe(429);
  });
});

test("answers of many endpoints are never mixed", async () => {
  const names = ["a", "b", "c", "d"];
  const engines = await Promise.all(names.map((name) => harness.engine(name)));
  engines.forEach((engine, i) => {
    engine.behave = answerAs(names[i] ?? "");
  });
  const { url } = await harness.router({ endpoints: engines.map((one) => one.url) });
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, i) => chat(url, { stream: i % 2 === 0, n: i })),
  );
  for (const { status, headers, body } of answers) {
    expect(status).toBe(200);
    const index = engines.findIndex((one) => one.url === headers["x-plimsoll-endpoint"]);
    expect(body.toString()).toContain(`"content":"${names[index]}"`);
  }
});
