import { getEventListeners } from "node:events";
import { describe, expect, test, vi } from "vitest";
import { createFetch } from "../../src/fetch/create-fetch";
import type { EndpointPool, Lease, LeaseRequest, ReleaseOptions } from "../../src/index";
import { until } from "../telemetry/servers";
import {
  beginStream,
  leasesOf,
  poolOf,
  sendEvent,
  startBroken,
  startEngine,
  unstartedOf,
} from "./engines";

const CHAT = "http://pool/v1/chat/completions";
const FAILED = { failed: true };

/** A pool that notes how its leases were released, and whether they were started. */
function watch(pool: EndpointPool) {
  const released: (ReleaseOptions | undefined)[] = [];
  const started: Lease[] = [];
  const lease = (request?: LeaseRequest) => {
    const one = pool.lease(request);
    if (one === undefined) return undefined;
    const { release, started: start } = one;
    vi.spyOn(one, "release").mockImplementation((options) => {
      released.push(options);
      release.call(one, options);
    });
    vi.spyOn(one, "started").mockImplementation(() => {
      started.push(one);
      start.call(one);
    });
    return one;
  };
  return { lease, released, started };
}

/** A `fetch` that answers with what it is given, and a pool beside it. */
function answering(body: BodyInit | null, init?: ResponseInit) {
  const pool = poolOf("http://a");
  const leases = watch(pool);
  const pooled = createFetch(leases, { fetch: async () => new Response(body, init) });
  return { pool, pooled, ...leases };
}

const EVENTS = { headers: { "content-type": "text/event-stream; charset=utf-8" } };

