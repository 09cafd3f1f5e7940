// plimsoll serve as a process: where it listens, what its config says, and what it does when it is signalled.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { chat, type Engine, eventOf, send, startEngine } from "../router/engines";
import { until } from "../telemetry/servers";
import { plimsoll } from "./run";

const CLI = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "plimsoll-serve-"));
const engines: Engine[] = [];
const children: ChildProcess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const engine of engines.splice(0)) await engine.close();
});

async function engine(name?: string): Promise<Engine> {
  const one = await startEngine(name);
  engines.push(one);
  return one;
}

function write(name: string, config: object): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify(config));
  return path;
}

/** A running `plimsoll serve`, once it listens. */
async function serve(args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [CLI, "serve", ...args], {
    env: { ...process.env, ...env },
  });
  children.push(child);
  const seen = { out: "", err: "", code: undefined as number | null | undefined };
  child.stdout.on("data", (chunk) => {
    seen.out += chunk;
  });
  child.stderr.on("data", (chunk) => {
    seen.err += chunk;
  });
  child.on("close", (code) => {
    seen.code = code;
  });
  await until(() => /endpoints /.test(seen.out) || seen.code !== undefined, "it listens");
  const addressOf = (what: string) => new RegExp(`${what} +(http\\S+)`).exec(seen.out)?.[1] ?? "";
  return { child, seen, url: addressOf("requests"), admin: addressOf("admin") };
}

const LOCAL = ["--host", "127.0.0.1", "--port", "0", "--admin-port", "0"];

describe("plimsoll serve", () => {
  test("serves the endpoints that it is given, and tells where", async () => {
    const [a, b] = [await engine("a"), await engine("b")];
    const { url, admin, seen } = await serve([a.url, b.url, ...LOCAL]);
    expect(seen.out).toContain(`endpoints ${a.url} ${b.url}`);
    expect((await chat(url)).status).toBe(200);
    const pool = await send(admin, { path: "/pool" });
    expect(JSON.parse(pool.body.toString()).pool.endpoints).toHaveLength(2);
  });

  test("takes secrets from the environment, and says which one is missing", async () => {
    const one = await engine();
    const requestHeaders = { authorization: "Bearer $" + "{ENGINE_KEY}" };
    const config = write("secret.json", { endpoints: [{ url: one.url, requestHeaders }] });
    const args = ["--config", config, ...LOCAL];
    const { url } = await serve(args, { ENGINE_KEY: "geheim" });
    await chat(url, {}, { authorization: "Bearer client" });
    expect(one.seen[0]?.headers.authorization).toBe("Bearer geheim");
    const { seen } = await serve(args);
    await until(() => seen.code !== undefined, "it has ended");
    expect(seen.code).toBe(2);
    expect(seen.err).toMatch(/secret\.json:1:\d+: .*ENGINE_KEY, which is not set/);
  });

  test("SIGHUP reads the config again; a fault changes nothing, and is told", async () => {
    const [a, b] = [await engine("a"), await engine("b")];
    const config = write("reload.json", { endpoints: [a.url] });
    const { child, url, seen } = await serve(["--config", config, ...LOCAL]);
    write("reload.json", { endpoints: [b.url], headers: { endpoint: "x-by" } });
    child.kill("SIGHUP");
    await until(() => seen.out.includes("reloaded"), "it was read again");
    expect((await chat(url)).headers["x-by"]).toBe(b.url);
    write("reload.json", { endpoints: [a.url], retry: { attempts: 0 } });
    child.kill("SIGHUP");
    await until(() => seen.err.includes("not reloaded"), "the fault is told");
    expect(seen.err).toMatch(/reload\.json:1:\d+: retry\.attempts: must be/);
    expect((await chat(url)).headers["x-by"]).toBe(b.url);
  });

  test("a config file that is empty is refused, at the start and at SIGHUP", async () => {
    const one = await engine();
    const config = write("empty.json", { endpoints: [one.url] });
    const { child, url, seen } = await serve(["--config", config, ...LOCAL]);
    writeFileSync(config, "");
    child.kill("SIGHUP");
    await until(() => seen.err.includes("not reloaded"), "it is told");
    expect(seen.err).toContain("empty.json:1:1: is empty; {} takes every default");
    expect((await chat(url)).status).toBe(200);
    const again = await plimsoll(["serve", "--config", config, one.url, ...LOCAL]);
    expect([again.code, again.err]).toEqual([2, expect.stringContaining("1:1: is empty")]);
  });

  test("SIGTERM lets a stream end, takes nothing new, and ends with 0", async () => {
    const one = await engine();
    let finish: (() => void) | undefined;
    one.behave = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(eventOf("begun"));
      finish = () => response.end(eventOf("ended"));
    };
    const { child, url, admin, seen } = await serve([one.url, ...LOCAL]);
    const answer = chat(url, { stream: true });
    await until(() => finish !== undefined, "it has begun");
    child.kill("SIGTERM");
    await until(() => seen.out.includes("stopping: 1 requests may end"), "it stops");
    expect((await send(admin, { path: "/readyz" })).status).toBe(503);
    await expect(chat(url)).rejects.toThrow(/ECONNREFUSED/);
    finish?.();
    expect((await answer).body.toString()).toBe(eventOf("begun") + eventOf("ended"));
    await until(() => seen.code !== undefined, "it has ended");
    expect([seen.code, seen.err]).toEqual([0, ""]);
  });

  test("a second SIGTERM cuts what is left", async () => {
    const one = await engine();
    one.behave = (_, response) => response.write("begun");
    const { child, url, seen } = await serve([one.url, ...LOCAL]);
    const answer = chat(url);
    await until(() => one.seen.length === 1, "it has begun");
    child.kill("SIGTERM");
    await until(() => seen.out.includes("stopping"), "it stops");
    child.kill("SIGTERM");
    expect((await answer).isWhole).toBe(false);
    await until(() => seen.code !== undefined, "it has ended");
    expect(seen.code).toBe(0);
  });

  test.each<[string[], RegExp]>([
    [[], /needs an address/],
    [["http://a", "--port", "x"], /must be a port/],
    [["http://a", "--admin-port", "70000"], /must be a port/],
    [["http://a", "--set", "retry={attempts: 0}"], /retry\.attempts: must be/],
    [["ftp://a"], /http or https/],
    [["http://a", "http://a"], /id of its own/],
  ])("%j is wrong usage, and says what would be right", async (args, text) => {
    const { code, err } = await plimsoll(["serve", ...args]);
    expect(err).toMatch(text);
    expect(code).toBe(2);
  });

  test("a port that is taken is told, and ends it", async () => {
    const one = await engine();
    const args = [one.url, "--host", "127.0.0.1", "--port", String(one.port)];
    const { code, err } = await plimsoll(["serve", ...args, "--admin-port", "0"]);
    expect([code, err]).toEqual([2, expect.stringContaining("EADDRINUSE")]);
  });
});

