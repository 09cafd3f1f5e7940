import { describe, expect, test } from "vitest";
import { createFetch } from "../../src/fetch/create-fetch";
import type { FetchRequest } from "../../src/fetch/options";
import { FlowController } from "../../src/flow/index";
import { ConfigError, EndpointError, EndpointPool } from "../../src/index";
import { until } from "../telemetry/servers";
import {
  beginStream,
  deadUrl,
  leasesOf,
  poolOf,
  sendEvent,
  sendJSON,
  startBroken,
  startEngine,
} from "./engines";

const CHAT = "http://pool/v1/chat/completions";
const post = (body: BodyInit): RequestInit => ({ method: "POST", body });
const textStream = (text: string) => new Blob([text]).stream();

/** A `fetch` that notes where it was sent and answers nothing. */
function recorder() {
  const sent: { url: string; init: RequestInit | undefined }[] = [];
  const answer = async (input: string | URL | Request, init?: RequestInit) => {
    sent.push({ url: input instanceof Request ? input.url : String(input), init });
    return new Response(null);
  };
  return { sent, answer };
}

describe("where a request goes", () => {
  test.each([
    ["http://10.0.0.7:8000", "http://pool/v1/models?a=1&b=%20", "/v1/models?a=1&b=%20"],
    ["http://10.0.0.7:8000/", "https://api.openai.com/v1/models", "/v1/models"],
    ["http://10.0.0.7:8000/team/a", "http://pool/v1/models", "/team/a/v1/models"],
    ["http://10.0.0.7:8000/team/a//", "http://pool", "/team/a/"],
    ["http://10.0.0.7:8000", "/v1/models", "/v1/models"],
    ["http://10.0.0.7:8000", "v1/models#part", "/v1/models"],
    ["http://10.0.0.7:8000", "http://user:secret@elsewhere:1/x", "/x"],
    ["http://10.0.0.7:8000", "http://pool//other.example/x", "//other.example/x"],
    ["http://10.0.0.7:8000/team", "http://pool/../../%2e%2e/x", "/team/x"],
  ])("endpoint %s asked for %s gets %s", async (id, url, path) => {
    const { sent, answer } = recorder();
    const pool = poolOf(id);
    for (const input of [url, ...(/^http/.test(url) ? [new URL(url)] : [])]) {
      await createFetch(pool, { fetch: answer })(input);
    }
    for (const one of sent) expect(one.url).toBe(`http://10.0.0.7:8000${path}`);
    expect(leasesOf(pool)).toBe(0);
  });

  test("the caller's init is handed on as it is", async () => {
    const { sent, answer } = recorder();
    const init = { ...post("x"), headers: { a: "b" }, dispatcher: "of undici" };
    await createFetch(poolOf("http://a"), { fetch: answer })(CHAT, init);
    expect(sent[0]?.init).toBe(init);
  });

  test("a Request keeps its method, headers and body, and init goes before it", async () => {
    const engine = await startEngine((_, response) => sendJSON(response, {}));
    const pooled = createFetch(poolOf(engine.url));
    const request = () => new Request(CHAT, { ...post("text"), headers: { a: "b" } });
    await (await pooled(request())).text();
    await (await pooled(request(), { headers: { a: "c" } })).text();
    await (await pooled(new Request(CHAT))).text();
    const seen = engine.requests.map(({ method, body, headers }) => [method, body, headers.a]);
    expect(seen).toEqual([
      ["POST", "text", "b"],
      ["POST", "text", "c"],
      ["GET", "", undefined],
    ]);
  });

  test.each(["data:text/plain,x", "file:///etc/passwd", "http://"])(
    "%s is refused",
    async (url) => {
      const pool = poolOf("http://a");
      await expect(createFetch(pool)(url)).rejects.toThrow(TypeError);
      expect(leasesOf(pool)).toBe(0);
    },
  );

  test.each(["not an address", "ftp://a", "http://a?key=1", "http://u:p@a", "http://a#b"])(
    "an endpoint whose id is %s is refused by name, and keeps no lease",
    async (id) => {
      const pool = poolOf(id);
      const refusal = createFetch(pool)(CHAT);
      await expect(refusal).rejects.toThrow(EndpointError);
      await expect(refusal).rejects.not.toThrow(/u:p|key=1/);
      expect(leasesOf(pool)).toBe(0);
    },
  );

  test("the global fetch is looked up at each call", async () => {
    const { sent, answer } = recorder();
    const pooled = createFetch(poolOf("http://10.0.0.7"));
    const original = globalThis.fetch;
    globalThis.fetch = answer;
    try {
      await pooled(CHAT);
    } finally {
      globalThis.fetch = original;
    }
    expect(sent).toHaveLength(1);
  });
});

