// Proves the built package on every runtime: each must print the digest that this Node prints.
//   npm run test:runtimes

import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as core from "../../dist/index.js";
import * as sim from "../../dist/sim.js";
import * as telemetry from "../../dist/telemetry.js";
import { decide } from "./decide.js";
import { simulateDigest } from "./simulate.js";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "../../dist/workerd");
const expected = `${decide(core, telemetry)} ${await simulateDigest(sim)}`;
const main = join(here, "main.js");
const fetchMain = join(here, "fetch.js");
const DENO = ["run", "--no-config", "--no-remote"];
const modules = join(here, "node_modules");

/** Files of ours that workerd needs beside the package. */
const OWN = ["worker.js", "decide.js", "simulate.js"];

const RUNTIMES = [
  ...["node20", "node22", "node24", "node26"].map((name) => ({
    name,
    binary: join(modules, name, "bin/node"),
    run: (binary) => print(binary, [main]),
    fetch: (binary) => print(binary, [fetchMain]),
  })),
  {
    name: "bun",
    binary: join(modules, "@oven/bun-linux-x64/bin/bun"),
    run: (binary) => print(binary, [main]),
    fetch: (binary) => print(binary, [fetchMain]),
  },
  {
    name: "deno",
    binary: join(modules, "@deno/linux-x64-glibc/deno"),
    run: (binary) => print(binary, [...DENO, main]),
    fetch: (binary) => print(binary, [...DENO, "--allow-net=127.0.0.1", fetchMain]),
  },
  {
    name: "workerd",
    binary: join(modules, "@cloudflare/workerd-linux-64/bin/workerd"),
    run: askWorkerd,
  },
];

function print(binary, args) {
  const options = { encoding: "utf8", timeout: 60_000, stdio: ["ignore", "pipe", "pipe"] };
  return execFileSync(binary, args, options).trim();
}

/** Serves the worker on a free port of loopback, asks it once, and stops it. */
async function askWorkerd(binary) {
  const folder = mkdtempSync(join(tmpdir(), "plimsoll-workerd-"));
  const port = await freePort();
  // A config embeds files beside it.
  const files = readdirSync(dist).filter((name) => /\.(js|wasm)$/.test(name));
  const modules = files.filter((name) => !name.includes("undici"));
  for (const name of modules) copyFileSync(join(dist, name), join(folder, name));
  for (const name of OWN) copyFileSync(join(here, name), join(folder, name));
  const list = [...OWN, ...modules].map((name) => {
    const kind = name.endsWith(".wasm") ? "wasm" : "esModule";
    return `(name = "${name}", ${kind} = embed "${name}")`;
  });
  writeFileSync(
    join(folder, "config.capnp"),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = (compatibilityDate = "2025-01-01", modules = [ ${list.join(", ")} ])) ],
  sockets = [ (name = "http", address = "127.0.0.1:${port}", http = (), service = "main") ],
);`,
  );
  const child = spawn(binary, ["serve", join(folder, "config.capnp")], { stdio: "pipe" });
  let log = "";
  child.stderr.on("data", (chunk) => {
    log += chunk;
  });
  try {
    for (let tries = 0; tries < 100; tries++) {
      if (child.exitCode !== null) throw new Error(log);
      try {
        const answer = await fetch(`http://127.0.0.1:${port}/`);
        const text = await answer.text();
        if (!answer.ok) throw new Error(`HTTP ${answer.status}: ${text} ${log}`);
        return text;
      } catch (error) {
        if (error.cause?.code !== "ECONNREFUSED") throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
    throw new Error(`workerd did not listen: ${log}`);
  } finally {
    child.kill();
    rmSync(folder, { recursive: true });
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

let failed = 0;
const fetched = print(process.execPath, [fetchMain]);
for (const { name, binary, run, fetch: runFetch } of RUNTIMES) {
  let problem;
  if (!existsSync(binary)) {
    problem = "not installed: run `npm ci --ignore-scripts --prefix test/runtimes` (Linux, x86-64)";
  } else {
    try {
      const digest = await run(binary);
      if (digest !== expected) problem = `decided ${digest}, this Node ${expected}`;
      const saw = runFetch?.(binary) ?? fetched;
      if (saw !== fetched) problem = `createFetch saw\n${saw}\nthis Node\n${fetched}`;
    } catch (error) {
      problem = error.message;
    }
  }
  if (problem !== undefined) failed++;
  console.log(`${problem === undefined ? "ok  " : "FAIL"} ${name}${problem ? `: ${problem}` : ""}`);
}
console.log(`${RUNTIMES.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
