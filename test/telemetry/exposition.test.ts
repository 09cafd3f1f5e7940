import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TelemetryError } from "../../src/errors";
import { ENGINES, metricNames } from "../../src/telemetry/engines";
import { readExposition } from "../../src/telemetry/exposition";
import { PAGES } from "./pages";

const codes = (page: string | Uint8Array) => readExposition(page).findings.map(({ code }) => code);

describe("every row of the engine table", () => {
  test.each(PAGES)("$title is recognised and read", ({ engine, page, expected }) => {
    for (const body of [page, new TextEncoder().encode(page)]) {
      for (const given of [undefined, engine]) {
        const { sample, ...reading } = readExposition(body, given);
        expect(reading.engine).toBe(engine);
        expect({
          waiting: sample.waitingQueueSize,
          running: sample.runningRequests,
          kv: sample.kvCacheUsagePercent,
          capacity: sample.kvCapacityTokens,
          engines: sample.engines,
        }).toEqual(expected);
        expect(reading.findings).toEqual([]);
      }
    }
  });

  test("has a page here for every engine", () => {
    expect(new Set(PAGES.map(({ engine }) => engine))).toEqual(
      new Set(ENGINES.map(({ name }) => name)),
    );
  });

  test("names the metrics that a short page must have", () => {
    expect(metricNames("vllm")).toContain("vllm:num_requests_waiting");
    expect(metricNames("trtllm-serve")).toContain("trtllm_kv_cache_max_blocks");
    expect(metricNames("nim")).toContain("num_requests_waiting");
  });

  test("says which single engine has the longest queue", () => {
    const page = PAGES.find(({ title }) => title.includes("two data parallel"))?.page ?? "";
    expect(readExposition(page).sample.worstEngineQueueSize).toBe(9);
  });
});

describe("one line", () => {
  const waitingIn = (line: string) => readExposition(line, "vllm").sample.waitingQueueSize;

  test.each([
    ["vllm:num_requests_waiting 3", 3],
    ["vllm:num_requests_waiting\t3", 3],
    ["  vllm:num_requests_waiting   3  ", 3],
    ["vllm:num_requests_waiting 3 1700000000000", 3],
    ["vllm:num_requests_waiting 3 1700000000.123", 3],
    ['vllm:num_requests_waiting 3 # {trace_id="x"} 1 1700', 3],
    ["vllm:num_requests_waiting{} 3", 3],
    ['vllm:num_requests_waiting { model_name = "m" , } 3', 3],
    ['vllm:num_requests_waiting{m="a\\"b}\\\\"} 3', 3],
    ['vllm:num_requests_waiting{m="a,b={1}"} 3', 3],
    ["vllm:num_requests_waiting 3e0", 3],
    ["vllm:num_requests_waiting +3.", 3],
    ["vllm:num_requests_waiting .5", 0.5],
  ])("%j is read", (line, value) => {
    expect(waitingIn(line)).toBe(value);
    expect(waitingIn(`a 1\r\n${line}\r\nb 2\r\n`)).toBe(value);
  });

  test.each([
    "# vllm:num_requests_waiting 3",
    "# HELP vllm:num_requests_waiting 3",
    "vllm:num_requests_waiting3",
    "vllm:num_requests_waiting",
    "vllm:num_requests_waiting ",
    "vllm:num_requests_waiting x",
    "vllm:num_requests_waiting 0x10",
    "vllm:num_requests_waiting 1_000",
    "vllm:num_requests_waiting 3 4 5",
    "vllm:num_requests_waiting 3 noise",
    'vllm:num_requests_waiting{m="a} 3',
    'vllm:num_requests_waiting{m="a",,} 3',
    "vllm:num_requests_waiting{m=a} 3",
    'vllm:num_requests_waiting{...,m="a"} 3',
    "vllm:num_requests_waiting_total 3",
    "xvllm:num_requests_waiting 3",
    "other:num_requests_waiting 3",
    'other{name="vllm:num_requests_waiting 3"} 1',
  ])("%j is no reading, and 3 is not made of it", (line) => {
    expect(waitingIn(line)).toBeNull();
  });

  test("at the beginning of a page may stand behind a byte order mark", () => {
    expect(waitingIn("\ufeffvllm:num_requests_waiting 3")).toBe(3);
    expect(readExposition("\ufeffvllm:num_requests_waiting 3").engine).toBe("vllm");
  });

  test("that is not well formed is a finding and does not lose the page", () => {
    const page = "vllm:num_requests_running{...} 1\nvllm:num_requests_waiting 2\n";
    expect(readExposition(page).sample.waitingQueueSize).toBe(2);
    expect(codes(page)).toEqual(["bad-line"]);
  });

  test("of an info metric counts by the labels that can be read", () => {
    const info = 'vllm:cache_config_info{...,num_gpu_blocks="10",block_size="16",...} 1';
    expect(readExposition(info).sample.kvCapacityTokens).toBe(160);
    const decoy = 'vllm:cache_config_info{x=",num_gpu_blocks=",block_size="16"} 1';
    expect(readExposition(decoy).sample.kvCapacityTokens).toBeNull();
    const none = 'vllm:cache_config_info{num_gpu_blocks="None",block_size="16"} 1';
    expect(readExposition(none).sample.kvCapacityTokens).toBeNull();
  });
});