/** A body whose pieces are given out one by one. */
function pieces(...texts: string[]) {
  const counts = { pulls: 0, cancelled: [] as unknown[] };
  const stream = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        counts.pulls++;
        const text = texts.shift();
        if (text === undefined) controller.close();
        else controller.enqueue(new TextEncoder().encode(text));
      },
      cancel: (reason) => {
        counts.cancelled.push(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return { stream, counts };
}

describe("a streamed answer", () => {
  test("has its lease started by the first byte of the body, not by the headers", async () => {
    let send = () => {};
    const engine = await startEngine((_, response) => {
      beginStream(response);
      send = () => {
        sendEvent(response, { content: "a" }, null);
        send = () => void response.end();
      };
    });
    const pool = poolOf(engine.url);
    const response = await createFetch(pool)(CHAT);
    const reader = response.body?.getReader();
    const reading = reader?.read();
    expect([leasesOf(pool), unstartedOf(pool)]).toEqual([1, 1]);
    send();
    expect((await reading)?.done).toBe(false);
    expect([leasesOf(pool), unstartedOf(pool)]).toEqual([1, 0]);
    send();
    expect((await reader?.read())?.done).toBe(true);
    expect(leasesOf(pool)).toBe(0);
  });

  test("is not started by an empty piece", async () => {
    const { stream } = pieces("", "a");
    const { pooled, started } = answering(stream, EVENTS);
    const reader = (await pooled(CHAT)).body?.getReader();
    await reader?.read();
    expect(started).toHaveLength(0);
    await reader?.read();
    await reader?.read();
    expect(started).toHaveLength(1);
  });

  test("is read no faster than its reader reads", async () => {
    const { stream, counts } = pieces("a", "b", "c");
    const { pooled } = answering(stream, EVENTS);
    const { body } = await pooled(CHAT);
    expect(counts.pulls).toBe(0);
    const reader = body?.getReader();
    await reader?.read();
    await new Promise(setImmediate);
    expect(counts.pulls).toBe(1);
  });

  test.each([
    ["application/json", 0],
    ["text/plain", 0],
    ["text/event-streamlike", 0],
    ["text/event-stream-like", 0],
    ["TEXT/Event-Stream", 1],
    ["application/x-ndjson", 1],
    ["application/jsonl; charset=utf-8", 1],
  ])("is known by its media type: %s", async (type, starts) => {
    const { stream } = pieces("a", "b");
    const { pooled, started, released } = answering(stream, { headers: { "content-type": type } });
    await new Response((await pooled(CHAT)).body).text();
    expect(started).toHaveLength(starts);
    expect(released).toEqual([{ outputTokens: undefined }]);
  });

  test("may be piped, teed and iterated", async () => {
    const uses: ((body: ReadableStream<Uint8Array>) => Promise<unknown>)[] = [
      async (body) => body.pipeThrough(new TransformStream()).pipeTo(new WritableStream()),
      async (body) => Promise.all(body.tee().map((branch) => new Response(branch).text())),
      async (body) => {
        // Node's streams are iterable; the types of the DOM do not say so.
        for await (const _ of body as unknown as AsyncIterable<Uint8Array>);
      },
    ];
    for (const use of uses) {
      const { pooled, released } = answering(pieces("a", "b").stream, EVENTS);
      const { body } = await pooled(CHAT);
      if (body !== null) await use(body);
      expect(released).toEqual([{ outputTokens: undefined }]);
    }
  });
});

describe("an answer read whole", () => {
  test.each(["arrayBuffer", "blob", "json", "text"] as const)("ends by %s()", async (name) => {
    const { pooled, released, started, pool } = answering('{"a":1}');
    const response = await pooled(CHAT);
    expect(leasesOf(pool)).toBe(1);
    await response[name]();
    expect([started.length, released]).toEqual([0, [{ outputTokens: undefined }]]);
  });

  test("ends by formData()", async () => {
    const { pooled, released } = answering(new URLSearchParams({ a: "1" }));
    expect((await (await pooled(CHAT)).formData()).get("a")).toBe("1");
    expect(released).toHaveLength(1);
  });

  test.each([
    ['{"usage":{"completion_tokens":200}}', 200],
    ['{"usage":{"completion_tokens":"200"}}', undefined],
    ['{"usage":null}', undefined],
    ["null", undefined],
    ["[1]", undefined],
  ])("teaches the pool the tokens that json() finds in %s", async (text, outputTokens) => {
    const { pooled, released } = answering(text);
    await (await pooled(CHAT)).json();
    expect(released).toEqual([{ outputTokens }]);
  });

  test("ends by json() of what is no JSON", async () => {
    const { pooled, released } = answering("<html>");
    await expect((await pooled(CHAT)).json()).rejects.toThrow(SyntaxError);
    expect(released).toEqual([FAILED]);
  });

  test("that is an error teaches nothing", async () => {
    const { pooled, released } = answering("{}", { status: 400 });
    await (await pooled(CHAT)).text();
    expect(released).toEqual([FAILED]);
  });

  test.each<[string, BodyInit | null, ResponseInit]>([
    ["no body", null, { status: 204 }],
    ["an empty body", "", { headers: { "content-length": "0" } }],
  ])("with %s has ended when it comes", async (_, body, init) => {
    const { pooled, released } = answering(body, init);
    expect(await (await pooled(CHAT)).text()).toBe("");
    expect(released).toEqual([undefined]);
  });

  test("may have had its body looked at", async () => {
    const { pooled, released } = answering("{}");
    const response = await pooled(CHAT);
    expect(response.body).toBe(response.body);
    expect(response.bodyUsed).toBe(false);
    expect(await response.json()).toEqual({});
    expect(response.bodyUsed).toBe(true);
    expect(released).toHaveLength(1);
  });

  test("cannot be read twice, and the second reading does not end the first", async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const stream = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        await gate;
        controller.enqueue(new TextEncoder().encode("ab"));
        controller.close();
      },
    });
    const { pooled, released } = answering(stream);
    const response = await pooled(CHAT);
    const first = response.text();
    await expect(response.text()).rejects.toThrow(TypeError);
    await expect(response.body?.cancel()).rejects.toThrow(TypeError);
    expect(released).toEqual([]);
    open();
    expect(await first).toBe("ab");
    expect(released).toHaveLength(1);
  });

  test("cannot be read beside a reader of its body", async () => {
    const { pooled, released } = answering(pieces("a").stream);
    const response = await pooled(CHAT);
    const reader = response.body?.getReader();
    await expect(response.text()).rejects.toThrow(TypeError);
    expect(() => response.clone()).toThrow(TypeError);
    await reader?.read();
    await expect(response.text()).rejects.toThrow(TypeError);
    expect(released).toEqual([]);
    await reader?.cancel();
    expect(released).toEqual([FAILED]);
  });

  test("is the platform's own Response, and says what it said before", async () => {
    const engine = await startEngine((_, response) => {
      response.writeHead(201, "Made", { "x-a": "b" }).end("text");
    });
    const response = await createFetch(poolOf(engine.url))(CHAT);
    expect(response).toBeInstanceOf(Response);
    const { status, statusText, url, ok, redirected, type } = response;
    expect([status, statusText, ok, redirected, type]).toEqual([201, "Made", true, false, "basic"]);
    expect(url).toBe(`${engine.url}/v1/chat/completions`);
    expect(response.headers.get("x-a")).toBe("b");
    expect(Object.keys(response)).toEqual([]);
    await response.text();
  });
});

