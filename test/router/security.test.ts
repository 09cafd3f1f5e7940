// What a hostile client, engine or config cannot do.

import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, test } from "vitest";
import { until } from "../telemetry/servers";
import { chat, type Engine, send, sendRaw, useRouters } from "./engines";

const harness = useRouters();

describe("only configured endpoints are contacted", () => {
  test("whatever the target, the host or a header says", async () => {
    const engine = await harness.engine();
    let contacts = 0;
    const trap = createServer((_, response) => {
      contacts++;
      response.end("trapped");
    });
    await new Promise<void>((resolve) => trap.listen(0, "127.0.0.1", () => resolve()));
    harness.keep({
      close: () => new Promise<void>((resolve) => trap.close(() => resolve())),
    });
    const { port } = trap.address() as AddressInfo;
    const evil = `127.0.0.1:${port}`;
    const { url } = await harness.router({ endpoints: [engine.url] });
    const end = "connection: close\r\n\r\n";
    for (const [target, path] of [
      [`http://${evil}/a?b=1#c`, "/a?b=1"],
      [`HTTP://user:pass@${evil}`, "/"],
      [`http://${evil}?q`, "/?q"],
      [`//${evil}/a`, `//${evil}/a`],
      [`/@${evil}/a`, `/@${evil}/a`],
      ["/..//../a", "/..//../a"],
    ]) {
      engine.seen.length = 0;
      const headers = `host: ${evil}\r\nx-forwarded-host: ${evil}\r\nforwarded: host=${evil}\r\n`;
      await sendRaw(url, `GET ${target} HTTP/1.1\r\n${headers}${end}`);
      expect(engine.seen.map((one) => one.url)).toEqual([path]);
      expect(engine.seen[0]?.headers.host).toBe(new URL(engine.url).host);
    }
    for (const target of ["*", "evil", `ftp://${evil}/`]) {
      const answer = await sendRaw(url, `OPTIONS ${target} HTTP/1.1\r\nhost: x\r\n${end}`);
      expect(answer).toMatch(/^HTTP\/1.1 400 /);
    }
    expect(await sendRaw(url, `CONNECT ${evil} HTTP/1.1\r\nhost: x\r\n\r\n`)).not.toContain("200");
    expect(contacts).toBe(0);
  });

  test("a redirect of an endpoint is the client's to follow", async () => {
    const engine = await harness.engine();
    engine.behave = (_, response) =>
      response.writeHead(307, { location: "http://127.0.0.1:9/" }).end();
    const { url } = await harness.router({ endpoints: [engine.url] });
    const answer = await send(url);
    expect([answer.status, answer.headers.location]).toEqual([307, "http://127.0.0.1:9/"]);
  });
});

describe("headers", () => {
  test("of one hop, and the router's own, do not reach the endpoint", async () => {
    const engine = await harness.engine();
    const { url } = await harness.router({ endpoints: [engine.url] });
    await sendRaw(
      url,
      [
        "POST / HTTP/1.1",
        "Host: x",
        "Connection: close, X-Secret, content-length, X-Twice",
        "X-Secret: 1",
        "X-Twice: 1",
        "x-twice: 2",
        "Keep-Alive: timeout=5",
        "Proxy-Connection: close",
        "Proxy-Authorization: Basic eDp5",
        "TE: trailers",
        "Upgrade: websocket",
        "X-Plimsoll-Endpoint: http://evil",
        "X-Plimsoll-Anything: 1",
        "Endpoint-Load-Metrics-Format: TEXT",
        "Expect: 100-continue",
        "X-Kept: \u00e4",
        "X-Kept: two",
        "Content-Length: 2",
        "",
        "ab",
      ].join("\r\n"),
    );
    const [seen] = engine.seen;
    const names = (seen?.rawHeaders ?? []).filter((_, i) => i % 2 === 0);
    expect(names.map((name) => name.toLowerCase()).sort()).toEqual([
      "connection",
      "content-length",
      "host",
      "x-kept",
      "x-kept",
    ]);
    expect([seen?.body.toString(), seen?.headers.connection]).toEqual(["ab", "keep-alive"]);
  });

  test("of one hop, and those in the router's name, do not reach the client", async () => {
    const engine = await harness.engine();
    engine.behave = (_, response) =>
      response
        .writeHead(200, [
          ...["Connection", "close, X-Secret", "X-Secret", "1", "Proxy-Authenticate", "Basic"],
          ...["X-Plimsoll-Reason", "saturated", "Endpoint-Load-Metrics", "TEXT a=1"],
          ...["Upgrade", "h2c", "Set-Cookie", "a=1", "Set-Cookie", "b=2", "X-Kept", "\u00e4"],
        ])
        .end("x");
    const { url } = await harness.router({ endpoints: [engine.url] });
    const { headers } = await send(url);
    expect(Object.keys(headers).sort()).toEqual([
      ...["connection", "date", "set-cookie", "transfer-encoding", "x-kept"],
      "x-plimsoll-endpoint",
    ]);
    expect([headers["set-cookie"], headers["x-kept"]]).toEqual([["a=1", "b=2"], "\u00e4"]);
  });

  test("of the configuration replace the client's, and only at their endpoint", async () => {
    const [a, b] = [await harness.engine("a"), await harness.engine("b")];
    const { url } = await harness.router({
      endpoints: [
        { url: a.url, models: "a", requestHeaders: { Authorization: "Bearer ours" } },
        { url: b.url, models: "b" },
      ],
    });
    for (const model of ["a", "b"]) await chat(url, { model }, { authorization: "Bearer theirs" });
    expect(a.seen[0]?.headers.authorization).toBe("Bearer ours");
    expect(b.seen[0]?.headers.authorization).toBe("Bearer theirs");
  });
});