describe("retries before the first byte", () => {
  test("a refused connection and one that is hung up go to the next candidate", async () => {
    const broken = await startBroken();
    const good = await startEngine((_, response) => sendJSON(response, { ok: true }));
    const pool = poolOf(await deadUrl(), broken.url, good.url);
    const response = await createFetch(pool)(CHAT, post("{}"));
    expect(await response.json()).toEqual({ ok: true });
    expect(broken.asked).toHaveLength(1);
    expect(leasesOf(pool)).toBe(0);
  });

  test.each([429, 503])(
    "%i goes to the next candidate, and its connection is given up",
    async (status) => {
      const busy = await startEngine((_, response) =>
        sendJSON(response, { error: "busy" }, status),
      );
      const good = await startEngine((_, response) => sendJSON(response, { ok: true }));
      const pool = poolOf(busy.url, good.url);
      const response = await createFetch(pool)(CHAT, post("{}"));
      expect([response.status, await response.json()]).toEqual([200, { ok: true }]);
      expect([busy.requests.length, good.requests.length]).toEqual([1, 1]);
      expect(leasesOf(pool)).toBe(0);
    },
  );

  test.each([400, 404, 500, 502])("%i is the answer", async (status) => {
    const bad = await startEngine((_, response) => sendJSON(response, { no: status }, status));
    const good = await startEngine();
    const pool = poolOf(bad.url, good.url);
    const response = await createFetch(pool)(CHAT, post("{}"));
    expect([response.status, await response.json()]).toEqual([status, { no: status }]);
    expect([good.requests.length, leasesOf(pool)]).toEqual([0, 0]);
  });

  test("when nobody is left the last answer is handed over whole", async () => {
    const answers = [429, 503].map((status) =>
      startEngine((_, response) => sendJSON(response, { busy: status }, status)),
    );
    const [first, second] = await Promise.all(answers);
    const pool = poolOf(first?.url ?? "", second?.url ?? "");
    const response = await createFetch(pool)(CHAT, post("{}"));
    expect([response.status, await response.json()]).toEqual([503, { busy: 503 }]);
    expect(leasesOf(pool)).toBe(0);
  });

  test("so is the last failure", async () => {
    const pool = poolOf(await deadUrl(), await deadUrl());
    await expect(createFetch(pool)(CHAT)).rejects.toThrow(TypeError);
    expect(leasesOf(pool)).toBe(0);
  });

  test.each([
    [0, 1],
    [1, 2],
    [2, 3],
    [9, 4],
  ])("with %i retries of 4 endpoints, %i are asked", async (retries, asked) => {
    const busy = await Promise.all(
      [1, 2, 3, 4].map(() => startEngine((_, response) => sendJSON(response, {}, 503))),
    );
    const pool = poolOf(...busy.map(({ url }) => url));
    const response = await createFetch(pool, { retries })(CHAT, post("{}"));
    await response.text();
    expect(busy.map(({ requests }) => requests.length)).toEqual(
      busy.map((_, i) => (i < asked ? 1 : 0)),
    );
    expect(leasesOf(pool)).toBe(0);
  });

  test.each<[string, () => BodyInit]>([
    ["a text", () => "kept"],
    ["bytes", () => new TextEncoder().encode("kept")],
    ["an ArrayBuffer", () => new TextEncoder().encode("kept").buffer],
    ["a Blob", () => new Blob(["kept"])],
    ["a form", () => new URLSearchParams({ kept: "kept" })],
    [
      "a form of parts",
      () => {
        const form = new FormData();
        form.set("kept", "kept");
        return form;
      },
    ],
  ])("a body that is %s is sent again", async (_, makeBody) => {
    const busy = await startEngine((_asked, response) => sendJSON(response, {}, 503));
    const good = await startEngine((_asked, response) => sendJSON(response, {}));
    const response = await createFetch(poolOf(busy.url, good.url))(CHAT, post(makeBody()));
    await response.text();
    expect(good.requests[0]?.body).toContain("kept");
  });

  test("a body that is a stream is sent once", async () => {
    const busy = await startEngine((_, response) => sendJSON(response, {}, 503));
    const good = await startEngine();
    const pool = poolOf(busy.url, good.url);
    const pooled = createFetch(pool);
    const streamed = { ...post(textStream("gone")), duplex: "half" } as RequestInit; // not in DOM's types
    for (const response of [
      await pooled(CHAT, streamed),
      await pooled(new Request(CHAT, post("x"))),
    ]) {
      expect(response.status).toBe(503);
      await response.text();
    }
    expect(busy.requests.map(({ body }) => body)).toEqual(["gone", "x"]);
    expect([good.requests.length, leasesOf(pool)]).toEqual([0, 0]);
  });

  test("what breaks after the first byte is not sent again", async () => {
    const head =
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99\r\n\r\ndata";
    const broken = await startBroken(head);
    const good = await startEngine();
    const pool = poolOf(broken.url, good.url);
    const response = await createFetch(pool)(CHAT, post("{}"));
    await expect(response.text()).rejects.toThrow(TypeError);
    expect([good.requests.length, leasesOf(pool)]).toEqual([0, 0]);
  });

  test("what is no HTTP is not sent again", async () => {
    const garbage = await startBroken("garbage\r\n\r\n");
    const good = await startEngine();
    const pool = poolOf(garbage.url, good.url);
    await expect(createFetch(pool)(CHAT, post("{}"))).rejects.toThrow(TypeError);
    expect([good.requests.length, leasesOf(pool)]).toEqual([0, 0]);
  });
});

