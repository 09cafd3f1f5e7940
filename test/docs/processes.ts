// The programs that recipes start, for as long as a test takes.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach } from "vitest";
import { type Engine, startEngine } from "../router/engines";
import { until } from "../telemetry/servers";

/** The command, as it was built. */
export const CLI = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));

/** A file of docs/recipes. */
export function recipe(name: string): string {
  return readFileSync(recipePath(name), "utf8");
}

/** Where a file of docs/recipes stands. */
export function recipePath(name: string): string {
  return fileURLToPath(new URL(`../../docs/recipes/${name}`, import.meta.url));
}

/** The blocks of one language in a page. */
export function blocks(page: string, language: string): string[] {
  const pattern = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g");
  return [...page.matchAll(pattern)].map(([, code = ""]) => code);
}

/** A port that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0));
    });
  });
}

/** A program that runs, and what it has said so far. */
export interface Running {
  readonly child: ChildProcess;
  readonly seen: { out: string; err: string; code: number | null | undefined };
}

/** What one test starts; all of it has ended before the next one. */
export interface Processes {
  /** An empty folder. */
  folder(): string;
  /** A file in a folder of its own. */
  write(name: string, text: string): string;
  engine(name?: string): Promise<Engine>;
  run(program: string, args: readonly string[], env?: Record<string, string>): Running;
  /** `plimsoll` with these words, once it listens. */
  serve(
    args: readonly string[],
    env?: Record<string, string>,
  ): Promise<Running & { url: string; admin: string }>;
}

/** Sets a test file up. */
export function useProcesses(): Processes {
  const running: ChildProcess[] = [];
  const engines: Engine[] = [];
  const folders: string[] = [];
  afterEach(async () => {
    for (const child of running.splice(0)) await endOf(child);
    for (const one of engines.splice(0)) await one.close();
    for (const path of folders.splice(0)) rmSync(path, { recursive: true, force: true });
  });
  const folder = () => {
    const path = mkdtempSync(join(tmpdir(), "plimsoll-recipe-"));
    folders.push(path);
    return path;
  };
  const run: Processes["run"] = (program, args, env = {}) => {
    const child = spawn(program, args, { env: { ...process.env, ...env } });
    running.push(child);
    const seen: Running["seen"] = { out: "", err: "", code: undefined };
    child.stdout.on("data", (chunk) => {
      seen.out += chunk;
    });
    child.stderr.on("data", (chunk) => {
      seen.err += chunk;
    });
    child.on("error", (error) => {
      seen.err += error.message;
      seen.code = null;
    });
    child.on("close", (code) => {
      seen.code = code;
    });
    return { child, seen };
  };
  return {
    folder,
    run,
    write: (name, text) => {
      const path = join(folder(), name);
      writeFileSync(path, text);
      return path;
    },
    engine: async (name) => {
      const one = await startEngine(name);
      engines.push(one);
      return one;
    },
    serve: async (args, env) => {
      const one = run(process.execPath, [CLI, "serve", ...args], env);
      const { seen } = one;
      await until(() => /endpoints /.test(seen.out) || seen.code !== undefined, "it listens");
      const addressOf = (what: string) =>
        new RegExp(`${what} +(http\\S+)`).exec(seen.out)?.[1] ?? `none: ${seen.err}`;
      return { ...one, url: addressOf("requests"), admin: addressOf("admin") };
    },
  };
}

/** Ends a program that a test has started. */
async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const closed = new Promise((resolve) => child.once("close", resolve));
  // nginx and Prometheus clean up on SIGTERM; a router that lets requests end would wait for them.
  child.kill(child.spawnfile === process.execPath ? "SIGKILL" : "SIGTERM");
  await closed;
}

/** Asks again and again until the answer is yes; gives up after a minute. */
export async function becomes(ask: () => Promise<boolean>, what: string): Promise<void> {
  const end = performance.now() + 60_000;
  while (!(await ask())) {
    if (performance.now() > end) throw new Error(`waited for 60 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
