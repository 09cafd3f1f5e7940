// Real clients: curl, and the OpenAI SDK, streaming and not.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { until } from "../telemetry/servers";
import { chat, eventOf, useRouters } from "./engines";

const harness = useRouters();
const run = promisify(execFile);
const curl = async (...args: string[]) =>
  (await run("curl", ["--silent", "--show-error", "--max-time", "20", ...args])).stdout;

const messages = [{ role: "user" as const, content: "Hello" }];

describe("the OpenAI SDK", () => {
  const client = (url: string, options = {}) =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0, ...options });

  test("completes a chat", async () => {
    const engine = await harness.engine("hello");
    const { url } = await harness.router({ endpoints: [engine.url] });
    const answer = await client(url).chat.completions.create({ model: "m", messages });
    expect(answer.choices[0]?.message.content).toBe("hello");
    expect(engine.seen[0]?.url).toBe("/v1/chat/completions");
  });

  test("streams a chat", async () => {
    const engine = await harness.engine("hello");
    const { url } = await harness.router({ endpoints: [engine.url] });
    const stream = await client(url).chat.completions.create({
      ...{ model: "m", messages, stream: true },
    });
    const parts: string[] = [];
    for await (const chunk of stream) parts.push(chunk.choices[0]?.delta.content ?? "");
    expect(parts).toEqual(["hello", "-", "end"]);
  });

  test("ends a stream that its caller aborts", async () => {
    const engine = await harness.engine();
    engine.behave = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(eventOf("half"));
    };
    const { url } = await harness.router({ endpoints: [engine.url] });
    const stream = await client(url).chat.completions.create({
      ...{ model: "m", messages, stream: true },
    });
    for await (const _ of stream) break;
    stream.controller.abort();
  });

  test("sees a stream that is cut as an error", async () => {
    const engine = await harness.engine();
    engine.behave = (request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(eventOf("half"), () => request.socket.resetAndDestroy());
    };
    const { url } = await harness.router({ endpoints: [engine.url] });
    const stream = await client(url).chat.completions.create({
      ...{ model: "m", messages, stream: true },
    });
    const parts: string[] = [];
    const read = async () => {
      for await (const chunk of stream) parts.push(chunk.choices[0]?.delta.content ?? "");
    };
    await expect(read()).rejects.toThrow();
    expect(parts).toEqual(["half"]);
  });

  test("understands a refusal, and tries again when it is told to", async () => {
    const engine = await harness.engine("hello");
    const { router, url } = await harness.router({
      endpoints: [engine.url],
      flow: { mode: "shed" },
    });
    // The faster requests were let go, the sooner it makes sense to try again.
    for (let i = 0; i < 30; i++) await chat(url);
    engine.waiting = 50;
    await until(() => router.pool.saturation() > 1, "it is saturated");
    const ask = (options = {}) =>
      client(url, options).chat.completions.create({ model: "m", messages });
    await expect(ask()).rejects.toMatchObject({
      status: 429,
      code: "saturated",
      type: "rate_limit_exceeded",
    });
    await expect(ask()).rejects.toBeInstanceOf(OpenAI.RateLimitError);
    const patient = ask({ maxRetries: 3 });
    engine.waiting = 0;
    expect((await patient).choices[0]?.message.content).toBe("hello");
  });

  test("understands that a model is not there", async () => {
    const engine = await harness.engine();
    const { url } = await harness.router({ endpoints: [{ url: engine.url, models: "m" }] });
    const asked = client(url).chat.completions.create({ model: "other", messages });
    await expect(asked).rejects.toBeInstanceOf(OpenAI.NotFoundError);
  });
});

describe("curl", () => {
  test("gets an answer, and a stream as it comes", async () => {
    const engine = await harness.engine("hello");
    const { url } = await harness.router({ endpoints: [engine.url] });
    expect(JSON.parse(await curl(`${url}/v1/models`))).toMatchObject({ path: "/v1/models" });
    const body = JSON.stringify({ model: "m", messages, stream: true });
    const streamed = await curl("--no-buffer", "--json", body, `${url}/v1/chat/completions`);
    expect(streamed).toBe(`${eventOf("hello")}${eventOf("-")}${eventOf("end")}data: [DONE]\n\n`);
  });

  test("speaks HTTP/1.0, and with Expect: 100-continue", async () => {
    const engine = await harness.engine("hello");
    const { url } = await harness.router({ endpoints: [engine.url] });
    const old = await curl("--http1.0", "--json", '{"stream": true}', url);
    expect(old).toContain("data: [DONE]");
    const args = ["--header", "Expect: 100-continue", "--data-binary", "x".repeat(5000), url];
    expect(JSON.parse(await curl(...args))).toMatchObject({ bytes: 5000 });
  });

  test("asks for HTTP/2 without TLS, and is answered as before", async () => {
    const engine = await harness.engine("hello");
    const { url } = await harness.router({ endpoints: [engine.url] });
    expect(JSON.parse(await curl("--http2", url))).toMatchObject({ id: "hello" });
  });

  test("uploads more than is kept, without saying how much", async () => {
    const engine = await harness.engine("hello");
    const { url } = await harness.router({
      endpoints: [engine.url],
      retry: { keepBodyBytes: 1000 },
    });
    const file = new URL("../../package-lock.json", import.meta.url).pathname;
    const args = ["--upload-file", file, "--header", "transfer-encoding: chunked", `${url}/f`];
    const { bytes, method } = JSON.parse(await curl(...args));
    expect([bytes, method]).toEqual([
      (await run("wc", ["-c", file])).stdout.split(" ").map(Number)[0],
      "PUT",
    ]);
  });
});
