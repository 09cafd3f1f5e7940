// What is read of a request's JSON. The oracle is JSON.parse.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FormReader, JsonReader, readFacts } from "../../src/router/facts";

const factsOf = (text: string) => readFacts(Buffer.from(text));

describe("readFacts", () => {
  test("reads the fields at the top, whatever else there is", () => {
    const key = fc.constantFrom(
      "model",
      "user",
      "prompt_cache_key",
      "stream",
      "messages",
      "x",
      "m\u00fc",
    );
    const value = fc.oneof(
      fc.string(),
      fc.string({ unit: "grapheme" }),
      fc.boolean(),
      fc.jsonValue({ maxDepth: 3 }),
      fc.record({ model: fc.string(), stream: fc.boolean() }),
    );
    const body = fc.dictionary(key, value);
    const indent = fc.constantFrom(undefined, 2, "\t");
    fc.assert(
      fc.property(body, indent, (object, space) => {
        const facts = factsOf(JSON.stringify(object, undefined, space));
        const text = (one: unknown) => (typeof one === "string" ? one : undefined);
        expect(facts).toMatchObject({
          model: text(object.model),
          user: text(object.user),
          promptCacheKey: text(object.prompt_cache_key),
          stream: object.stream === true,
        });
      }),
      { numRuns: 1000 },
    );
  });

  test("never throws, and reads nothing that is not there, in any bytes and any part of a text", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        readFacts(Buffer.from(bytes));
      }),
    );
    const whole = JSON.stringify({ a: [1, "}"], model: "large", stream: true, messages: ["x"] });
    for (let length = 0; length < whole.length; length++) {
      const { model } = factsOf(whole.slice(0, length));
      expect(model === undefined || model === "large").toBe(true);
    }
    expect(factsOf(whole.slice(0, -4)).model).toBe("large");
  });

  test("it is the same in whatever parts the text comes", () => {
    const value = fc.oneof(fc.string({ unit: "binary" }), fc.constant('\\"\\'), fc.boolean());
    const key = fc.constantFrom("model", "user", "stream", "messages", "x", "prompt_cache_key");
    const cuts = fc.array(fc.nat(200), { maxLength: 10 });
    fc.assert(
      fc.property(fc.dictionary(key, value), cuts, (object, at) => {
        const body = Buffer.from(JSON.stringify(object));
        const reader = new JsonReader();
        let from = 0;
        for (const to of [...at.sort((a, b) => a - b), body.length]) {
          reader.push(body.subarray(from, to));
          from = Math.max(from, Math.min(to, body.length));
        }
        expect(reader.facts).toEqual(readFacts(body));
        expect(reader.isDone).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  test("a name that is too long is not taken for none", () => {
    const facts = factsOf(`{"model":"${"m".repeat(10_000)}","user":"${"u".repeat(10_000)}"}`);
    expect(facts.model?.length).toBeGreaterThan(4096);
    expect(facts.user).toBeUndefined();
  });

  test("the mark of UTF-8 may stand before the object, and nothing else", () => {
    expect(factsOf('\ufeff {"model":"m"}').model).toBe("m");
    expect(factsOf('x{"model":"m"}').model).toBeUndefined();
  });

  test("the last of equal keys counts, under any spelling", () => {
    expect(factsOf('{"model":"a","m\\u006fdel":"b"}').model).toBe("b");
    for (const value of ["null", "5", "{}", '["b"]']) {
      expect(factsOf(`{"model":"a","model":${value}}`).model).toBeUndefined();
    }
    expect(factsOf('{"stream":true,"stream":false}').stream).toBe(false);
  });

  test.each(['["model"]', '"model"', "5", "", "null", "not JSON", '[{"model":"m"}]'])(
    "%s says nothing",
    (text) => {
      expect(factsOf(text)).toMatchObject({ model: undefined, tokens: undefined });
    },
  );

  test("a prompt has about a token per four bytes, a picture counts as a thousand", () => {
    const text = "x".repeat(4000);
    const chat = { messages: [{ role: "user", content: text }] };
    expect(factsOf(JSON.stringify(chat)).tokens).toBeCloseTo(1000, -2);
    expect(factsOf(JSON.stringify({ prompt: text })).tokens).toBe(1000);
    expect(factsOf(JSON.stringify({ prompt: [text, text] })).tokens).toBe(2000);
    expect(factsOf(JSON.stringify({ other: text })).tokens).toBeUndefined();
    const image_url = { url: `data:image/png;base64,${"A".repeat(1e6)}` };
    const picture = { messages: [{ content: [{ type: "image_url", image_url }] }] };
    expect(factsOf(JSON.stringify(picture)).tokens).toBeLessThan(1100);
  });

  test("takes time in proportion to the text, whatever is in it", () => {
    for (const text of [
      `{"a":"${'\\"'.repeat(2e6)}`,
      `{"a":"${"\\".repeat(4e6)}`,
      "{".repeat(4e6),
    ]) {
      expect(factsOf(text).model).toBeUndefined();
    }
  });
});

describe("a form", () => {
  const part = (name: string, value: string) =>
    `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const file = `--b\r\nContent-Disposition: form-data; name="file"; filename="model"\r\n\r\n${"\0".repeat(9000)}\r\n`;
  const body = Buffer.from(`${file}${part("model", "m\u00fc")}${part("x", "y")}--b--`);

  test.each([1, 7, 100, 100_000])("says its model, in parts of %d bytes", (size) => {
    const reader = new FormReader();
    for (let at = 0; at < body.length; at += size) reader.push(body.subarray(at, at + size));
    expect([reader.facts.model, reader.isDone]).toEqual(["m\u00fc", true]);
  });

  test("without one says nothing, and keeps little of it", () => {
    const reader = new FormReader();
    for (let i = 0; i < 100; i++) reader.push(Buffer.from(part("x", "y".repeat(10_000))));
    reader.push(Buffer.from(part("model", "").slice(0, -4) + "z".repeat(100_000)));
    expect([reader.facts.model, reader.isDone]).toEqual([undefined, false]);
  });
});
