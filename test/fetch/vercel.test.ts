// The Vercel AI SDK as it is published, over createFetch and engines on loopback.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createFetch } from "../../src/fetch/create-fetch";
import { FlowController } from "../../src/flow/index";
import type { EndpointPool } from "../../src/index";
import { until } from "../telemetry/servers";
import {
  beginStream,
  leasesOf,
  poolOf,
  sendEvent,
  sendJSON,
  startEngine,
  unstartedOf,
} from "./engines";

function modelOf(pool: EndpointPool, controller = new FlowController(pool)) {
  const provider = createOpenAICompatible({
    name: "pool",
    baseURL: "http://pool/v1",
    fetch: createFetch(pool, { controller }),
  });
  return provider("m");
}

const weather = tool({
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `rain in ${city}`,
});

describe("the Vercel AI SDK", () => {
  test("has an answer that is not streamed", async () => {
    const engine = await startEngine();
    const pool = poolOf(engine.url);
    const { text } = await generateText({ model: modelOf(pool), prompt: "Hello" });
    expect(text).toBe("Hello back");
    expect(engine.requests[0]?.url).toBe("/v1/chat/completions");
    expect(leasesOf(pool)).toBe(0);
  });

  test("has a streamed answer, whose lease starts with its first byte", async () => {
    const engine = await startEngine();
    const pool = poolOf(engine.url);
    let text = "";
    for await (const piece of streamText({ model: modelOf(pool), prompt: "Hello" }).textStream) {
      expect(unstartedOf(pool)).toBe(0);
      text += piece;
    }
    expect(text).toBe("Hello back");
    expect(leasesOf(pool)).toBe(0);
  });

  test.each([false, true])(
    "calls tools and goes on with their results, streamed: %s",
    async (streamed) => {
      const engine = await startEngine();
      const pool = poolOf(engine.url);
      const call = {
        model: modelOf(pool),
        prompt: "Weather?",
        tools: { weather },
        stopWhen: stepCountIs(3),
      };
      const text = streamed ? await streamText(call).text : (await generateText(call)).text;
      expect(text).toBe("Hello back");
      expect(engine.requests).toHaveLength(2);
      expect(engine.requests[1]?.body).toContain("rain in Kiel");
      expect(leasesOf(pool)).toBe(0);
    },
  );

  test("ends a stream by its abort signal", async () => {
    const engine = await startEngine((_, response) => {
      beginStream(response);
      sendEvent(response, { content: "Hello" }, null);
    });
    const pool = poolOf(engine.url);
    const abort = new AbortController();
    const { textStream } = streamText({
      model: modelOf(pool),
      prompt: "Hello",
      abortSignal: abort.signal,
    });
    for await (const _ of textStream) abort.abort();
    expect(leasesOf(pool)).toBe(0);
    await until(() => engine.broken.length === 1, "the engine saw it");
  });

  test("sees a refusal as an error that may be tried again", async () => {
    const pool = poolOf("http://10.0.0.7:8000");
    pool.report("http://10.0.0.7:8000", { waitingQueueSize: 9, kvCacheUsagePercent: 0.1 });
    const model = modelOf(pool, new FlowController(pool, { mode: "shed" }));
    const answer = generateText({ model, prompt: "Hello", maxRetries: 0 });
    await expect(answer).rejects.toMatchObject({ statusCode: 429, isRetryable: true });
    expect(leasesOf(pool)).toBe(0);
  });

  test("has its answer from the next endpoint when one is busy", async () => {
    const busy = await startEngine((_, response) => sendJSON(response, {}, 429));
    const engine = await startEngine();
    const pool = poolOf(busy.url, engine.url);
    const { text } = await generateText({ model: modelOf(pool), prompt: "Hello", maxRetries: 0 });
    expect([text, busy.requests.length, leasesOf(pool)]).toEqual(["Hello back", 1, 0]);
  });
});
