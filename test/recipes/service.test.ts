// The unit and the Dockerfile of docs/recipes, as far as they can be run without systemd and without Docker.

import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { freePort, recipe, useProcesses } from "../docs/processes";
import { chat } from "../router/engines";
import { until } from "../telemetry/servers";

const processes = useProcesses();
const root = new URL("../..", import.meta.url).pathname;

describe("the unit", () => {
  const unit = recipe("plimsoll.service");
  const settingOf = (key: string) => new RegExp(`^${key}=(.*)$`, "m").exec(unit)?.[1] ?? "";
  const CLI = join(root, "dist/cli.js");

  test("systemd-analyze verify has nothing to say", () => {
    const program = processes.write("plimsoll", "#!/bin/sh\n");
    chmodSync(program, 0o755);
    const path = processes.write("plimsoll.service", unit.replaceAll("/usr/bin/plimsoll", program));
    const { status, stdout, stderr } = spawnSync("systemd-analyze", ["verify", path], {
      encoding: "utf8",
    });
    expect([status, stdout + stderr]).toEqual([0, ""]);
  });

  test("what it starts, reloads and stops does so", async () => {
    const [a, b] = [await processes.engine("a"), await processes.engine("b")];
    const port = await freePort();
    const config = (url: string) =>
      JSON.stringify({
        endpoints: [{ url, requestHeaders: { authorization: `Bearer \${ENGINE_KEY}` } }],
        listen: { host: "127.0.0.1", port },
        admin: false,
      });
    const path = processes.write("plimsoll.yaml", config(a.url));
    const words = (line: string) =>
      line
        .replace("/etc/plimsoll/plimsoll.yaml", path)
        .replace("/usr/bin/plimsoll ", "")
        .split(" ");
    execFileSync(process.execPath, [CLI, ...words(settingOf("ExecStartPre"))], {
      encoding: "utf8",
    });
    const env = { ENGINE_KEY: "geheim" };
    const { child, seen } = processes.run(
      process.execPath,
      [CLI, ...words(settingOf("ExecStart"))],
      env,
    );
    await until(() => seen.out.includes("endpoints"), "it listens");
    const url = `http://127.0.0.1:${port}`;
    expect((await chat(url)).headers["x-plimsoll-endpoint"]).toBe(a.url);
    expect(a.seen[0]?.headers.authorization).toBe("Bearer geheim");
    cpSync(processes.write("next.yaml", config(b.url)), path);
    execFileSync("sh", ["-c", settingOf("ExecReload").replace("$MAINPID", String(child.pid))]);
    await until(() => seen.out.includes("reloaded"), "it has read the config again");
    expect((await chat(url)).headers["x-plimsoll-endpoint"]).toBe(b.url);
    child.kill("SIGTERM");
    await until(() => seen.code !== undefined, "it has ended");
    expect(seen.code).toBe(0);
  });

  test("stopping takes longer than draining", () => {
    expect(Number.parseInt(settingOf("TimeoutStopSec"), 10)).toBeGreaterThan(300);
    expect(unit).not.toMatch(/^MemoryDenyWriteExecute/m);
  });
});

describe("the Dockerfile", () => {
  const lines = recipe("Dockerfile").split("\n");
  const listOf = (text: string): string[] => JSON.parse(text.slice(text.indexOf("[")));
  const lineOf = (start: string) => lines.find((line) => line.startsWith(start)) ?? "";

  test("its Node is one that the package runs on", () => {
    const versions = lines.flatMap((line) => /^FROM node:(\d+)/.exec(line)?.[1] ?? []);
    expect(versions).toEqual(["20", "20"]);
    expect(Number(process.versions.node.split(".")[0])).toBeGreaterThanOrEqual(20);
  });

  test("its steps, taken in an empty folder, give a router that is healthy", async () => {
    const app = processes.folder();
    execFileSync("npm", ["pack", "--pack-destination", app], { cwd: root, stdio: "pipe" });
    execFileSync("sh", ["-c", lineOf("RUN ").replace("RUN ", "")], { cwd: app, stdio: "pipe" });
    expect(readdirSync(app).filter((name) => name.endsWith(".tgz"))).toEqual([]);
    expect(existsSync(join(app, "node_modules/typescript"))).toBe(false);

    const engine = await processes.engine("a");
    const admin = await freePort();
    const config = processes.write(
      "plimsoll.yaml",
      JSON.stringify({
        endpoints: [engine.url],
        listen: { host: "127.0.0.1", port: 0 },
        admin: { host: "127.0.0.1", port: admin },
      }),
    );
    const [node, script = ""] = listOf(lineOf("ENTRYPOINT"));
    const words = listOf(lineOf("CMD")).map((one) => (one.startsWith("/etc/") ? config : one));
    expect([node, words.slice(0, 2)]).toEqual(["node", ["serve", "--config"]]);
    const health = listOf(lineOf("HEALTHCHECK"))[2]?.replace("8081", String(admin)) ?? "";
    const isHealthy = () => spawnSync("node", ["-e", health]).status === 0;
    expect(isHealthy()).toBe(false);
    const { seen } = processes.run(process.execPath, [join(app, script), ...words]);
    await until(() => seen.out.includes("endpoints") || seen.code !== undefined, "it listens");
    expect(seen.err).toBe("");
    expect(isHealthy()).toBe(true);
    const url = /requests +(\S+)/.exec(seen.out)?.[1] ?? "";
    expect((await chat(url)).status).toBe(200);
  });
});
