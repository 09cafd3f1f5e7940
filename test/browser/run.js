// Proves the built package in headless Chromium: the same digest as here, under a strict
// Content-Security-Policy; and without 'wasm-unsafe-eval', the error that says what is missing.
//   npm run test:browser        (CHROMIUM=/path/to/chromium where it is not Debian's)

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import * as core from "../../dist/index.js";
import * as sim from "../../dist/sim.js";
import * as telemetry from "../../dist/telemetry.js";
import { decide } from "../runtimes/decide.js";
import { simulateDigest } from "../runtimes/simulate.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const POLICY = "default-src 'none'; script-src 'self'";
const PAGE = `<!doctype html><title>plimsoll</title><script type="module" src="/test/browser/page.js"></script>`;

const server = createServer(async (request, response) => {
  const path = normalize(new URL(request.url, "http://x").pathname);
  if (path === "/allowed" || path === "/refused") {
    const policy = path === "/allowed" ? `${POLICY} 'wasm-unsafe-eval'` : POLICY;
    response.writeHead(200, { "content-type": "text/html", "content-security-policy": policy });
    response.end(PAGE);
    return;
  }
  const isServed = /^\/(dist|test\/(browser|runtimes))\/[\w./-]+\.js$/.test(path);
  const file = isServed ? await readFile(join(root, path)).catch(() => undefined) : undefined;
  response.writeHead(file === undefined ? 404 : 200, { "content-type": "text/javascript" });
  response.end(file);
});

const expected = `${decide(core, telemetry)} ${await simulateDigest(sim)}`;
const CHECKS = [
  {
    path: "/allowed",
    title: "decides and simulates as Node does, bit for bit",
    isRight: (answer) => answer === expected,
  },
  {
    path: "/refused",
    title: "says what a Content-Security-Policy must allow",
    isRight: (answer) => /PLIMSOLL_KERNEL.*wasm-unsafe-eval/.test(answer),
  },
];

async function main() {
  if (!existsSync(executablePath)) {
    console.log(`FAIL no Chromium at ${executablePath}: apt-get install chromium, or set CHROMIUM`);
    console.log(`0 passed, ${CHECKS.length} failed`);
    return CHECKS.length;
  }
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
  args.push("--disable-quic", "--no-first-run", "--disable-component-update", "--disable-sync");
  const browser = await chromium.launch({ executablePath, args });
  let failed = 0;
  for (const { path, title, isRight } of CHECKS) {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}${path}`);
    await page.waitForFunction(() => document.title.startsWith("answer "), null, {
      timeout: 20_000,
    });
    const answer = (await page.title()).slice(7);
    const isFine = isRight(answer);
    if (!isFine) failed++;
    console.log(`${isFine ? "ok  " : "FAIL"} ${title}${isFine ? "" : `: ${answer}`}`);
    await page.close();
  }
  await browser.close();
  server.close();
  console.log(`${CHECKS.length - failed} passed, ${failed} failed`);
  return failed;
}

process.exitCode = (await main()) === 0 ? 0 : 1;
