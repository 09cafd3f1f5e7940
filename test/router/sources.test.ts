// Endpoints that come and go: from a file, from names, by a reload, and always under load.

import { mkdtempSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../../src/index";
import { until } from "../telemetry/servers";
import { chat, QUICK, type RawAnswer, startEngine, useRouters } from "./engines";
import { startNameServer } from "./name-server";

const harness = useRouters();
const folder = mkdtempSync(join(tmpdir(), "plimsoll-router-"));

/** Keeps requests going until it is told to stop; then says how they ended. */
function load(url: string, more: (i: number) => Record<string, unknown> = () => ({})) {
  let isStopped = false;
  const answers: RawAnswer[] = [];
  const client = async () => {
    for (let i = 0; !isStopped; i++)
      answers.push(await chat(url, { stream: i % 2 === 0, ...more(i) }));
  };
  const clients = Promise.all(Array.from({ length: 8 }, client));
  return {
    answers,
    stop: async () => {
      isStopped = true;
      await clients;
      return answers;
    },
  };
}

/** Collects what the router itself says; that its pool has not been read yet is not news here. */
function listener() {
  const told: string[] = [];
  const warn = (text: string) => {
    if (!text.startsWith("pool: ")) told.push(text);
  };
  return { told, logger: { warn } };
}

const servedBy = (answers: readonly RawAnswer[]) =>
  new Set(answers.map(({ headers }) => headers["x-plimsoll-endpoint"]));

describe("a file", () => {
  const write = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
    return path;
  };

  test("is read at the start and when it changes, without a request lost", async () => {
    const [a, b] = [await harness.engine("a"), await harness.engine("b")];
    const endpointsFile = write("list.yaml", `- ${a.url}\n`);
    const { router, url } = await harness.router({ endpointsFile });
    const running = load(url);
    await until(() => running.answers.length > 20, "requests are served");
    write("list.yaml", `# moved\n- { url: "${b.url}", weight: 2 }\n`);
    await until(() => router.pool.get(b.url) !== undefined, "the file was read again");
    expect(router.pool.size).toBe(1);
    const before = running.answers.length;
    await until(() => running.answers.length > before + 20, "requests are served there");
    const answers = await running.stop();
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(servedBy(answers)).toEqual(new Set([a.url, b.url]));
  });

  test("may be a link that is changed, as a ConfigMap is", async () => {
    const [a, b] = [await harness.engine("a"), await harness.engine("b")];
    const link = join(folder, "link.yaml");
    symlinkSync(write("one.yaml", `- ${a.url}\n`), link);
    const { router } = await harness.router({ endpointsFile: link });
    unlinkSync(link);
    symlinkSync(write("two.yaml", `- ${b.url}\n`), link);
    await until(() => router.pool.get(b.url) !== undefined, "it was read again");
  });

  test("that is faulty, or gone, changes nothing and is complained of once", async () => {
    const engine = await harness.engine();
    const path = write("faulty.yaml", `- ${engine.url}\n`);
    const { told, logger } = listener();
    const { router, url } = await harness.router({ endpointsFile: path }, { logger });
    write("faulty.yaml", "- { url: ftp://me:geheim@x }\n");
    await until(() => told.length === 1, "it is complained of");
    expect(told[0]).toMatch(/faulty\.yaml: 1:5: endpoints\.0\.url: must be an http/);
    expect(told[0]).not.toContain("geheim");
    write("faulty.yaml", "- !!js/function 'x'\n");
    await until(() => told.length === 2, "it is complained of");
    unlinkSync(path);
    await until(() => told.length === 3, "it is complained of");
    expect(told[2]).toContain("ENOENT");
    expect(router.pool.size).toBe(1);
    expect((await chat(url)).status).toBe(200);
  });
});

describe("an endpoints file", () => {
  const complaints = async (text: string) => {
    const engine = await harness.engine();
    const path = join(folder, `list-${Math.random()}.yaml`);
    writeFileSync(path, `- ${engine.url}\n`);
    const { told, logger } = listener();
    const { router } = await harness.router({ endpointsFile: path }, { logger });
    writeFileSync(path, text);
    return { router, told, path, engine };
  };

  test.each(["", "# nothing but words\n", "null\n", "---\n"])(
    "that says %j loses no endpoint, and is complained of",
    async (text) => {
      const { router, told } = await complaints(text);
      await until(() => told.length === 1, "it is complained of");
      expect(told[0]).toMatch(
        /1:\d: is empty, it must be a list of endpoints, \[\] for none; its /,
      );
      expect(router.pool.size).toBe(1);
    },
  );

  test("that says [] has none", async () => {
    const { router, told } = await complaints("[]\n");
    await until(() => router.pool.size === 0, "there are none");
    expect(told).toEqual([]);
  });

  test("that is being written is read when it is done", async () => {
    const { router, told, path, engine } = await complaints("");
    await until(() => told.length === 1, "it is complained of");
    // A writer that takes its time: whole lines, but never the whole list.
    const urls = [engine.url, ...Array.from({ length: 19 }, (_, i) => `http://127.0.0.1:${i + 1}`)];
    const sizes = new Set<number>();
    for (let i = 1; i <= urls.length; i++) {
      const lines = urls.slice(0, i).map((url) => `- ${url}\n`);
      writeFileSync(path, lines.join(""));
      await new Promise((resolve) => setTimeout(resolve, 25));
      sizes.add(router.pool.size);
    }
    await until(() => router.pool.size === urls.length, "it was read");
    expect([...sizes].filter((size) => size !== 1 && size !== urls.length)).toEqual([]);
  });

  test("that was gone and comes back as it was is as before, and can be gone again", async () => {
    const { router, told, path, engine } = await complaints(": [");
    await until(() => told.length === 1, "it is complained of");
    writeFileSync(path, `- ${engine.url}\n`);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    writeFileSync(path, ": [");
    await until(() => told.length === 2, "it is complained of again");
    expect(router.pool.size).toBe(1);
  });
});

