import { describe, expect, test } from "vitest";
import { estimateTokens } from "../../src/fetch/tokens";

describe("estimateTokens", () => {
  test("takes a quarter of the characters of a JSON text or of JSON bytes", () => {
    const text = JSON.stringify({ messages: [{ content: "x".repeat(4000) }] });
    expect(estimateTokens(text)).toBe(text.length / 4);
    expect(estimateTokens(new TextEncoder().encode(text))).toBe(text.length / 4);
  });

  test("does not count an inlined file by its length", () => {
    const image = (size: number) =>
      JSON.stringify({ url: `data:image/png;base64,${"A".repeat(size)}`, text: "what is it" });
    expect(estimateTokens(image(1_000_000))).toBe(estimateTokens(image(10)));
    expect(estimateTokens(`[${image(9)},${image(99)}]`)).toBeGreaterThan(1024);
    expect(estimateTokens('{"cut short": ";base64,AAAA')).toBeGreaterThan(512);
  });

  test.each([
    ["plain text", "hello"],
    ["an empty text", ""],
    ["empty bytes", new Uint8Array()],
    ["a form", new URLSearchParams({ a: "{" })],
    ["a Blob", new Blob(["{}"])],
    ["nothing", null],
    ["nothing at all", undefined],
  ])("leaves %s to the pool", (_, body) => {
    expect(estimateTokens(body)).toBeUndefined();
  });
});
