// Runs the built command as a user would.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const CLI = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));

/** How a run ended. */
export interface Run {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Options of a run: standard input, and a signal once a text has been printed. */
export interface RunOptions {
  readonly input?: string;
  readonly signal?: { readonly after: RegExp; readonly name: NodeJS.Signals };
}

/** Runs `plimsoll` with these words. */
export function plimsoll(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [CLI, ...args], { timeout: 30_000 });
    let out = "";
    let err = "";
    let isSignalled = false;
    child.stdout.on("data", (chunk) => {
      out += chunk;
      const { signal } = options;
      if (signal === undefined || isSignalled || !signal.after.test(out)) return;
      isSignalled = true;
      child.kill(signal.name);
    });
    child.stderr.on("data", (chunk) => {
      err += chunk;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, out, err }));
    child.stdin.end(options.input ?? "");
  });
}