describe("values that make no sense", () => {
  test.each(["NaN", "-nan", "+Inf", "Infinity", "-inf", "-1"])("%s is not taken", (value) => {
    const { sample, findings } = readExposition(
      `vllm:num_requests_waiting ${value}\nvllm:kv_cache_usage_perc ${value}\n`,
    );
    expect(sample.waitingQueueSize).toBeNaN();
    expect(sample.kvCacheUsagePercent).toBeNaN();
    expect(findings.length).toBe(2);
  });

  test("one engine without a number makes the sum unknown, not smaller", () => {
    const page =
      'vllm:num_requests_waiting{engine="0"} 5\nvllm:num_requests_waiting{engine="1"} NaN';
    expect(readExposition(page).sample.waitingQueueSize).toBeNaN();
  });

  test("a process without a number does not hide the others of its engine", () => {
    const page = 'vllm:kv_cache_usage_perc{pid="1"} NaN\nvllm:kv_cache_usage_perc{pid="2"} 0.5';
    expect(readExposition(page).sample.kvCacheUsagePercent).toBe(0.5);
  });

  test("KV usage above 1.001 is asked whether it is a percentage", () => {
    const reading = readExposition("vllm:kv_cache_usage_perc 43\nvllm:num_requests_waiting 0\n");
    expect(reading.sample.kvCacheUsagePercent).toBeNaN();
    expect(reading.findings[0]?.message).toContain("percent?");
    expect(readExposition("vllm:kv_cache_usage_perc 1.001").sample.kvCacheUsagePercent).toBe(1.001);
  });

  test("absent is not zero", () => {
    expect(readExposition("vllm:num_requests_running 0").sample).toEqual({
      waitingQueueSize: null,
      runningRequests: 0,
      kvCacheUsagePercent: null,
      kvCapacityTokens: null,
      engines: 1,
      worstEngineQueueSize: null,
    });
  });
});

describe("what is no exposition", () => {
  test.each([
    ["", "empty"],
    [" \n ", "empty"],
    ['{"object":"list"}', "JSON"],
    ["<!doctype html><p>hi", "HTML"],
  ])("%j says what it is and where the right page would be", (body, kind) => {
    const { engine, findings } = readExposition(body);
    expect(engine).toBeUndefined();
    expect(findings[0]?.code).toBe("not-an-exposition");
    expect(findings[0]?.message).toContain(kind);
    expect(findings[0]?.message).toContain("/prometheus/metrics");
    expect(readExposition(body, "nim").findings[0]?.message).toContain("/v1/metrics");
  });

  test("a JSON list is what trtllm-serve answers under the wrong path", () => {
    const { engine, findings } = readExposition('[{"numQueuedRequests":4}]');
    expect(engine).toBe("trtllm-serve");
    expect(findings[0]?.message).toContain("/prometheus/metrics");
  });

  test("a page inside one JSON text is read", () => {
    const page = "vllm:num_requests_waiting 2\n";
    expect(readExposition(JSON.stringify(page)).sample.waitingQueueSize).toBe(2);
    expect(codes(JSON.stringify(page))).toEqual(["json-quoted"]);
    expect(codes(JSON.stringify(JSON.stringify(page)))).toContain("no-engine");
  });

  test("a page of somebody else has no engine", () => {
    expect(codes('ovms_infer_req_queue_size{name="m"} 12\ndynamo_requests 3\n')).toEqual([
      "no-engine",
    ]);
  });

  test("metadata without samples names the engine and says that there is nothing", () => {
    const { engine, findings } = readExposition("# TYPE vllm:num_requests_waiting gauge\n");
    expect(engine).toBe("vllm");
    expect(findings.map(({ code }) => code)).toEqual(["no-samples"]);
  });

  test("bare names are NIM's only when nobody else is on the page", () => {
    expect(readExposition("num_requests_waiting 1\nsglang:num_queue_reqs 2\n").engine).toBe(
      "sglang",
    );
  });

  test("a sample decides whose page it is, before any HELP line", () => {
    const page = "# HELP sglang:x y\nvllm:num_requests_waiting 2\n";
    expect(readExposition(page)).toMatchObject({ engine: "vllm", sample: { waitingQueueSize: 2 } });
  });

  test("150,000 engines on one page are read", () => {
    const lines = Array.from(
      { length: 150_000 },
      (_, i) => `vllm:num_requests_waiting{engine="${i}"} 1`,
    );
    const { sample } = readExposition(lines.join("\n"));
    expect(sample).toMatchObject({ waitingQueueSize: 150_000, worstEngineQueueSize: 1 });
  });

  test("misuse throws", () => {
    expect(() => readExposition("", "vlm" as never)).toThrow(/did you mean "vllm"/);
    expect(() => readExposition(5 as never)).toThrow(TelemetryError);
  });
});

test("a page reads the same wherever its line stands among other lines", () => {
  const others = fc.array(
    fc.oneof(
      fc.constantFrom("", "# a comment", "# EOF", 'a_total{b="c"} 1', "garbage{", "x 1 2 3", "\t"),
      fc.string().map((text) => `z${text.replace(/[\r\n]/g, " ")}`),
    ),
  );
  fc.assert(
    fc.property(others, fc.nat(), fc.boolean(), (lines, place, crlf) => {
      const all = [...lines];
      all.splice(place % (lines.length + 1), 0, 'vllm:num_requests_waiting{engine="0"} 17');
      const page = `a 1\n${all.join(crlf ? "\r\n" : "\n")}`;
      expect(readExposition(page, "vllm").sample.waitingQueueSize).toBe(17);
    }),
    { numRuns: 2000 },
  );
});
