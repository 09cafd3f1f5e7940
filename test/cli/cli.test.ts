// The command as people meet it: words in, text and exit code out.

import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type Endpoint, pageOf, serve } from "../telemetry/servers";
import { plimsoll } from "./run";

const folder = mkdtempSync(join(tmpdir(), "plimsoll-"));
const open: Endpoint[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

async function endpoint(page: string): Promise<string> {
  const one = await serve((_, response) => response.end(page));
  open.push(one);
  return one.url;
}

describe("help and usage", () => {
  test.each([
    [["--help"], /plimsoll serve --demo/],
    [["watch", "--help"], /--record <file>/],
    [["score", "--help"], /curl -s/],
    [["check", "--help"], /queueDepthThreshold: 5/],
    [["--version"], /^\d+\.\d+\.\d+/],
  ])("%j teaches and is fine", async (args, text) => {
    const { code, out } = await plimsoll(args);
    expect(code).toBe(0);
    expect(out).toMatch(text);
  });

  test.each([
    [["wacth"], /Did you mean watch/],
    [["watch", "--intervall", "5"], /Did you mean --interval/],
    [["watch"], /--demo/],
    [["watch", "http://a", "--engine", "vlm"], /Allowed choices/],
    [["watch", "http://a", "--set", "headrom=1"], /"headroom"/],
    [["watch", "http://a", "--set", "headroom"], /key=value/],
    [["watch", "ftp://a"], /http or https/],
    [["watch", "http://a", "--interval", "5 s"], /interval: must be a duration/],
    [["score"], /needs a file/],
    [["score", "x", "--replay", "y"], /not both/],
    [["score", "/nowhere"], /ENOENT/],
    [["check", "/nowhere"], /ENOENT/],
    [["check", "."], /EISDIR/],
    [["score", "."], /EISDIR/],
    [["score", "x", "--set", "headroom=[1"], /no YAML/],
  ])("%j is wrong usage, and says what would be right", async (args, text) => {
    const { code, err } = await plimsoll(args);
    expect(err).toMatch(text);
    expect(code).toBe(2);
  });
});

describe("check", () => {
  test("prints every fault with line and column", async () => {
    const file = write(
      "bad.yaml",
      `# comment
queueDepthTreshold: 3
headroom: -1
metricsStalenessThreshold: 5
endpoints:
  - url: ftp://x
    weight: 0
  - http://fine
  - { url: "http://b", colour: red }
`,
    );
    const { code, out } = await plimsoll(["check", file]);
    expect(code).toBe(1);
    expect(out.split("\n").map((line) => line.replace(file, "f").slice(0, 40))).toEqual([
      "f:2:1: queueDepthTreshold: unknown optio",
      "f:3:1: headroom: must be a fraction >= 0",
      "f:6:5: endpoints.0.url: must be an http ",
      "f:7:5: endpoints.0.weight: must be a fin",
      "f:9:24: endpoints.2.colour: unknown opti",
      "",
    ]);
  });

  test.each([
    ["a: [1", /:1:|:2:/],
    ["headroom: 1\nheadroom: 2\n", /:2:1: .*unique/],
    ["headroom: !!js/function 'x'\n", /tag/],
    ["headroom: !mine 0.1\n", /tag/],
    [
      "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c]\n",
      /alias/,
    ],
    ["just text", /must be an object/],
    ["", /is empty; \{\} takes every default/],
    ["# only words\n", /is empty; \{\} takes every default/],
    ['{"__proto__": {"headroom": 1}}', /unknown option/],
  ])("%j is a fault, not a crash", async (text, expected) => {
    const { code, out } = await plimsoll(["check", write("odd.yaml", text)]);
    expect(out).toMatch(expected);
    expect(code).toBe(1);
  });

  test("shows no secret, and the S that a scraper will use", async () => {
    const text = `interval: 1s
endpoints:
  - { url: "http://me:geheim@h:1", headers: { authorization: "Bearer TOKEN" } }
  - http://h:2/metrics?token=TOKEN&part=geheim
  - http://h:3/metrics?geheim
dns:
  - { url: "http://geheim@name:4/x?a=TOKEN", requestHeaders: { key: geheim } }
`;
    for (const more of [[], ["--json"]]) {
      const { code, out } = await plimsoll(["check", write("secret.yaml", text), ...more]);
      expect([code, out.includes("geheim"), out.includes("TOKEN")]).toEqual([0, false, false]);
    }
    const { out } = await plimsoll(["check", write("secret.yaml", text)]);
    expect(out).toContain("http://h:2/metrics?token=***&part=***");
    expect(out).toContain("metricsStalenessThreshold: 3s");
  });

  test("prints what a config resolves to, and takes it back", async () => {
    const file = write("fine.json", '{"holdFor": "1m30s", "endpoints": ["http://a:1"]}');
    const first = await plimsoll(["check", file]);
    expect(first).toMatchObject({ code: 0, err: "" });
    expect(first.out).toContain("holdFor: 1m30s");
    const again = await plimsoll(["check", write("again.yaml", first.out), "--json"]);
    expect(JSON.parse(again.out)).toMatchObject({ faults: [], config: { holdFor: "1m30s" } });
  });
});

describe("score", () => {
  test("judges pages of any engine, and exits with 1 when one cannot be read", async () => {
    const fine = write("fine.txt", pageOf(2));
    const sglang = write("sglang.txt", "sglang:num_queue_reqs 4\nsglang:token_usage 0.1\n");
    expect(await plimsoll(["score", fine, sglang])).toMatchObject({ code: 0 });
    const broken = write("broken.txt", '{"object": "list"}');
    const { code, out } = await plimsoll(["score", fine, broken]);
    expect(code).toBe(1);
    expect(out).toContain("the page is JSON");
  });

  test("reads standard input and speaks JSON", async () => {
    const { code, out } = await plimsoll(["score", "-", "--json"], { input: pageOf(9) });
    expect(code).toBe(1);
    const { saturation, endpoints } = JSON.parse(out);
    expect([saturation, endpoints[0].engine, endpoints[0].state]).toEqual([
      1.8,
      "vllm",
      "queue-full",
    ]);
  });

  test("takes thresholds from --config and --set, the latter first", async () => {
    const config = write("q.yaml", "queueDepthThreshold: 2\nheadroom: 0.5\n");
    const args = ["score", "-", "--json", "--config", config, "--set", "queueDepthThreshold=10"];
    const { out } = await plimsoll(args, { input: pageOf(4) });
    expect(JSON.parse(out)).toMatchObject({ saturation: 0.4, endpoints: [{ queueLimit: 15 }] });
  });

  test("takes options before files, and repeated ones", async () => {
    const file = write("set.txt", pageOf(4));
    const args = [
      "score",
      "--set",
      "queueDepthThreshold=8",
      "--set",
      "headroom=0.5",
      file,
      "--json",
    ];
    const { out } = await plimsoll(args);
    expect(JSON.parse(out)).toMatchObject({ saturation: 0.5, endpoints: [{ queueLimit: 12 }] });
  });

  test("removes what would steer the terminal", async () => {
    const file = write("esc\u001b[31m.txt", pageOf(1));
    const { out } = await plimsoll(["score", file]);
    expect(out).not.toContain("\u001b");
  });
});

describe("watch", () => {
  test("--once prints one table and exits by what it found", async () => {
    const url = await endpoint(pageOf(2));
    const { code, out, err } = await plimsoll(["watch", url, "--once"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain("saturation 0.40 (mean)  1/1 candidates");
    const full = await endpoint(pageOf(9));
    expect((await plimsoll(["watch", full, "--once"])).code).toBe(1);
    const gone = await plimsoll(["watch", url, "http://127.0.0.1:9", "--once", "--json"]);
    expect(gone.code).toBe(1);
    expect(JSON.parse(gone.out).endpoints[1].error).toContain("ECONNREFUSED");
  });

  test("without a terminal it prints a line per tick, and ends at a signal", async () => {
    const url = await endpoint(pageOf(2));
    for (const name of ["SIGINT", "SIGTERM"] as const) {
      const { code, out } = await plimsoll(["watch", url], { signal: { after: /\n/, name } });
      expect(code).toBe(0);
      expect(out).toMatch(/^\d\d:\d\d:\d\d {2}saturation 0\.40 \(mean\)/);
      expect(out).not.toContain("\u001b");
    }
  });

  test("what it records is judged again, under another config", async () => {
    const url = await endpoint(pageOf(4));
    const file = join(folder, "recording.jsonl");
    const args = ["watch", url, "--json", "--interval", "20ms", "--record", file];
    const { out } = await plimsoll(args, { signal: { after: /\n.*\n/, name: "SIGINT" } });
    expect(JSON.parse(out.split("\n")[0] ?? "")).toMatchObject({ saturation: 0.8 });
    expect(readFileSync(file, "utf8").split("\n").length).toBeGreaterThan(20);
    const loose = await plimsoll(["score", "--replay", file, "--json"]);
    expect(loose.code).toBe(0);
    expect(JSON.parse(loose.out)).toMatchObject({ saturatedShare: 0, badLines: [] });
    const strict = await plimsoll(["score", "--replay", file, "--set", "queueDepthThreshold=4"]);
    expect(strict.code).toBe(1);
    expect(strict.out).toContain("saturated   100.0% of the time");
  });

  test("a file that cannot be recorded to, and a fault beside the demo, end it", async () => {
    const url = await endpoint(pageOf(2));
    const unwritable = await plimsoll(["watch", url, "--once", "--record", "/nowhere/x.jsonl"]);
    expect(unwritable).toMatchObject({ code: 2, err: expect.stringContaining("ENOENT") });
    const twice = await plimsoll(["watch", "--demo", url, url, "--once"]);
    expect(twice.code).toBeGreaterThan(0);
  });

  test("--once does not wait for its turn in a long interval", async () => {
    const url = await endpoint(pageOf(2));
    expect((await plimsoll(["watch", url, "--once", "--interval", "1h"])).code).toBe(0);
  });

  test("--demo shows every engine", async () => {
    const { out } = await plimsoll(["watch", "--demo", "--once"]);
    for (const engine of ["vllm", "sglang", "trtllm-serve"]) expect(out).toContain(engine);
  });
});
