// docs/router.md is true: its snippets run, its config is one, and its tables name what there is.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { resolveRouterConfig } from "../../src/router/config";
import { ROUTER_DEFAULTS } from "../../src/router/config-fields";
import { parseYaml } from "../../src/yaml-file";
import { chat, send, useRouters } from "./engines";

const harness = useRouters();
const run = promisify(execFile);
const docs = readFileSync(new URL("../../docs/router.md", import.meta.url), "utf8");
const blocks = (language: string) =>
  [...docs.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(
    ([, code = ""]) => code,
  );

test("its JavaScript runs and prints what it says", async () => {
  const engine = await harness.engine();
  for (const code of blocks("js")) {
    const env = { ...process.env, ENGINES: engine.url };
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", code], { env });
    const expected = [...code.matchAll(/\/\/ prints (.*)$/gm)].map(([, text]) => text);
    expect(stdout.trim().split("\n")).toEqual(expected);
  }
});

test("its YAML is a config", () => {
  for (const text of blocks("yaml")) {
    const settings = resolveRouterConfig(parseYaml(text).value, { ENGINE_KEY: "k" });
    expect(settings.endpoints[0]?.requestHeaders).toEqual({ authorization: "Bearer k" });
  }
});

describe("its tables", () => {
  test("name every option of the router", () => {
    for (const [section, values] of Object.entries(ROUTER_DEFAULTS)) {
      if (typeof values !== "object") continue;
      for (const key of Object.keys(values)) expect(docs).toContain(`\`${section}.${key}\``);
    }
  });

  test("name every metric, and no other", async () => {
    const engine = await harness.engine();
    const { router, url } = await harness.router({
      endpoints: [engine.url],
      admin: { host: "127.0.0.1", port: 0 },
    });
    await chat(url);
    const { body } = await send(router.addresses?.admin ?? "", { path: "/metrics" });
    const names = [...body.toString().matchAll(/^# TYPE plimsoll_(\S+)/gm)].map(([, name]) => name);
    const section = docs.slice(
      docs.indexOf("## The admin port"),
      docs.indexOf("## Several routers"),
    );
    const rows = section.split("\n").filter((line) => line.startsWith("| `"));
    const named = rows.flatMap((row) =>
      [...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, name = ""]) =>
        name.startsWith("_") ? `endpoint${name}` : name,
      ),
    );
    expect(named.sort()).toEqual(names.sort());
  });
});