describe("plimsoll check", () => {
  test("shows what serve would do, without secrets, and takes that back", async () => {
    const config = write("check.json", {
      endpoints: [{ url: "http://a:1", models: "m", requestHeaders: { authorization: "geheim" } }],
      dns: [{ url: "http://name:1", refresh: "7s" }],
      flow: { ttl: "10s" },
      timeouts: { total: "5m" },
    });
    const { code, out } = await plimsoll(["check", config]);
    expect([code, out.includes("geheim")]).toEqual([0, false]);
    for (const text of ["attempts: 3", "total: 5m0s", "port: 8080", "refresh: 7s", "models:"]) {
      expect(out).toContain(text);
    }
    const path = join(folder, "again.yaml");
    writeFileSync(path, out);
    expect((await plimsoll(["check", path])).out.split("\n").slice(1)).toEqual(
      out.split("\n").slice(1),
    );
  });

  test("places the faults of every section", async () => {
    const path = join(folder, "faulty.yaml");
    writeFileSync(
      path,
      "listen:\n  prt: 1\nflow:\n  bands:\n    - nam: x\nretry: { attempts: 0 }\n",
    );
    const { code, out } = await plimsoll(["check", path]);
    expect(code).toBe(1);
    expect(out.split("\n").map((line) => line.replace(path, "f").slice(0, 30))).toEqual([
      "f:2:3: listen.prt: unknown opt",
      "f:5:7: flow.bands.0.nam: unkno",
      "f:6:10: retry.attempts: must b",
      "",
    ]);
  });

  test("watch takes a config of serve", async () => {
    const one = await engine();
    const config = write("both.json", { endpoints: [one.url], retry: { attempts: 2 } });
    expect((await plimsoll(["watch", "--config", config, "--once"])).code).toBe(0);
  });
});
