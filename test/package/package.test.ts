// The package as users get it: its files, its size, its types, and an installed tarball.

import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { beforeAll, describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "plimsoll-package-"));
let files: string[] = [];
let tarball = "";

function run(command: string, args: string[], cwd = root): string {
  try {
    return execFileSync(command, args, {
      cwd,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }; // what execFile throws
    throw new Error(`${command} ${args.join(" ")}\n${stdout}\n${stderr}`);
  }
}

const npx = (...args: string[]) => run("npx", ["--no-install", ...args]);

beforeAll(() => {
  const [packed] = JSON.parse(run("npm", ["pack", "--json", "--pack-destination", folder]));
  files = packed.files.map(({ path }: { path: string }) => path);
  tarball = join(folder, packed.filename);
});

describe("npm pack", () => {
  test("has these files and no others", () => {
    // What several entries share has names of its own that change with its content.
    const shared = /[\w-]+-[A-Za-z0-9_-]{8}(\.(?:js|d\.ts|d\.cts))$/;
    const named = files
      .filter((path) => !path.endsWith(".map"))
      .map((path) => path.replace(shared, "shared-#$1"));
    expect([...new Set(named)].sort()).toEqual([
      "CHANGELOG.md",
      "LICENSE",
      "README.md",
      "assembly/README.md",
      "dist/all.cjs",
      "dist/cli.js",
      "dist/fastify.cjs",
      "dist/fastify.d.cts",
      "dist/fastify.d.ts",
      "dist/fastify.js",
      "dist/fetch.cjs",
      "dist/fetch.d.cts",
      "dist/fetch.d.ts",
      "dist/fetch.js",
      "dist/flow.cjs",
      "dist/flow.d.cts",
      "dist/flow.d.ts",
      "dist/flow.js",
      "dist/index.cjs",
      "dist/index.d.cts",
      "dist/index.d.ts",
      "dist/index.js",
      "dist/kernel.wasm",
      "dist/router.cjs",
      "dist/router.d.cts",
      "dist/router.d.ts",
      "dist/router.js",
      "dist/scenarios/cold-start.yaml",
      "dist/scenarios/kv-pressure.yaml",
      "dist/scenarios/mixed-gpus.yaml",
      "dist/scenarios/prefill-bound.yaml",
      "dist/scenarios/scrape-outage.yaml",
      "dist/scenarios/thundering-herd.yaml",
      "dist/scenarios/two-tenants.yaml",
      "dist/shared-#.d.cts",
      "dist/shared-#.d.ts",
      "dist/shared-#.js",
      "dist/sim.cjs",
      "dist/sim.d.cts",
      "dist/sim.d.ts",
      "dist/sim.js",
      "dist/telemetry.cjs",
      "dist/telemetry.d.cts",
      "dist/telemetry.d.ts",
      "dist/telemetry.js",
      "dist/web/sim.html",
      "dist/workerd/fetch.js",
      "dist/workerd/flow.js",
      "dist/workerd/index.js",
      "dist/workerd/kernel.wasm",
      "dist/workerd/shared-#.js",
      "dist/workerd/sim.js",
      "dist/workerd/telemetry.js",
      "docs/fastify.md",
      "docs/fetch.md",
      "docs/recipes/Dockerfile",
      "docs/recipes/README.md",
      "docs/recipes/docker.md",
      "docs/recipes/from-llm-d.md",
      "docs/recipes/grafana.json",
      "docs/recipes/kubernetes.md",
      "docs/recipes/kubernetes.yaml",
      "docs/recipes/nginx.conf",
      "docs/recipes/nginx.md",
      "docs/recipes/plimsoll.rules.test.yml",
      "docs/recipes/plimsoll.rules.yml",
      "docs/recipes/plimsoll.service",
      "docs/recipes/prometheus.md",
      "docs/recipes/prometheus.yml",
      "docs/recipes/systemd.md",
      "docs/recipes/tuning.md",
      "docs/recipes/two-vllm.md",
      "docs/router.md",
      "package.json",
      "schema.json",
    ]);
  });

  test("its types show nothing internal", () => {
    for (const name of readdirSync(join(root, "dist")).filter((path) => path.endsWith(".d.ts"))) {
      expect(readFileSync(join(root, "dist", name), "utf8")).not.toContain("@internal");
    }
  });

  test("publint and are-the-types-wrong find nothing", () => {
    expect(npx("publint", "--strict", "--level", "warning", tarball)).toContain("All good!");
    // It exits with 1 when it finds something.
    npx(
      "attw",
      tarball,
      "--profile",
      "node16",
      "--exclude-entrypoints",
      "kernel.wasm",
      "schema.json",
    );
  });
});

describe("size", () => {
  test.each([
    ["the detector with its kernel", "export { UtilizationDetector } from 'plimsoll'", 12],
    ["the whole core: detectors, pool, leases", "export * from 'plimsoll'", 18],
    ["the flow controller alone", "export * from 'plimsoll/flow'", 7],
    ["the client fetch alone", "export * from 'plimsoll/fetch'", 6],
  ])("%s is under its budget of KB gzipped", async (_, contents, budgetKb) => {
    const bundle = await build({
      stdin: { contents, resolveDir: root },
      bundle: true,
      minify: true,
      format: "esm",
      write: false,
      absWorkingDir: root,
    });
    const bytes = gzipSync(bundle.outputFiles[0]?.contents ?? "", { level: 9 }).length;
    expect(bytes).toBeLessThan(budgetKb * 1024);
  });

  test("the kernel is under 4,096 bytes", () => {
    expect(readFileSync(join(root, "dist/kernel.wasm")).length).toBeLessThan(4096);
  });

  test("the core bundles without a dependency, and in a browser telemetry does too", async () => {
    for (const name of ["plimsoll", "plimsoll/telemetry", "plimsoll/fetch"]) {
      const bundle = await build({
        stdin: { contents: `export * from "${name}"`, resolveDir: root },
        bundle: true,
        format: "esm",
        write: false,
        metafile: true,
        platform: "browser",
        absWorkingDir: root,
      });
      const inputs = Object.keys(bundle.metafile.inputs);
      expect(inputs.filter((path) => /^node_modules/.test(path))).toEqual([]);
    }
  });
});

describe("layers", () => {
  test("imports go one way, and the core takes nothing from Node", () => {
    const forbidden: [string, RegExp][] = [
      ["src/telemetry", /from "\.\.\/(cli|fastify|fetch|flow|sim|router)/],
      ["src/dashboard", /from "\.\.\/(cli|fastify|fetch|router|sim|telemetry|web)/],
      ["src/flow", /from "\.\.\/(cli|fastify|fetch|telemetry|sim|router)/],
      ["src/fetch", /from "(node:|\.\.\/(cli|fastify|telemetry|sim|router))/],
      ["src/fastify", /from "\.\.\/(cli|telemetry|sim|router)/],
      ["src/router", /from "\.\.\/(cli|fastify|fetch|sim)/],
      ["src/sim", /from "(node:|\.\.\/(cli|fastify|fetch|router))/],
      ["src", /from "\.\/(cli|fastify|fetch|telemetry|flow|sim|router)/],
    ];
    for (const [layer, pattern] of forbidden) {
      const names = readdirSync(join(root, layer)).filter((path) => path.endsWith(".ts"));
      for (const name of names.filter((path) => path !== "all.ts")) {
        const source = readFileSync(join(root, layer, name), "utf8");
        expect(source, `${layer}/${name}`).not.toMatch(pattern);
        if (layer === "src") expect(source, name).not.toMatch(/from "node:/);
      }
    }
  });
});

describe("an installed tarball", () => {
  const project = join(folder, "project");
  const imports = `import { EndpointPool } from "plimsoll";
import { createFetch } from "plimsoll/fetch";
import { readExposition } from "plimsoll/telemetry";
`;
  const uses = `const pool = new EndpointPool();
pool.add("a");
pool.report("a", { waitingQueueSize: 2, kvCacheUsagePercent: 0.1 });
const { sample } = readExposition("vllm:num_requests_waiting 3");
console.log(pool.saturation(), sample.waitingQueueSize, createFetch(pool).length);
`;

  beforeAll(() => {
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), '{"name":"user","private":true}');
    run("npm", ["install", "--no-audit", "--no-fund", tarball], project);
    writeFileSync(join(project, "a.mjs"), imports + uses);
    writeFileSync(join(project, "c.mts"), imports + uses);
    writeFileSync(
      join(project, "d.mts"),
      `import Fastify from "fastify";
import { EndpointPool } from "plimsoll";
import { plimsollPlugin } from "plimsoll/fastify";
const app = Fastify();
await app.register(plimsollPlugin, { pool: new EndpointPool(), health: "/health" });
app.get("/", { config: { plimsoll: { priority: "batch" } } }, async ({ plimsoll }) => {
  return plimsoll === null ? app.plimsoll.health().status : plimsoll.lease?.endpoint.id;
});
`,
    );
    writeFileSync(
      join(project, "b.cjs"),
      `const { EndpointPool } = require("plimsoll");
const { createFetch } = require("plimsoll/fetch");
const { readExposition } = require("plimsoll/telemetry");
require("plimsoll/fastify");
require("plimsoll/router");
require.resolve("plimsoll/kernel.wasm");
${uses}`,
    );
  });

  test.each(["a.mjs", "b.cjs"])("works from %s", (name) => {
    expect(run(process.execPath, [name], project).trim()).toBe("0.4 3 2");
  });

  test.each([
    ["node16", "node16"],
    ["esnext", "bundler"],
  ])("its types are right for module %s", (module, moduleResolution) => {
    const flags = [
      "--noEmit",
      "--strict",
      "--target",
      "es2022",
      "--lib",
      "es2023,dom,esnext.disposable",
    ];
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const types = join(project, "node_modules/@types");
    if (!existsSync(types)) symlinkSync(join(root, "node_modules/@types"), types);
    const how = ["--module", module, "--moduleResolution", moduleResolution];
    run(process.execPath, [tsc, ...flags, ...how, "c.mts"], project);
    run(process.execPath, [tsc, ...flags, ...how, "--types", "node", "d.mts"], project);
  });

  test("its command runs", () => {
    expect(run(join(project, "node_modules/.bin/plimsoll"), ["--version"], project)).toMatch(/^\d/);
  });
});
