// Recorded traces of three formats, with everything that files have in real life.

import { existsSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TraceError } from "../../src/errors";
import { readTrace } from "../../src/sim/traces";

const AZURE = `TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 23:59:59.9799600,480,10
2023-11-17 00:00:00.0319600,318,8
2023-11-17 00:00:01.5000000,110,27
`;
const BURSTGPT = `Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
5,,1.5,ChatGPT,472,18,490,Conversation log
45.5,,2,ChatGPT,1087,230,1317,Conversation log
`;
const MOONCAKE = `{"timestamp": 100, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}
{"timestamp": 3100, "input_length": 700, "output_length": 40, "hash_ids": []}
`;

describe("formats", () => {
  test("Azure: times of seven digits and no zone, over midnight", () => {
    const { format, requests, skipped } = readTrace(AZURE);
    expect([format, skipped]).toEqual(["azure", 0]);
    expect(requests.map(({ timeMs }) => Number(timeMs.toFixed(6)))).toEqual([0, 52, 1520.04]);
    expect(requests[1]).toMatchObject({ promptTokens: 318, outputTokens: 8 });
  });

  test("Azure's later files have a zone", () => {
    const text =
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10T02:00:00.5+0200,2399,6\n";
    expect(readTrace(text).requests.map(({ timeMs }) => Number(timeMs.toFixed(3)))).toEqual([
      0, 490.07,
    ]);
  });

  test("BurstGPT: seconds, columns by name, in any order", () => {
    expect(readTrace(BURSTGPT)).toMatchObject({
      format: "burstgpt",
      requests: [
        { timeMs: 0, promptTokens: 472, outputTokens: 18 },
        { timeMs: 40_500, promptTokens: 1087, outputTokens: 230 },
      ],
    });
    const early =
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,API log\n";
    expect(readTrace(early).requests[0]).toMatchObject({ promptTokens: 472 });
  });

  test("Mooncake: JSON lines with the hashes of chunks of 512 tokens", () => {
    const { format, requests } = readTrace(MOONCAKE);
    expect(format).toBe("mooncake");
    expect(requests[0]).toEqual({
      timeMs: 0,
      promptTokens: 6758,
      outputTokens: 500,
      hashIds: [0, 1, 2],
      chunkTokens: 512,
    });
    expect(requests[1]?.timeMs).toBe(3000);
  });
});

describe("files as they are", () => {
  const wanted = readTrace(AZURE).requests;

  test.each([
    ["CRLF", AZURE.replaceAll("\n", "\r\n")],
    ["no final newline", AZURE.trimEnd()],
    ["blank lines", AZURE.replaceAll("\n", "\n\n  \n")],
    ["a byte order mark", `\uFEFF${AZURE}`],
    ["quotes and spaces", AZURE.replace("480,10", ' "480" , "10" ')],
    [
      "a header in small letters",
      AZURE.replace("TIMESTAMP,ContextTokens", "timestamp,contexttokens"),
    ],
  ])("%s makes no difference", (_, text) => {
    expect(readTrace(text).requests).toEqual(wanted);
  });

  test("times that are out of order are put in order, and counted", () => {
    const [header = "", ...rows] = AZURE.trimEnd().split("\n");
    const shuffled = [header, rows[2], rows[0], rows[1]].join("\n");
    expect(readTrace(shuffled)).toMatchObject({ outOfOrder: 1, requests: wanted });
  });
});

