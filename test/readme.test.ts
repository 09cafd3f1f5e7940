// README.md is true: every JavaScript snippet runs and prints what its comments say, and every
// command line in it is one that is known to work.
//
//   ```js   runs as an ES module. A line that ends in `// prints X` must print X, in order.
//   ```sh   each line must be in COMMANDS below, with how it is proved.

import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { ConfigError, resolveConfig } from "../src/index";
import { ENGINES } from "../src/telemetry/engines";

const run = promisify(execFile);
const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const pkg = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

function blocks(language: string): string[] {
  const pattern = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g");
  return [...readme.matchAll(pattern)].map(([, code = ""]) => code);
}

const cli = (...args: string[]) =>
  spawnSync(process.execPath, ["dist/cli.js", ...args], { encoding: "utf8", timeout: 20_000 });
const helpOf = (command: string) => cli(command, "--help").stdout;

/** Command lines of the README, and what proves each. */
const COMMANDS: Record<string, () => void> = {
  "npm ci && npm start": () => {
    expect(pkg.scripts.start).toBe("npm run build --silent && node dist/cli.js serve --demo");
    expect(helpOf("serve")).toContain("--demo");
  },
  "npm ci && npm test": () => expect(pkg.scripts.test).toBe("vitest run"),
  "npm run bench": () => expect(pkg.scripts.bench).toContain("bench/kernel.ts"),
  "npm ci --ignore-scripts --prefix test/runtimes": () =>
    expect(readFileSync("test/runtimes/package-lock.json", "utf8")).toContain("workerd"),
  "npm run test:runtimes": () => expect(pkg.scripts["test:runtimes"]).toBeDefined(),
  "npm run sim:page": () => expect(pkg.scripts["sim:page"]).toContain("/sim.html"),
  "npm run test:page": () => expect(pkg.scripts["test:page"]).toContain("test/web/run.js"),
  "npm run test:browser": () => expect(pkg.scripts["test:browser"]).toBeDefined(),
  "npx plimsoll serve http://10.0.0.7:8000 http://10.0.0.8:8000": () =>
    expect(helpOf("serve")).toContain("[urls...]"),
  "npx plimsoll watch http://10.0.0.7:8000 http://10.0.0.8:8000": () =>
    expect(helpOf("watch")).toContain("[urls...]"),
  "npx plimsoll watch --config plimsoll.yaml --record monday.jsonl": () =>
    expect(helpOf("watch")).toContain("--record <file>"),
  "npx plimsoll score --replay monday.jsonl --set queueDepthThreshold=8": () =>
    expect(helpOf("score")).toContain("--set <key=value>"),
  "curl -s http://10.0.0.7:8000/metrics | npx plimsoll score -": () =>
    expect(helpOf("score")).toContain("standard input"),
  "npx plimsoll check plimsoll.yaml": () => expect(helpOf("check")).toContain("<config>"),
  "npx plimsoll check --from-epp epp.yaml > plimsoll.yaml": () =>
    expect(helpOf("check")).toContain("--from-epp"),
  "npm run docs": () => expect(pkg.scripts.docs).toContain("typedoc"),
  "npm run test:recipes": () => expect(pkg.scripts["test:recipes"]).toContain("recipes"),
  "npx plimsoll sim --list": () => expect(cli("sim", "--list").stdout).toContain("thundering-herd"),
  "npx plimsoll sim thundering-herd --compare original,plimsoll": () =>
    expect(
      cli("sim", "thundering-herd", "--compare", "original,plimsoll", "--set", "duration=2s")
        .stdout,
    ).toMatch(/original +plimsoll/),
  "npx plimsoll sim kv-pressure --sweep kvCacheUtilThreshold=0.5..1:0.1": () =>
    expect(helpOf("sim")).toContain("kvCacheUtilThreshold=0.5..1:0.1"),
  "npx plimsoll sim --trace AzureLLMInferenceTrace_conv.csv --html report.html": () => {
    expect(helpOf("sim")).toContain("--trace <file>");
    expect(helpOf("sim")).toContain("--html <file>");
  },
  "npx plimsoll sim --print two-tenants > mine.yaml": () =>
    expect(cli("sim", "--print", "two-tenants").stdout).toContain("name: two-tenants"),
};

/** An engine for the snippets: a metrics page, and a streamed answer to every chat. */
function serveEngine(): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    if (request.url?.startsWith("/metrics")) {
      response.end("vllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0.1\n");
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const content of ["Hello", " back"]) {
      const chunk = {
        object: "chat.completion.chunk",
        choices: [{ index: 0, delta: { content } }],
      };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    }
    response.end("data: [DONE]\n\n");
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      resolve({ url: `http://127.0.0.1:${port}`, close: () => server.close() });
    });
  });
}

describe("JavaScript snippets", () => {
  test.each(blocks("js").map((code) => [code.trim().split("\n").at(0), code]))(
    "%s",
    async (_, code) => {
      const engine = await serveEngine();
      const expected = [...code.matchAll(/\/\/ prints (.*)$/gm)].map(([, text]) => text);
      const args = ["--input-type=module", "-e", code];
      const env = { ...process.env, ENGINES: engine.url };
      const { stdout: printed } = await run(process.execPath, args, { env, timeout: 20_000 });
      engine.close();
      expect(printed.trim().split("\n").filter(Boolean)).toEqual(expected);
    },
  );
});

describe("command lines", () => {
  const lines = blocks("sh").flatMap((code) =>
    code
      .split("\n")
      .map((line) => line.replace(/#.*$/, "").trim())
      .filter((line) => line !== ""),
  );

  test.each(lines)("%s", (line) => {
    const proof = COMMANDS[line];
    if (proof === undefined) expect.unreachable(`no proof for: ${line}`);
    proof?.();
  });
});

describe("tables", () => {
  test("name every option with its default, and no other", () => {
    for (const [key, value] of Object.entries(resolveConfig({}))) {
      const row = readme.split("\n").find((line) => line.startsWith(`| \`${key}\` |`));
      const shown =
        key.endsWith("Threshold") && value === 200 ? "200ms" : value === 2000 ? "2s" : value;
      expect(row, key).toContain(`\`${shown}\``);
    }
    expect(() => resolveConfig({ nothing: 1 })).toThrow(ConfigError);
  });

  test("name every engine, every rule and every error code", () => {
    for (const { name, metricsPath } of ENGINES) {
      const row = readme.split("\n").find((line) => line.includes(`| \`${name}\` |`));
      expect(row, name).toContain(metricsPath);
    }
    for (let rule = 1; rule <= 12; rule++) expect(readme).toContain(`| R${rule} `);
    const source = readFileSync(new URL("../src/errors.ts", import.meta.url), "utf8");
    for (const [code] of source.matchAll(/PLIMSOLL_[A-Z]+/g))
      expect(readme).toContain(`\`${code}\``);
  });
});