describe("abort before the headers", () => {
  test("an aborted signal takes no lease and sends nothing", async () => {
    const { sent, answer } = recorder();
    const reason = new Error("mine");
    const pooled = createFetch(poolOf("http://a"), { fetch: answer });
    await expect(pooled(CHAT, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(sent).toEqual([]);
  });

  test.each(["init", "Request"])("the signal of %s ends a request that waits", async (place) => {
    const engine = await startEngine(() => undefined);
    const other = await startEngine();
    const pool = poolOf(engine.url, other.url);
    const abort = new AbortController();
    const { signal } = abort;
    const pooled = createFetch(pool);
    const answer =
      place === "init" ? pooled(CHAT, { signal }) : pooled(new Request(CHAT, { signal }));
    await until(() => engine.requests.length === 1, "the engine was asked");
    expect(leasesOf(pool)).toBe(1);
    abort.abort();
    await expect(answer).rejects.toThrow(/abort/);
    expect([leasesOf(pool), other.requests.length]).toEqual([0, 0]);
    await until(() => engine.broken.length === 1, "the engine saw it");
  });

  test("it ends the waiting for the controller, and no place is kept", async () => {
    const engine = await startEngine();
    const pool = poolOf(engine.url);
    pool.report(engine.url, { waitingQueueSize: 99, kvCacheUsagePercent: 0.1 });
    const controller = new FlowController(pool);
    const abort = new AbortController();
    const answer = createFetch(pool, { controller })(CHAT, { signal: abort.signal });
    expect(controller.stats().waiting).toBe(1);
    abort.abort();
    await expect(answer).rejects.toBe(abort.signal.reason);
    expect([controller.stats().waiting, leasesOf(pool), engine.requests.length]).toEqual([0, 0, 0]);
  });
});

describe("what is refused", () => {
  test("an empty pool answers 503 with the reason, in the form of the OpenAI API", async () => {
    const response = await createFetch(new EndpointPool())(CHAT, post("{}"));
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(response.headers.get("x-plimsoll-reason")).toBe("no-endpoints");
    const { error } = await response.json();
    expect(error).toMatchObject({ type: "service_unavailable", code: "no-endpoints", param: null });
    expect(error.message).toContain("no endpoint");
  });

  test("a saturated pool behind a controller answers 429 with what closed the gate", async () => {
    const pool = poolOf("http://10.0.0.7:8000");
    pool.report("http://10.0.0.7:8000", { waitingQueueSize: 7, kvCacheUsagePercent: 0.1 });
    const controller = new FlowController(pool, { mode: "shed" });
    const response = await createFetch(pool, { controller })(CHAT, post("{}"));
    expect(response.status).toBe(429);
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(response.headers.get("x-plimsoll-gate")).toBe("resource=queue; value=7; limit=5");
    expect(JSON.stringify([...response.headers, await response.text()])).not.toContain("10.0.0.7");
  });

  test("a controller that is closed answers 503", async () => {
    const pool = poolOf("http://a");
    const controller = new FlowController(pool);
    await controller.close();
    const response = await createFetch(pool, { controller })(CHAT);
    expect([response.status, (await response.json()).error.code]).toEqual([503, "shutting-down"]);
  });
});

describe("callbacks", () => {
  test("priority, flow, tokens and prefer see the request", async () => {
    const engines = await Promise.all([startEngine(), startEngine()]);
    const pool = poolOf(...engines.map(({ url }) => url));
    const controller = new FlowController(pool, { bands: [{ name: "chat" }, { name: "batch" }] });
    const seen: unknown[] = [];
    const pooled = createFetch(pool, {
      controller,
      priority: ({ headers }) => headers.get("x-priority") ?? undefined,
      flow: ({ path, method }) => {
        seen.push(path, method);
        return "tenant";
      },
      tokens: ({ body }) => String(body).length,
      prefer: () => engines[1]?.url,
    });
    const init = { ...post('{"a":1}'), headers: { "x-priority": "chat" } };
    await (await pooled(`${CHAT}?x=1`, init)).text();
    await (await pooled(CHAT, post("{}"))).text();
    expect(controller.stats().bands.map(({ admitted }) => admitted)).toEqual([1, 1]);
    expect(seen.slice(0, 2)).toEqual(["/v1/chat/completions?x=1", "POST"]);
    expect(engines.map(({ requests }) => requests.length)).toEqual([0, 2]);
    expect(pool.snapshot().meanPromptTokens).toBeCloseTo(7 + (2 - 7) / 64);
  });

  test.each(["tokens", "prefer"] as const)("one that throws rejects the call: %s", async (name) => {
    const pool = poolOf("http://a");
    const fault = new Error("mine");
    const fail = (_: FetchRequest) => {
      throw fault;
    };
    await expect(createFetch(pool, { [name]: fail })(CHAT)).rejects.toBe(fault);
    expect(leasesOf(pool)).toBe(0);
  });

  test("a band that does not exist rejects the call", async () => {
    const pool = poolOf("http://a");
    const controller = new FlowController(pool);
    const pooled = createFetch(pool, { controller, priority: () => "none" });
    await expect(pooled(CHAT)).rejects.toThrow(ConfigError);
  });

  test("a controller without leases only says when", async () => {
    const engine = await startEngine((_, response) => {
      beginStream(response);
      sendEvent(response, {}, null);
    });
    const pool = poolOf(engine.url);
    const { saturation, evaluate, subscribe } = pool;
    const source = {
      saturation: saturation.bind(pool),
      evaluate: evaluate.bind(pool),
      subscribe: subscribe.bind(pool),
    };
    const response = await createFetch(pool, { controller: new FlowController(source) })(CHAT);
    expect(leasesOf(pool)).toBe(1);
    await response.body?.cancel();
    expect(leasesOf(pool)).toBe(0);
  });
});

describe("options", () => {
  test("all faults are reported together", () => {
    const wrong = { retries: -1, fetch: "x", controler: 1, tokens: 3, controller: {} };
    try {
      Reflect.apply(createFetch, undefined, [{}, wrong]);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      const paths = error instanceof ConfigError ? error.faults.map(({ path }) => path) : [];
      expect(paths.sort()).toEqual([
        "controler",
        "controller",
        "fetch",
        "pool",
        "retries",
        "tokens",
      ]);
    }
  });

  test("priority and flow need a controller", () => {
    expect(() => createFetch(poolOf("http://a"), { flow: () => "x" })).toThrow(/controller/);
  });
});
