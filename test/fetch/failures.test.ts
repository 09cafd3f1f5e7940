import { describe, expect, test } from "vitest";
import { isConnectionFailure } from "../../src/fetch/failures";

const withCode = (code: unknown, error: Error = new TypeError("fetch failed")) =>
  Object.assign(error, { code });
const causedBy = (cause: unknown) => new TypeError("fetch failed", { cause });

describe("isConnectionFailure", () => {
  test.each<[string, unknown]>([
    ["Node: refused", causedBy(withCode("ECONNREFUSED", new AggregateError([])))],
    ["Node: reset", causedBy(withCode("ECONNRESET"))],
    ["undici: hung up", causedBy(withCode("UND_ERR_SOCKET"))],
    ["undici: connect timeout", causedBy(withCode("UND_ERR_CONNECT_TIMEOUT"))],
    ["Bun", withCode("ConnectionRefused", new Error("Unable to connect"))],
    ["Deno", causedBy(new Error("Connection reset by peer (os error 104)"))],
    ["a browser", new TypeError("Failed to fetch")],
  ])("is so for %s", (_, error) => {
    expect(isConnectionFailure(error)).toBe(true);
  });

  test.each<[string, unknown]>([
    ["an abort", new DOMException("aborted", "AbortError")],
    ["a timeout", new DOMException("too slow", "TimeoutError")],
    ["an endpoint that is slow", causedBy(withCode("UND_ERR_HEADERS_TIMEOUT"))],
    ["an answer that is no HTTP", causedBy(withCode("HPE_INVALID_CONSTANT"))],
    ["an error of the caller", new Error("mine")],
    ["a code that is no text", withCode(7, new Error("mine"))],
    ["a text", "ECONNREFUSED"],
    ["null", null],
    ["undefined", undefined],
  ])("is not so for %s", (_, error) => {
    expect(isConnectionFailure(error)).toBe(false);
  });

  test("ends where causes go round in a circle", () => {
    const error: Error = new Error("a");
    error.cause = error;
    expect(isConnectionFailure(error)).toBe(false);
  });
});