describe("an answer that ends early", () => {
  test("by cancelling its body, unread or half read", async () => {
    for (const reads of [0, 1]) {
      const { stream, counts } = pieces("a", "b");
      const { pooled, released } = answering(stream, EVENTS);
      const reader = (await pooled(CHAT)).body?.getReader();
      for (let i = 0; i < reads; i++) await reader?.read();
      await reader?.cancel("enough");
      expect(released).toEqual([FAILED]);
      expect(counts.cancelled).toEqual(["enough"]);
    }
  });

  test("by leaving a loop over it", async () => {
    const { stream, counts } = pieces("a", "b");
    const { pooled, released } = answering(stream, EVENTS);
    const { body } = await pooled(CHAT);
    // Node's streams are iterable; the types of the DOM do not say so.
    for await (const _ of body as unknown as AsyncIterable<Uint8Array>) break;
    expect([released, counts.cancelled.length]).toEqual([[FAILED], 1]);
  });

  test("by a connection that breaks", async () => {
    const head =
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99\r\n\r\ndata";
    const broken = await startBroken(head);
    const { lease, released, started } = watch(poolOf(broken.url));
    const response = await createFetch({ lease })(CHAT);
    await expect(new Response(response.body).text()).rejects.toThrow(TypeError);
    expect([started.length, released]).toEqual([1, [FAILED]]);
  });

  test.each(["unread", "half read", "being read", "being read whole"])(
    "by an abort while it is %s",
    async (how) => {
      const engine = await startEngine((_, response) => {
        beginStream(response);
        sendEvent(response, { content: "a" }, null);
      });
      const { lease, released } = watch(poolOf(engine.url));
      const abort = new AbortController();
      const response = await createFetch({ lease })(CHAT, { signal: abort.signal });
      const reading: Promise<unknown>[] = [];
      if (how === "being read whole") reading.push(response.text());
      if (how.endsWith("read")) {
        const reader = how === "unread" ? undefined : response.body?.getReader();
        await reader?.read();
        if (reader && how === "being read") reading.push(reader.read());
      }
      abort.abort();
      expect(released).toEqual([FAILED]);
      expect((await Promise.allSettled(reading)).every(({ status }) => status === "rejected")).toBe(
        true,
      );
      expect(released).toHaveLength(1);
      await until(() => engine.broken.length === 1, "the engine saw it");
    },
  );

  test("by an abort that came together with the headers", async () => {
    const abort = new AbortController();
    const { lease, released } = watch(poolOf("http://a"));
    const pooled = createFetch(
      { lease },
      {
        fetch: async () => {
          abort.abort();
          return new Response("late");
        },
      },
    );
    await pooled(CHAT, { signal: abort.signal });
    expect(released).toEqual([FAILED]);
  });

  test("exactly once, however many ends come together", async () => {
    const abort = new AbortController();
    const { stream } = pieces("a");
    const { pooled, released } = answering(stream, EVENTS);
    const reader = (await pooled(CHAT, { signal: abort.signal })).body?.getReader();
    await reader?.read();
    await reader?.read();
    await reader?.cancel();
    abort.abort();
    expect(released).toEqual([{ outputTokens: undefined }]);
  });
});

describe("a signal that many requests share", () => {
  test("keeps no listener of those that have ended", async () => {
    const { signal } = new AbortController();
    const { pooled } = answering("{}");
    const responses = await Promise.all(Array.from({ length: 5 }, () => pooled(CHAT, { signal })));
    expect(getEventListeners(signal, "abort")).toHaveLength(5);
    await responses[0]?.text();
    await responses[1]?.body?.cancel();
    await responses[2]?.json();
    expect(getEventListeners(signal, "abort")).toHaveLength(2);
  });
});

describe("one createFetch over another", () => {
  test.each(["text", "body", "clone"])("ends both leases, read by %s", async (how) => {
    const inner = answering(pieces("a", "b").stream, EVENTS);
    const outer = watch(poolOf("http://b"));
    const response = await createFetch(outer, { fetch: inner.pooled })(CHAT);
    if (how === "text") await response.text();
    if (how === "body") await new Response(response.body).text();
    if (how === "clone") await response.clone().text();
    expect([inner.released.length, outer.released.length]).toEqual([1, 1]);
  });
});

describe("a clone", () => {
  test.each([0, 1])(
    "ends the lease when it is read, and so does the original: %i",
    async (which) => {
      const { pooled, released } = answering(pieces("a", "b").stream, EVENTS);
      const response = await pooled(CHAT);
      const both = [response, response.clone()];
      expect(await both[which]?.text()).toBe("ab");
      expect(released).toHaveLength(1);
      expect(await new Response(both[1 - which]?.body).text()).toBe("ab");
      expect(released).toHaveLength(1);
    },
  );

  test("must be cancelled as well as the original", async () => {
    const { stream, counts } = pieces("a", "b");
    const { pooled, released } = answering(stream, EVENTS);
    const response = await pooled(CHAT);
    const looked = response.body;
    const copy = response.clone();
    const cancelling = looked?.cancel();
    expect(released).toEqual([]);
    await Promise.all([cancelling, copy.body?.cancel()]);
    expect([released, counts.cancelled.length]).toEqual([[FAILED], 1]);
  });
});
