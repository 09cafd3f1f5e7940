// The feed: at work only while somebody listens, one serialisation for all, and nobody holds it up.

import { createServer, get, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { createGunzip } from "node:zlib";
import { afterEach, expect, test, vi } from "vitest";
import type { DashboardView } from "../../src/dashboard/encoder";
import { DashboardFeed } from "../../src/dashboard/feed";
import { until } from "../telemetry/servers";
import { sourceOf, type TestSource } from "./sources";

const open: (() => void)[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const close of open.splice(0).reverse()) close();
});

interface Served {
  readonly feed: DashboardFeed;
  readonly source: TestSource;
  readonly port: number;
  /** Snapshots that were taken. */
  looks(): number;
}

async function serve(ids: readonly string[], onFault: (error: unknown) => void = fail) {
  const source = sourceOf(ids);
  const snapshot = vi.fn((): DashboardView => source.snapshot());
  const feed = new DashboardFeed({ journal: source.journal, snapshot }, onFault);
  const server: Server = createServer((request, response) => {
    if (!feed.add(request, response)) response.writeHead(503).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  open.push(() => {
    feed.close();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const looks = () => snapshot.mock.calls.length;
  return { feed, source, port, looks, snapshot } satisfies Served & { snapshot: unknown };
}

function fail(error: unknown): never {
  throw error;
}

/** Listens, and collects the text of all events. */
async function listen(port: number, encoding = "identity") {
  const headers = { "accept-encoding": encoding };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ port, host: "127.0.0.1", headers, agent: false }, resolve).on("error", reject);
  });
  const said = { text: "", isEnded: false };
  const isPacked = response.headers["content-encoding"] === "gzip";
  const texts = isPacked ? response.pipe(createGunzip()) : response;
  texts.on("data", (chunk: Buffer) => {
    said.text += chunk.toString();
  });
  texts.on("error", () => undefined); // a stream that is cut is no whole gzip file
  response.on("close", () => {
    said.isEnded = true;
  });
  open.push(() => response.destroy());
  return { response, said };
}

const events = (text: string) => [...text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name);

test("everything first, then updates, and the same for who reads gzip", async () => {
  const { port, looks } = await serve(["a", "b"]);
  const plain = await listen(port);
  await until(() => events(plain.said.text).length >= 2, "an update came");
  const packed = await listen(port, "gzip, br");
  expect(packed.response.headers["content-encoding"]).toBe("gzip");
  await until(() => events(packed.said.text).length >= 3, "updates came");
  expect(events(packed.said.text).slice(0, 3)).toEqual(["full", "update", "update"]);
  const last = packed.said.text.trim().split("\n\n").at(-1) ?? "";
  await until(() => plain.said.text.includes(last), "it is the same");
  // Who comes second costs no look more.
  expect(looks()).toBeLessThanOrEqual(events(plain.said.text).length + 1);
});

test("it looks at most twice a second, and not at all when nobody listens", async () => {
  const { feed, port, looks } = await serve(["a"]);
  await new Promise((resolve) => setTimeout(resolve, 700));
  expect(looks()).toBe(0);
  const { response, said } = await listen(port);
  await until(() => events(said.text).length >= 3, "updates came");
  response.destroy();
  await until(() => feed.listeners === 0, "it is gone");
  const before = looks();
  await new Promise((resolve) => setTimeout(resolve, 700));
  expect(looks()).toBe(before);
});

test("a listener that does not read is dropped, and the others go on", async () => {
  const ids = Array.from({ length: 400 }, (_, i) => `${i}-${"x".repeat(10_000)}`);
  const { feed, port, source } = await serve(ids);
  const { said } = await listen(port);
  const sleepy = connect(port, "127.0.0.1", () => {
    sleepy.pause();
    sleepy.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  });
  sleepy.on("error", () => undefined); // it is cut, which is what this is about
  open.push(() => sleepy.destroy());
  await until(() => feed.listeners === 2, "both listen");
  let i = 0;
  const changing = setInterval(() => {
    source.pool.get(ids[i++ % ids.length] ?? "")?.update({ weight: 1 + i }); // everything goes anew
  }, 100);
  open.push(() => clearInterval(changing));
  await until(() => feed.listeners === 1, "one was dropped");
  const before = events(said.text).length;
  await until(() => events(said.text).length > before, "the other goes on");
});

test("there is a limit to listeners", async () => {
  const { feed, port } = await serve([]);
  for (let i = 0; i < 64; i++) await listen(port);
  const { response } = await listen(port);
  expect(response.statusCode).toBe(503);
  expect(feed.listeners).toBe(64);
});

test("a source that fails is told of, and costs its event alone", async () => {
  const faults: unknown[] = [];
  const { port, snapshot } = await serve(["a"], (error) => faults.push(error));
  const { said } = await listen(port);
  await until(() => events(said.text).length >= 2, "an update came");
  const fault = new Error("cannot look");
  snapshot.mockImplementationOnce(() => {
    throw fault;
  });
  await until(() => faults.length === 1, "it is told");
  expect(faults).toEqual([fault]);
  const before = events(said.text).length;
  await until(() => events(said.text).length > before, "it goes on");
});

test("closing ends every stream, and takes no new one", async () => {
  const { feed, port } = await serve(["a"]);
  const { said } = await listen(port);
  feed.close();
  await until(() => said.isEnded, "it has ended");
  expect((await listen(port)).response.statusCode).toBe(503);
});