describe("limits", () => {
  test("larger headers are refused with 431", async () => {
    const engine = await harness.engine();
    const { url } = await harness.router({
      endpoints: [engine.url],
      limits: { requestHeaderBytes: 2000 },
    });
    const big = `GET / HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(3000)}\r\n\r\n`;
    expect(await sendRaw(url, big)).toMatch(/^HTTP\/1.1 431 /);
    expect(engine.seen.length).toBe(0);
  });

  test.each([
    ["kept", 10_000],
    ["passed on", 10],
  ])(
    "larger bodies are refused with 413, also without a stated length, when %s",
    async (_, kept) => {
      const engine = await harness.engine();
      const { url, router } = await harness.router({
        endpoints: [engine.url],
        limits: { bodyBytes: 1000 },
        retry: { keepBodyBytes: kept },
      });
      const stated = await send(url, { method: "POST", path: "/", body: "x".repeat(1001) });
      expect([stated.status, stated.headers["x-plimsoll-reason"]]).toEqual([413, "body-too-large"]);
      const chunk = `400\r\n${"x".repeat(1024)}\r\n`;
      const head = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
      const answer = await sendRaw(url, head + chunk + chunk, (write) => write("0\r\n\r\n"));
      expect(answer).toMatch(/^HTTP\/1.1 413 /);
      expect(engine.seen.length).toBe(0);
      expect(router.snapshot().heldOff).toEqual([]);
      const fine = await send(url, { method: "POST", path: "/", body: "x".repeat(1000) });
      expect(fine.status).toBe(200);
    },
  );

  test("bodies are not kept beyond what all may take together; they still arrive", async () => {
    const engine = await harness.engine();
    const { url, router } = await harness.router({
      endpoints: [engine.url],
      retry: { keepBodyBytes: 100_000, keepTotalBytes: 150_000 },
      flow: { ttl: "10s" },
    });
    engine.waiting = 50;
    await until(() => router.pool.saturation() >= 1, "requests wait");
    const answers = Array.from({ length: 20 }, () =>
      send(url, { method: "POST", path: "/", body: "x".repeat(90_000) }),
    );
    await until(() => router.snapshot().gates[0]?.waiting === 20, "all wait");
    // Of each body that is not kept, the first part that came is.
    expect(router.snapshot().keptBytes).toBeLessThan(150_000 + 20 * 65_536);
    engine.waiting = 0;
    for (const { status, body } of await Promise.all(answers)) {
      expect([status, JSON.parse(body.toString()).bytes]).toEqual([200, 90_000]);
    }
  });

  test("bodies that are still on their way count as kept, until their clients are gone", async () => {
    const engine = await harness.engine();
    const { url, router } = await harness.router({ endpoints: [engine.url] });
    const { hostname, port } = new URL(url);
    const sockets = Array.from({ length: 10 }, () => connect(Number(port), hostname));
    const head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n";
    for (const socket of sockets) socket.write(head + "x".repeat(900));
    await until(() => router.snapshot().keptBytes === 9000, "they are on their way");
    for (const socket of sockets) socket.destroy();
    await until(() => router.snapshot().keptBytes === 0, "they are gone");
  });

  test("a client that is slow with its headers or its body is sent away with 408", async () => {
    const engine = await harness.engine();
    const { url, router } = await harness.router({
      endpoints: [engine.url],
      timeouts: { requestHeaders: "100ms", request: "300ms" },
    });
    const headers = sendRaw(url, "GET / HTTP/1.1\r\nhost: x\r\nx-a");
    const body = sendRaw(url, "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nx");
    expect(await headers).toMatch(/^HTTP\/1.1 408 /);
    expect(await body).toMatch(/^HTTP\/1.1 408 /);
    await until(() => router.snapshot().live === 0, "nothing is left of it");
    expect(engine.seen.length).toBe(0);
  });

  test("more connections than may be are not accepted", async () => {
    const engine = await harness.engine();
    engine.behave = () => undefined;
    const { url } = await harness.router({
      endpoints: [engine.url],
      limits: { connections: 2 },
    });
    const { hostname, port } = new URL(url);
    const sockets = Array.from({ length: 5 }, () => connect(Number(port), hostname));
    let closed = 0;
    for (const socket of sockets) {
      socket.on("error", () => undefined); // it is not accepted
      socket.on("close", () => closed++);
    }
    await until(() => closed === 3, "three are closed");
    for (const socket of sockets) socket.destroy();
  });
});

