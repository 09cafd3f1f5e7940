import { describe, expect, test } from "vitest";
import { refusalBody, refusalHeaders } from "../../src/flow/answer";
import { AdmissionError } from "../../src/flow/errors";
import type { Refusal } from "../../src/flow/ticket";

const saturated: Refusal = {
  reason: "saturated",
  status: 429,
  retryAfterS: 1.2,
  gate: { resource: "kv", value: 0.91239, limit: 0.8, endpoint: "http://10.0.0.7:8000" },
  waitedMs: 3,
};

describe("a refusal as an HTTP answer", () => {
  test("has whole seconds, the reason and what closed the gate, and names no endpoint", () => {
    expect(refusalHeaders(new AdmissionError(saturated))).toEqual({
      "retry-after": "2",
      "x-plimsoll-reason": "saturated",
      "x-plimsoll-gate": "resource=kv; value=0.912; limit=0.8",
    });
  });

  test("has no header for what is not known", () => {
    const gone = { ...saturated, reason: "cancelled", status: undefined } as const;
    const error = new AdmissionError({ ...gone, retryAfterS: undefined, gate: undefined });
    expect(refusalHeaders(error)).toEqual({ "x-plimsoll-reason": "cancelled" });
  });

  test.each([
    [429, "rate_limit_exceeded"],
    [503, "service_unavailable"],
  ] as const)("with %i has a body in the form of the OpenAI API", (status, type) => {
    const error = new AdmissionError({ ...saturated, status });
    const { message } = error;
    expect(refusalBody(error)).toEqual({
      error: { message, type, param: null, code: "saturated" },
    });
    expect(message).not.toContain("10.0.0.7");
  });
});
