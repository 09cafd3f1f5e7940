// plimsoll serve --demo: its time, its engines one by one, and the whole command with real clients.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import OpenAI from "openai";
import { afterEach, describe, expect, test } from "vitest";
import { DemoEngine, type DemoEngineName } from "../../src/cli/demo-engine";
import { DEMO_MODEL } from "../../src/cli/demo-pages";
import { LiveTime } from "../../src/cli/demo-time";
import { type EngineModel, PRESETS } from "../../src/sim/presets";
import { Random } from "../../src/sim/random";
import { readExposition } from "../../src/telemetry/index";
import { readLoadMetrics } from "../../src/telemetry/orca";
import { until } from "../telemetry/servers";

const run = promisify(execFile);
const CLI = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));
const H100 = PRESETS["llama-3.1-8b/H100/tp1"] as EngineModel; // it is there
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** An engine whose steps take no time to speak of. */
async function open(name: DemoEngineName = "vllm", change: Partial<EngineModel> = {}) {
  const time = new LiveTime();
  const model = { ...H100, a: 1, ttftConst: 1, ...change };
  const engine = await DemoEngine.open(time, { name, gpu: "H100", model }, new Random(1, "test"));
  closers.push(
    () => engine.close(),
    () => time.close(),
  );
  return engine;
}

const post = (url: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(url, { method: "POST", body: JSON.stringify(body), headers });
const HELLO = [{ role: "user", content: "Hello" }];

describe("live time", () => {
  test("runs what is due, in order, before anything new, and nothing early", () => {
    let now = 1000;
    const time = new LiveTime(() => now);
    closers.push(() => time.close());
    const seen: string[] = [];
    time.run(() => {
      time.queue.after(5, () => seen.push("five"));
      time.queue.after(3, () => seen.push(`three at ${time.queue.now}`));
      time.queue.after(50, () => seen.push("fifty"));
    });
    now += 7;
    time.run(() => seen.push(`new at ${time.queue.now}`));
    expect(seen).toEqual(["three at 3", "five", "new at 7"]);
  });

  test("wakes by itself for what comes, and tells its listeners", async () => {
    const time = new LiveTime();
    closers.push(() => time.close());
    let told = 0;
    time.subscribe(() => told++);
    await new Promise<void>((resolve) => {
      time.run(() => time.queue.after(5, resolve));
    });
    await until(() => told >= 2, "it was told of the call and of the event");
  });
});

describe("an engine", () => {
  test("answers chats and completions, whole", async () => {
    const { url } = await open();
    const chat = await post(`${url}/v1/chat/completions`, { messages: HELLO, max_tokens: 4 });
    expect(await chat.json()).toMatchObject({
      object: "chat.completion",
      model: DEMO_MODEL,
      choices: [{ message: { role: "assistant", content: "A load line is" } }],
      usage: { prompt_tokens: 2, completion_tokens: 4, total_tokens: 6 },
    });
    const text = await post(`${url}/v1/completions`, { prompt: ["a", [1, 2]], max_tokens: 2 });
    expect(await text.json()).toMatchObject({
      object: "text_completion",
      choices: [{ text: "A load", finish_reason: "length" }],
    });
  });

  test("streams an event for each token", async () => {
    const { url } = await open();
    const body = {
      ...{ messages: HELLO, max_tokens: 5, ignore_eos: true, stream: true },
      stream_options: { include_usage: true },
    };
    const response = await post(`${url}/v1/chat/completions`, body);
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
    const events = (await response.text()).trim().split("\n\n");
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event.replace("data: ", "")));
    expect(events.at(-1)).toBe("data: [DONE]");
    expect(chunks).toHaveLength(7);
    expect(chunks.slice(0, 5).map(({ choices }) => choices[0].delta)).toEqual([
      { role: "assistant", content: "A" },
      ...[" load", " line", " is", " painted"].map((content) => ({ content })),
    ]);
    expect(chunks[5].choices[0].finish_reason).toBe("length");
    expect(chunks[6].usage.completion_tokens).toBe(5);
  });

  test.each(["vllm", "sglang"] as const)("prints the page of %s, as it is loaded", async (name) => {
    const one = await open(name, { maxNumSeqs: 1, a: 20 });
    const bodies = [1, 2, 3].map(() =>
      post(`${one.url}/v1/completions`, { prompt: "x", max_tokens: 30, ignore_eos: true }),
    );
    await until(() => one.engine.running === 1 && one.engine.waiting === 2, "they are there");
    // A page shows the engine as its present step began.
    const { steps } = one.engine.counts;
    await until(() => one.engine.counts.steps > steps + 1, "it has gone on");
    const page = await (await fetch(`${one.url}/metrics`)).text();
    const { engine, sample } = readExposition(page);
    expect(engine).toBe(name);
    expect(sample).toMatchObject({ waitingQueueSize: 2, runningRequests: 1 });
    expect(sample.kvCapacityTokens).toBe(H100.kvBlocks * 16);
    expect(sample.kvCacheUsagePercent).toBeGreaterThan(0);
    for (const answer of await Promise.all(bodies)) expect(answer.status).toBe(200);
    await until(() => one.live === 0, "nothing is left");
  });

  test("reports its load with its answer when it is asked to, as vLLM alone does", async () => {
    const ask = async (name: DemoEngineName, format: string) => {
      const { url } = await open(name);
      const headers = { "endpoint-load-metrics-format": format };
      const body = { prompt: "x", max_tokens: 1 };
      const answer = await post(`${url}/v1/completions`, body, headers);
      await answer.text();
      return readLoadMetrics(answer.headers.get("endpoint-load-metrics"));
    };
    const idle = { waitingQueueSize: 0, runningRequests: 0, kvCacheUsagePercent: 0 };
    expect(await ask("vllm", "JSON")).toMatchObject(idle);
    expect(await ask("vllm", "TEXT")).toMatchObject(idle);
    expect(await ask("vllm", "BIN")).toBeUndefined();
    expect(await ask("sglang", "JSON")).toBeUndefined();
  });

  test.each([
    ["no JSON", "{", 400],
    ["no object", "[]", 400],
    ["no messages", '{"stream":true}', 400],
    ["no messages in a list", '{"messages":[]}', 400],
    ["a count that is none", '{"messages":[{}],"max_tokens":-1}', 400],
    ["a stream that is neither", '{"messages":[{}],"stream":"yes"}', 400],
    ["another model", '{"messages":[{}],"model":"__proto__"}', 404],
    ["more than it can hold", `{"messages":[{}],"max_tokens":900000,"ignore_eos":true}`, 400],
  ])("refuses %s in OpenAI's words", async (_, body, status) => {
    const { url } = await open();
    const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", body });
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ error: { type: "invalid_request_error" } });
  });

  test("has nothing else", async () => {
    const { url } = await open();
    expect((await fetch(`${url}/v1/chat/completions`)).status).toBe(404);
    expect((await fetch(`${url}/constructor`)).status).toBe(404);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });

  test("forgets a request whose client is gone, wherever it is", async () => {
    const one = await open("vllm", { maxNumSeqs: 1, a: 30 });
    const abort = new AbortController();
    const asked = [1, 2].map(() =>
      fetch(`${one.url}/v1/completions`, {
        method: "POST",
        body: JSON.stringify({ prompt: "x", max_tokens: 1000, ignore_eos: true }),
        signal: abort.signal,
      }).catch((error: unknown) => error),
    );
    await until(() => one.engine.running === 1 && one.engine.waiting === 1, "they are there");
    abort.abort();
    await Promise.all(asked);
    await until(() => one.live === 0 && one.engine.running === 0, "they are gone");
    expect([one.engine.waiting, one.engine.kv]).toEqual([0, 0]);
  });
});