describe("a name", () => {
  test("stands for all its addresses, old and new, without a request lost", async () => {
    const server = harness.keep(await startNameServer());
    const first = harness.keep(await startEngine("a", 0, "127.0.0.2"));
    const { port } = first;
    const second = harness.keep(await startEngine("b", port, "127.0.0.3"));
    const third = harness.keep(await startEngine("c", port, "::1"));
    server.zone.v4 = ["127.0.0.2"];
    const { router, url } = await harness.router({
      dns: [
        {
          url: `http://Engines.Test:${port}/metrics`,
          servers: [server.address],
          refresh: "20ms",
          models: "m",
          weight: 3,
        },
      ],
    });
    expect(new Set(server.questions)).toEqual(new Set(["engines.test"]));
    const ids = () => [...router.pool].map(({ id }) => id).sort();
    expect(ids()).toEqual([first.url]);
    expect(router.pool.get(first.url)?.weight).toBe(3);
    const running = load(url);
    await until(() => running.answers.length > 20, "requests are served");
    server.zone.v4 = ["127.0.0.3", "127.0.0.2"];
    server.zone.v6 = ["::1"];
    await until(() => ids().length === 3, "all are there");
    await until(() => second.seen.length > 0 && third.seen.length > 0, "all serve");
    server.zone.v4 = ["127.0.0.3"];
    await until(() => ids().length === 2, "one is gone");
    const before = running.answers.length;
    await until(() => running.answers.length > before + 20, "requests are served");
    const answers = await running.stop();
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(servedBy(answers)).toEqual(new Set([first.url, second.url, third.url]));
  });

  test("whose server fails keeps its addresses; one that has none loses them", async () => {
    const server = harness.keep(await startNameServer());
    const engine = await harness.engine();
    server.zone.v4 = ["127.0.0.1"];
    const { told, logger } = listener();
    const dns = [
      { url: `http://engines.test:${engine.port}`, servers: [server.address], refresh: "20ms" },
    ];
    const { router } = await harness.router({ dns }, { logger });
    server.zone.code = 2;
    await until(() => told.length > 0, "it is complained of");
    const { length } = server.questions;
    await until(() => server.questions.length > length + 6, "it is asked again");
    expect([router.pool.size, told]).toEqual([
      1,
      ["engines.test: ESERVFAIL; its addresses stay as they were"],
    ]);
    server.zone.code = 3;
    await until(() => router.pool.size === 0, "there is no such name");
    server.zone.code = 0;
    await until(() => router.pool.size === 1, "it is back");
  });
});

