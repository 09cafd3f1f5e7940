// The OpenAI SDK as it is published, over createFetch and engines on loopback.

import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { createFetch } from "../../src/fetch/create-fetch";
import { FlowController } from "../../src/flow/index";
import type { EndpointPool } from "../../src/index";
import { until } from "../telemetry/servers";
import {
  beginStream,
  deadUrl,
  leasesOf,
  poolOf,
  sendEvent,
  sendJSON,
  startEngine,
  unstartedOf,
} from "./engines";

const QUESTION = { model: "m", messages: [{ role: "user" as const, content: "Hello" }] };
const TOOLS: OpenAI.ChatCompletionTool[] = [
  { type: "function", function: { name: "weather", parameters: { type: "object" } } },
];

function clientOf(pool: EndpointPool, maxRetries = 0, controller = new FlowController(pool)) {
  return new OpenAI({
    baseURL: "http://pool/v1",
    apiKey: "none",
    maxRetries,
    fetch: createFetch(pool, { controller }),
  });
}

describe("the OpenAI SDK", () => {
  test("has an answer that is not streamed", async () => {
    const engine = await startEngine();
    const pool = poolOf(engine.url);
    const answer = await clientOf(pool).chat.completions.create(QUESTION);
    expect(answer.choices[0]?.message.content).toBe("Hello back");
    expect(engine.requests[0]?.url).toBe("/v1/chat/completions");
    expect(leasesOf(pool)).toBe(0);
  });

  test("has a streamed answer, whose lease starts with its first byte", async () => {
    const engine = await startEngine();
    const pool = poolOf(engine.url);
    const stream = await clientOf(pool).chat.completions.create({ ...QUESTION, stream: true });
    expect([leasesOf(pool), unstartedOf(pool)]).toEqual([1, 1]);
    let text = "";
    for await (const chunk of stream) {
      expect(unstartedOf(pool)).toBe(0);
      text += chunk.choices[0]?.delta.content ?? "";
    }
    expect(text).toBe("Hello back");
    expect(leasesOf(pool)).toBe(0);
  });

  test.each([false, true])(
    "calls tools and answers with their results, streamed: %s",
    async (streamed) => {
      const engine = await startEngine();
      const pool = poolOf(engine.url);
      const { chat } = clientOf(pool);
      const ask = async (messages: OpenAI.ChatCompletionMessageParam[]) => {
        const body = { model: "m", messages, tools: TOOLS };
        if (!streamed) return (await chat.completions.create(body)).choices[0]?.message;
        return (await chat.completions.stream(body).finalChatCompletion()).choices[0]?.message;
      };
      const first = await ask(QUESTION.messages);
      const [call] = first?.tool_calls ?? [];
      expect(call).toMatchObject({ id: "t1", function: { arguments: '{"city":"Kiel"}' } });
      const result = { role: "tool" as const, tool_call_id: "t1", content: "rain" };
      const called = { role: "assistant" as const, tool_calls: first?.tool_calls ?? [] };
      expect((await ask([...QUESTION.messages, called, result]))?.content).toBe("Hello back");
      expect([engine.requests.length, leasesOf(pool)]).toEqual([2, 0]);
    },
  );

  test.each(["its controller", "leaving the loop"])("ends a stream by %s", async (how) => {
    const engine = await startEngine((_, response) => {
      beginStream(response);
      sendEvent(response, { content: "Hello" }, null);
    });
    const pool = poolOf(engine.url);
    const stream = await clientOf(pool).chat.completions.create({ ...QUESTION, stream: true });
    for await (const _ of stream) {
      if (how === "leaving the loop") break;
      stream.controller.abort();
    }
    expect(leasesOf(pool)).toBe(0);
    await until(() => engine.broken.length === 1, "the engine saw it");
  });

  test("gives up by its own timeout", async () => {
    const engine = await startEngine(() => undefined);
    const pool = poolOf(engine.url);
    const answer = clientOf(pool).chat.completions.create(QUESTION, { timeout: 50 });
    await expect(answer).rejects.toThrow(OpenAI.APIConnectionTimeoutError);
    await until(() => leasesOf(pool) === 0, "the lease is back");
  });

  test("has its answer from the next endpoint when one is dead", async () => {
    const engine = await startEngine();
    const pool = poolOf(await deadUrl(), engine.url);
    const answer = await clientOf(pool).chat.completions.create(QUESTION);
    expect(answer.choices[0]?.message.content).toBe("Hello back");
    expect(leasesOf(pool)).toBe(0);
  });

  test("sees a refusal as its own RateLimitError, with the reason", async () => {
    const pool = poolOf("http://10.0.0.7:8000");
    pool.report("http://10.0.0.7:8000", { waitingQueueSize: 9, kvCacheUsagePercent: 0.1 });
    const controller = new FlowController(pool, { mode: "shed" });
    const answer = clientOf(pool, 0, controller).chat.completions.create(QUESTION);
    await expect(answer).rejects.toThrow(OpenAI.RateLimitError);
    await expect(answer).rejects.toMatchObject({ status: 429, code: "saturated" });
  });

  test("tries again by itself after an error, and leaves no lease", async () => {
    const engine = await startEngine((_, response) => {
      response.setHeader("retry-after-ms", "1");
      if (engine.requests.length < 3) sendJSON(response, { error: {} }, 500);
      else sendJSON(response, { choices: [] });
    });
    const pool = poolOf(engine.url);
    await clientOf(pool, 2).chat.completions.create(QUESTION);
    expect([engine.requests.length, leasesOf(pool)]).toEqual([3, 0]);
  });

  test("uploads a file, whose body is sent again where need be", async () => {
    const busy = await startEngine((_, response) => sendJSON(response, {}, 503));
    const engine = await startEngine((_, response) => sendJSON(response, { id: "file-1" }));
    const pool = poolOf(busy.url, engine.url);
    const file = new File(["the content"], "a.jsonl");
    await clientOf(pool).files.create({ file, purpose: "batch" });
    expect(engine.requests[0]?.body).toContain("the content");
    expect(leasesOf(pool)).toBe(0);
  });
});