describe("plimsoll serve --demo", () => {
  /** The command, once it listens. */
  async function start(args: string[] = ["--port", "0", "--admin-port", "0"]) {
    const child = spawn(process.execPath, [CLI, "serve", "--demo", ...args]);
    closers.push(() => child.kill("SIGKILL"));
    const seen = { out: "", err: "" };
    child.stdout.on("data", (chunk) => {
      seen.out += chunk;
    });
    child.stderr.on("data", (chunk) => {
      seen.err += chunk;
    });
    const closed = once(child, "close");
    // With a dozen requests under way, whatever it has to say at its start has been said.
    await until(() => /\b(1\d|\d{3,}) live/.test(seen.out), "it runs");
    const find = (what: string) => new RegExp(`^${what} +(http\\S+)`, "gm");
    const url = find("requests").exec(seen.out)?.[1] ?? "";
    const admin = find("admin").exec(seen.out)?.[1] ?? "";
    const engines = [...seen.out.matchAll(find("engine"))].map(([, address = ""]) => address);
    return { child, seen, url, admin, engines, closed };
  }

  test("serves curl and the OpenAI SDK, while its own load goes on", async () => {
    const { url, admin } = await start();
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
    const messages = [{ role: "user" as const, content: "Hello" }];
    const whole = await client.chat.completions.create({ model: DEMO_MODEL, messages });
    expect(whole.choices[0]?.message.content).toMatch(/^A load line/);
    const stream = await client.chat.completions.create({
      ...{ model: DEMO_MODEL, messages, max_tokens: 3, stream: true },
    });
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
    expect("A load line").toContain(text);
    const body = '{"prompt":"Hello","stream":true}';
    const { stdout } = await run("curl", ["-sN", `${url}/v1/completions`, "-d", body]);
    expect(stdout.trim().endsWith("data: [DONE]")).toBe(true);
    const models = await client.models.list();
    expect(models.data.map(({ id }) => id)).toEqual([DEMO_MODEL]);
    const { pool } = (await (await fetch(`${admin}/pool`)).json()) as { pool: object };
    expect(pool).toMatchObject({ unusable: 0, endpoints: { length: 6 } });
  });

  test.each(["SIGINT", "SIGTERM"] as const)("ends at %s, with nothing left", async (signal) => {
    const { child, seen, url, engines, closed } = await start();
    expect(engines).toHaveLength(6);
    child.kill(signal);
    const [code] = await closed;
    expect(code).toBe(0);
    expect(seen.err).toBe("");
    expect(seen.out).toMatch(/stopped: \d+ answered, 0 refused, 0 failed\n$/);
    for (const address of [url, ...engines]) await expect(fetch(address)).rejects.toThrow();
  });

  test("takes another port where its own is taken, but not another than it was told", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    closers.push(() => other.close());
    await once(other, "listening");
    const { port } = other.address() as { port: number };
    const { url } = await start(["--set", `listen={port: ${port}}`, "--admin-port", "0"]);
    expect(url).not.toBe(`http://127.0.0.1:${port}`);
    const told = await run(process.execPath, [CLI, "serve", "--demo", "--port", `${port}`]).catch(
      (error: { code: number; stderr: string }) => error,
    );
    expect(told).toMatchObject({ code: 2, stderr: expect.stringContaining("EADDRINUSE") });
  });
});