describe("smuggling", () => {
  test.each([
    ["two lengths", "content-length: 1\r\ncontent-length: 2\r\n\r\nab"],
    ["a length and a coding", "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["an unknown coding", "transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n"],
    ["a length that is none", "content-length: +1\r\n\r\na"],
    ["a bad chunk", "transfer-encoding: chunked\r\n\r\n1 \r\nab\r\n0\r\n\r\n"],
  ])("a request with %s does not reach an endpoint", async (_, rest) => {
    const engine = await harness.engine();
    const { url } = await harness.router({ endpoints: [engine.url] });
    const answer = await sendRaw(url, `POST / HTTP/1.1\r\nhost: x\r\n${rest}`);
    expect(answer).toMatch(/^(?:HTTP\/1.1 400 .*)?$/s);
    expect(engine.seen.length).toBe(0);
  });

  test("what is left of a body that was refused is not taken for a request", async () => {
    const engine = await harness.engine();
    const { url } = await harness.router({ endpoints: [{ url: engine.url, models: "m" }] });
    const hidden = "GET /hidden HTTP/1.1\r\nhost: x\r\n\r\n";
    const head = "POST ftp://x HTTP/1.1\r\nhost: x\r\ncontent-length: 10000\r\n\r\n";
    const answer = await sendRaw(url, head, (write) => {
      write("x".repeat(10_000 - hidden.length) + hidden);
      write("GET /next HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    });
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(engine.seen.map((one) => one.url)).toEqual(["/next"]);
  });
});

describe("secrets", () => {
  test("are neither logged nor shown, whatever fails", async () => {
    const engine: Engine = await harness.engine();
    const told: string[] = [];
    const { router, url } = await harness.router(
      {
        endpoints: [
          {
            url: engine.url.replace("http://", "http://me:geheim@"),
            headers: { "x-key": "geheim" },
            requestHeaders: { authorization: "Bearer geheim" },
          },
        ],
        admin: { host: "127.0.0.1", port: 0 },
        retry: { holdOff: "10ms", longestHoldOff: "10ms" },
        flow: { ttl: "200ms" },
      },
      { logger: { warn: (text) => told.push(text) } },
    );
    const admin = router.addresses?.admin ?? "";
    const shown: string[] = [];
    const look = async () => {
      for (const path of ["/metrics", "/pool", "/readyz", "/healthz", "/nothing"]) {
        const { headers, body } = await send(admin, { path });
        shown.push(JSON.stringify(headers), body.toString());
      }
    };
    const ask = async () => {
      const { headers, body } = await chat(url, {}, { authorization: "Bearer geheim" });
      shown.push(JSON.stringify(headers), body.toString());
    };
    await ask();
    await look();
    await engine.close();
    await ask();
    await ask();
    await look();
    expect(shown.join("\n") + told.join("\n")).not.toMatch(/geheim|Z2VoZWlt/);
    expect(engine.seen[0]?.headers.authorization).toBe("Bearer geheim");
  });
});

describe("the admin port", () => {
  test("and the traffic port do not reach each other", async () => {
    const engine = await harness.engine();
    const { router, url } = await harness.router({
      endpoints: [engine.url],
      admin: { host: "127.0.0.1", port: 0 },
    });
    const admin = router.addresses?.admin ?? "";
    for (const path of ["/healthz", "/readyz", "/pool"]) {
      const { body } = await send(url, { path });
      // It is the engine that answers.
      expect(JSON.parse(body.toString())).toMatchObject({ object: "chat.completion", path });
      const host = new URL(admin).host;
      expect((await send(url, { path, headers: { host } })).body.toString()).toBe(body.toString());
    }
    const seen = engine.seen.length;
    expect((await send(admin, { path: "/v1/models" })).status).toBe(404);
    expect((await send(admin, { path: "/pool", method: "POST", body: "{}" })).status).toBe(404);
    expect(engine.seen.length).toBe(seen);
  });

  test("is on loopback unless it is told otherwise, and may be switched off", async () => {
    const engine = await harness.engine();
    const { router } = await harness.router({ endpoints: [engine.url], admin: { port: 0 } });
    expect(router.addresses?.admin).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const off = await harness.router({ endpoints: [engine.url], admin: false });
    expect(off.router.addresses?.admin).toBeUndefined();
  });
});
