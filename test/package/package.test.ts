// The package as users get it: its files, its size, its types, and an installed tarball.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
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
    const named = files.map((path) =>
      path.replace(/-[A-Za-z0-9_-]{8}(\.(?:js|d\.ts|d\.cts)(?:\.map)?)$/, "-#$1"),
    );
    expect([...new Set(named)].filter((path) => !path.endsWith(".map")).sort()).toEqual([
      "CHANGELOG.md",
      "LICENSE",
      "README.md",
      "assembly/README.md",
      "dist/all.cjs",
      "dist/chunk-#.js",
      "dist/cli.js",
      "dist/config-#.d.cts",
      "dist/config-#.d.ts",
      "dist/controller-#.d.cts",
      "dist/controller-#.d.ts",
      "dist/errors-#.d.cts",
      "dist/errors-#.d.ts",
      "dist/flow.cjs",
      "dist/flow.d.cts",
      "dist/flow.d.ts",
      "dist/flow.js",
      "dist/index.cjs",
      "dist/index.d.cts",
      "dist/index.d.ts",
      "dist/index.js",
      "dist/kernel.wasm",
      "dist/max-of-#.d.cts",
      "dist/max-of-#.d.ts",
      "dist/pool-#.d.cts",
      "dist/pool-#.d.ts",
      "dist/pool-options-#.d.cts",
      "dist/pool-options-#.d.ts",
      "dist/router.cjs",
      "dist/router.d.cts",
      "dist/router.d.ts",
      "dist/router.js",
      "dist/targets-#.d.cts",
      "dist/targets-#.d.ts",
      "dist/telemetry.cjs",
      "dist/telemetry.d.cts",
      "dist/telemetry.d.ts",
      "dist/telemetry.js",
      "dist/transport-undici-#.js",
      "dist/workerd/chunk-#.js",
      "dist/workerd/flow.js",
      "dist/workerd/index.js",
      "dist/workerd/kernel.wasm",
      "dist/workerd/telemetry.js",
      "dist/workerd/transport-undici-#.js",
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
    for (const name of ["plimsoll", "plimsoll/telemetry"]) {
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
      ["src/flow", /from "\.\.\/(cli|telemetry|sim|router)/],
      ["src/router", /from "\.\.\/(cli|sim)/],
      ["src/telemetry", /from "\.\.\/(cli|flow|sim|router)/],
      ["src", /from "\.\/(cli|telemetry|flow|sim|router)/],
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
import { readExposition } from "plimsoll/telemetry";
`;
  const uses = `const pool = new EndpointPool();
pool.add("a");
pool.report("a", { waitingQueueSize: 2, kvCacheUsagePercent: 0.1 });
const { sample } = readExposition("vllm:num_requests_waiting 3");
console.log(pool.saturation(), sample.waitingQueueSize);
`;

  beforeAll(() => {
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), '{"name":"user","private":true}');
    run("npm", ["install", "--no-audit", "--no-fund", tarball], project);
    writeFileSync(join(project, "a.mjs"), imports + uses);
    writeFileSync(join(project, "c.mts"), imports + uses);
    writeFileSync(
      join(project, "b.cjs"),
      `const { EndpointPool } = require("plimsoll");
const { readExposition } = require("plimsoll/telemetry");
require.resolve("plimsoll/kernel.wasm");
${uses}`,
    );
  });

  test.each(["a.mjs", "b.cjs"])("works from %s", (name) => {
    expect(run(process.execPath, [name], project).trim()).toBe("0.4 3");
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
    const how = ["--module", module, "--moduleResolution", moduleResolution];
    run(process.execPath, [tsc, ...flags, ...how, "c.mts"], project);
  });

  test("its command runs", () => {
    expect(run(join(project, "node_modules/.bin/plimsoll"), ["--version"], project)).toMatch(/^\d/);
  });
});
