// docs/fetch.md and docs/fastify.md are true: every snippet runs and prints what its comments say, and
// the tables name every option.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { createFetch } from "../src/fetch/index";
import { ConfigError, EndpointPool } from "../src/index";
import { answerChat, startEngine } from "./fetch/engines";

const run = promisify(execFile);
const read = (name: string) => readFileSync(new URL(`../docs/${name}`, import.meta.url), "utf8");
const PAGES = ["fetch.md", "fastify.md"].map((name) => ({ name, text: read(name) }));
const SNIPPETS = PAGES.flatMap(({ name, text }) =>
  [...text.matchAll(/```js\n([\s\S]*?)```/g)].map(([, code = ""], i) => ({
    name: `${name}, ${i + 1}`,
    code,
  })),
);

describe("snippets", () => {
  test.each(SNIPPETS)("$name", async ({ code }) => {
    const engine = await startEngine((asked, response) => {
      if (asked.url.startsWith("/metrics")) {
        response.end("vllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0.1\n");
        return;
      }
      answerChat(asked, response);
    });
    const expected = [...code.matchAll(/\/\/ prints (.*)$/gm)].map(([, text]) => text);
    expect(expected).not.toEqual([]);
    const env = { ...process.env, ENGINES: engine.url };
    const args = ["--input-type=module", "-e", code];
    const { stdout } = await run(process.execPath, args, { env, timeout: 20_000 });
    expect(stdout.trim().split("\n")).toEqual(expected);
  });
});

describe("tables", () => {
  test.each([
    ["fetch.md", "../src/fetch/options.ts", "FetchOptions"],
    ["fastify.md", "../src/fastify/options.ts", "PlimsollPluginOptions"],
  ])("%s names every option", (name, path, type) => {
    const source = readFileSync(new URL(path, import.meta.url), "utf8");
    const [, fields = ""] =
      new RegExp(`interface ${type} \\{([\\s\\S]*?)\\n\\}`).exec(source) ?? [];
    const options = [...fields.matchAll(/^ {2}readonly (\w+)/gm)].map(([, option]) => option);
    expect(options.length).toBeGreaterThan(5);
    const rows = read(name)
      .split("\n")
      .filter((line) => line.startsWith("| `"));
    const named = rows.flatMap((row) => (row.split("|")[1] ?? "").match(/\w+/g) ?? []);
    for (const option of options) expect(named).toContain(option);
  });

  test("fetch.md says where requests go", async () => {
    const [, rows = ""] = /\| is sent to \|\n\|[-|]+\n([\s\S]*?)\n\n/.exec(read("fetch.md")) ?? [];
    const cases = rows
      .split("\n")
      .map((row) => [...row.matchAll(/`([^`]*)`/g)].map(([, text]) => text));
    expect(cases.length).toBe(2);
    for (const [endpoint = "", url = "", target] of cases) {
      const pool = new EndpointPool();
      pool.add(endpoint);
      const answer = async (input: unknown) => new Response(String(input));
      expect(await (await createFetch(pool, { fetch: answer })(url)).text()).toBe(target);
    }
    expect(() => createFetch(new EndpointPool(), { retries: 0.5 })).toThrow(ConfigError);
  });
});