describe("bad lines", () => {
  const bad: [string, string, string, number][] = [
    [
      "too few columns",
      AZURE.replace("318,8", "318"),
      "must have 3 columns as the header has, got 2",
      3,
    ],
    [
      "too many columns",
      AZURE.replace("318,8", "318,8,1"),
      "must have 3 columns as the header has, got 4",
      3,
    ],
    [
      "a negative length",
      AZURE.replace("318,8", "-318,8"),
      "tokens of the prompt must be an integer > 0, got -318",
      3,
    ],
    [
      "no length",
      AZURE.replace("318,8", "318,"),
      "tokens of the answer must be an integer > 0, got NaN",
      3,
    ],
    [
      "half a token",
      AZURE.replace("318,8", "318,0.5"),
      "tokens of the answer must be an integer > 0, got 0.5",
      3,
    ],
    [
      "no time",
      AZURE.replace("2023-11-17 00:00:00.0319600", "yesterday"),
      "the time must be as in 2023-11-16",
      3,
    ],
    [
      "a 13th month",
      AZURE.replace("2023-11-17 00:00:00.0319600", "2023-13-17 00:00:00"),
      "the time must be as in",
      3,
    ],
    [
      "an answer of no tokens (a request that failed)",
      BURSTGPT.replace("1087,230", "1087,0"),
      "tokens of the answer",
      3,
    ],
    ["a negative time", BURSTGPT.replace("45.5", "-1"), "the time must be seconds >= 0, got", 3],
    ["no JSON", MOONCAKE.replace('{"timestamp": 3100', "{timestamp"), "must be a JSON object", 2],
    ["another JSON", `${MOONCAKE}[1]`, "must be a JSON object, got [1]", 3],
    [
      "a text for a length",
      MOONCAKE.replace("700", '"700"'),
      "tokens of the prompt (input_length)",
      2,
    ],
    [
      "hashes that are none",
      MOONCAKE.replace("[]", "[-1]"),
      "hash_ids must be a list of integers >= 0",
      2,
    ],
    [
      "a time that is none",
      MOONCAKE.replace("3100", "null"),
      "timestamp must be ms >= 0, got null",
      2,
    ],
  ];

  test.each(bad)("%s: the error names file, line and fault", (_, text, fault, line) => {
    const read = () => readTrace(text, { name: "day.csv" });
    expect(read).toThrow(TraceError);
    expect(read).toThrow(`day.csv:${line}: `);
    expect(read).toThrow(fault);
  });

  test.each(bad)("%s: may be left out, and is counted", (_, text) => {
    const { skipped, requests } = readTrace(text, { skipBad: true });
    expect(skipped).toBe(1);
    expect(requests.length).toBeGreaterThan(0);
  });

  test.each([
    ["an empty file", "", "trace:1: the file is empty"],
    ["a header alone", AZURE.split("\n")[0] ?? "", "trace:1: there is no request in it"],
    [
      "columns that nobody knows",
      "\na,b,c\n1,2,3\n",
      "trace:2: its first line must be a header with TIMESTAMP",
    ],
  ])("%s says what would be right", (_, text, message) => {
    expect(() => readTrace(text)).toThrow(message);
  });

  test("a file of bad lines alone is an error even when they may be left out", () => {
    const text = "TIMESTAMP,ContextTokens,GeneratedTokens\nx,1,1\ny,1,1";
    expect(() => readTrace(text, { skipBad: true })).toThrow("all 2 lines are bad");
  });

  test("whatever stands in a file, it is read or refused with a TraceError", () => {
    const rows = fc.array(
      fc.oneof(fc.string(), fc.constantFrom(...AZURE.split("\n"), ...MOONCAKE.split("\n"))),
    );
    fc.assert(
      fc.property(rows, fc.boolean(), (lines, skipBad) => {
        try {
          const { requests } = readTrace(lines.join("\n"), { skipBad });
          for (const { timeMs, promptTokens, outputTokens } of requests) {
            expect(timeMs >= 0 && promptTokens > 0 && outputTokens > 0).toBe(true);
          }
        } catch (error) {
          expect(error).toBeInstanceOf(TraceError);
        }
      }),
    );
  });
});

const TRACES = new URL("../../../shared/traces/", import.meta.url);
const files = existsSync(TRACES)
  ? [
      ["AzureLLMInferenceTrace_code.csv", 8819, 2048, 27.9],
      ["AzureLLMInferenceTrace_conv.csv", 19366, 1155, 211],
    ]
  : [];

describe(`public traces (${files.length} files; none means that ../shared is not there)`, () => {
  test("are there, or are not", () => expect([0, 2]).toContain(files.length));

  test.each(files)("%s has %d requests of these mean lengths", (name, count, prompt, output) => {
    const { requests } = readTrace(readFileSync(new URL(String(name), TRACES), "utf8"));
    const mean = (of: (one: (typeof requests)[number]) => number) =>
      requests.reduce((sum, one) => sum + of(one), 0) / requests.length;
    expect(requests).toHaveLength(Number(count));
    expect(Math.abs(mean((one) => one.promptTokens) / Number(prompt) - 1)).toBeLessThan(0.01);
    expect(Math.abs(mean((one) => one.outputTokens) / Number(output) - 1)).toBeLessThan(0.01);
  });
});