describe("a reload", () => {
  test("of everything, under load, loses no request", async () => {
    const engines = await Promise.all(["a", "b", "c", "d"].map((name) => harness.engine(name)));
    const urls = engines.map((one) => one.url);
    const { router, url } = await harness.router({ endpoints: urls.slice(0, 2) });
    const running = load(url);
    for (let i = 0; i < 20; i++) {
      const before = running.answers.length;
      await router.reload({
        ...QUICK,
        endpoints: urls
          .filter((_, j) => (i + j) % 3 !== 0)
          .map((one) => ({ url: one, weight: 1 + i, ...(i % 4 === 1 ? { models: "m" } : {}) })),
        queueDepthThreshold: 5 + i,
        stalenessPolicy: i % 2 === 0 ? "ignore" : "hold",
        interval: `${20 + (i % 2)}ms`,
        flow: { bands: Array.from({ length: 1 + (i % 3) }, () => ({})), ttl: "10s" },
      });
      await until(() => running.answers.length > before + 10, "requests are served");
    }
    const answers = await running.stop();
    expect(answers.filter(({ status, isWhole }) => status !== 200 || !isWhole)).toEqual([]);
    expect(router.pool.config.queueDepthThreshold).toBe(24);
  });

  test("lets what waits go on waiting, under the bands it came under", async () => {
    const engine = await harness.engine();
    engine.waiting = 50;
    const { router, url } = await harness.router({ endpoints: [engine.url] });
    const answer = chat(url);
    await until(() => router.snapshot().gates[0]?.waiting === 1, "it waits");
    await router.reload({ ...QUICK, endpoints: [engine.url], flow: { mode: "shed" } });
    expect((await chat(url)).status).toBe(429);
    engine.waiting = 0;
    expect((await answer).status).toBe(200);
  });

  test("lets requests at an endpoint that is gone come to their end", async () => {
    const [a, b] = [await harness.engine("a"), await harness.engine("b")];
    let finish: (() => void) | undefined;
    a.behave = (_, response) => {
      response.write("begun ");
      finish = () => response.end("and ended");
    };
    const { router, url } = await harness.router({ endpoints: [a.url] });
    const answer = chat(url);
    await until(() => finish !== undefined, "it has begun");
    await router.reload({ ...QUICK, endpoints: [b.url] });
    expect([...router.pool].map(({ id }) => id)).toEqual([b.url]);
    expect((await chat(url)).headers["x-plimsoll-endpoint"]).toBe(b.url);
    finish?.();
    expect((await answer).body.toString()).toBe("begun and ended");
  });

  test("that is faulty changes nothing", async () => {
    const engine = await harness.engine();
    const { router, url } = await harness.router({ endpoints: [engine.url] });
    const faulty = { ...QUICK, endpoints: ["http://127.0.0.1:9"], flow: { ttl: "x" } };
    await expect(router.reload(faulty)).rejects.toThrow(ConfigError);
    expect([...router.pool].map(({ id }) => id)).toEqual([engine.url]);
    expect((await chat(url)).status).toBe(200);
  });

  test("whose new file or name cannot be read is refused, and changes nothing", async () => {
    const server = harness.keep(await startNameServer());
    server.zone.code = 2;
    const engine = await harness.engine();
    const path = join(folder, "before.yaml");
    writeFileSync(path, `- ${engine.url}\n`);
    const { router, url } = await harness.router({ endpointsFile: path });
    const missing = join(folder, "missing.yaml");
    const refused = await router
      .reload({
        ...QUICK,
        endpointsFile: missing,
        queueDepthThreshold: 77,
        dns: [{ url: "http://new.test:1", servers: [server.address] }],
      })
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ConfigError);
    if (!(refused instanceof ConfigError)) return;
    expect(refused.faults.map(({ path: at, value }) => [at, value])).toEqual([
      ["endpointsFile", missing],
      ["dns", "new.test"],
    ]);
    expect(refused.message).toMatch(/ENOENT.*\n.*ESERVFAIL/);
    expect([...router.pool].map(({ id }) => id)).toEqual([engine.url]);
    expect(router.pool.config.queueDepthThreshold).toBe(5);
    expect((await chat(url)).status).toBe(200);
    // And what was refused is not looked at any more.
    const { length } = server.questions;
    writeFileSync(missing, "[]\n");
    await new Promise((resolve) => setTimeout(resolve, 1200));
    expect([router.pool.size, server.questions.length]).toEqual([1, length]);
    await router.reload({ ...QUICK, endpointsFile: missing });
    expect(router.pool.size).toBe(0);
  });

  test("of a name that has an address of one kind alone takes it", async () => {
    const server = harness.keep(await startNameServer());
    server.zone.v4 = ["127.0.0.1"];
    server.zone.codes = { v6: 2 };
    const engine = await harness.engine();
    const { router } = await harness.router({ endpoints: [engine.url] });
    await router.reload({
      ...QUICK,
      dns: [{ url: "http://one.test:7", servers: [server.address] }],
    });
    expect([...router.pool].map(({ id }) => id)).toEqual(["http://127.0.0.1:7"]);
  });

  test("comes after the one before it, and the last one counts", async () => {
    const server = harness.keep(await startNameServer());
    server.zone.v4 = ["127.0.0.1"];
    const engine = await harness.engine();
    const { router } = await harness.router({ endpoints: [engine.url] });
    const slow = { dns: [{ url: "http://slow.test:1", servers: [server.address] }] };
    await Promise.all([
      router.reload({ ...QUICK, ...slow }),
      router.reload({ ...QUICK, endpoints: [engine.url] }),
    ]);
    expect([...router.pool].map(({ id }) => id)).toEqual([engine.url]);
    const { length } = server.questions;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(server.questions).toHaveLength(length);
  });

  test("says what only a restart can change", async () => {
    const engine = await harness.engine();
    const { router } = await harness.router({ endpoints: [engine.url] });
    const left = await router.reload({
      ...QUICK,
      endpoints: [engine.url],
      listen: { host: "127.0.0.1", port: 1 },
      timeouts: { connect: "9s", total: "9s" },
    });
    expect(left).toEqual(["listen.port", "timeouts.connect"]);
  });
});

test("an endpoint that is named twice is there once, and complained of", async () => {
  const engine = await harness.engine();
  const path = join(folder, "twice.yaml");
  writeFileSync(path, `- ${engine.url}\n`);
  const { told, logger } = listener();
  const config = { endpoints: [engine.url], endpointsFile: path };
  const { router } = await harness.router(config, { logger });
  expect([router.pool.size, told]).toEqual([
    1,
    [`endpoint ${engine.url} is named twice: the first one counts`],
  ]);
});
