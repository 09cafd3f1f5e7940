import { copyFile, cp, readFile, writeFile } from "node:fs/promises";
import type { Plugin } from "esbuild";
import { defineConfig, type Options } from "tsup";
import { parse } from "yaml";

/** The subpaths of the package that run anywhere. */
const webEntry = {
  index: "src/index.ts",
  telemetry: "src/telemetry/index.ts",
  flow: "src/flow/index.ts",
  fetch: "src/fetch/index.ts",
  sim: "src/sim/index.ts",
};
/** And those that need Node's own http. */
const nodeEntry = {
  ...webEntry,
  fastify: "src/fastify/index.ts",
  router: "src/router/index.ts",
};

const { version } = JSON.parse(await readFile("package.json", "utf8"));

/** A YAML file is a module whose value was parsed at build time. */
const yamlAsModule: Plugin = {
  name: "yaml-as-module",
  setup(build) {
    build.onLoad({ filter: /\.yaml$/ }, async ({ path }) => ({
      contents: `export default ${JSON.stringify(parse(await readFile(path, "utf8")))}`,
    }));
  },
};

const shared: Options = {
  target: "es2022",
  platform: "neutral",
  splitting: true,
  sourcemap: true,
  minify: true,
  noExternal: ["@assemblyscript/loader"],
  external: [/^node:/, /^fastify/, "prom-client", "undici", "yaml"],
  loader: { ".wasm": "base64" },
  define: { VERSION: JSON.stringify(version) },
  esbuildPlugins: [yamlAsModule],
  esbuildOptions(options) {
    options.mainFields = ["module", "main"];
  },
};

/** In workerd the kernel is a module that the platform has compiled, and comes as a file. */
const kernelAsModule: Plugin = {
  name: "kernel-as-module",
  setup(build) {
    build.onResolve({ filter: /\/kernel-module$/ }, ({ resolveDir }) => ({
      path: `${resolveDir}/kernel-module.workerd.ts`,
    }));
    build.onResolve({ filter: /^\.\/kernel\.wasm$/ }, ({ path }) => ({ path, external: true }));
  },
};

/** CommonJS has no shared chunks: one file holds all, so that classes are the same everywhere. */
async function writeCommonJs(): Promise<void> {
  for (const name of Object.keys(webEntry)) {
    await writeFile(`dist/${name}.cjs`, `module.exports = require("./all.cjs").${name};\n`);
  }
  // These two bring more along, which nobody should load who does not ask for it.
  const loaders = { fastify: "loadFastify", router: "loadRouter" };
  for (const [name, load] of Object.entries(loaders)) {
    await writeFile(`dist/${name}.cjs`, `module.exports = require("./all.cjs").${load}();\n`);
  }
}

export default defineConfig([
  {
    ...shared,
    entry: nodeEntry,
    format: "esm",
    onSuccess: () => copyFile("build/kernel.wasm", "dist/kernel.wasm"),
  },
  {
    ...shared,
    entry: { all: "src/all.ts" },
    format: "cjs",
    splitting: false,
    onSuccess: writeCommonJs,
  },
  { ...shared, entry: nodeEntry, format: ["esm", "cjs"], dts: { only: true } },
  {
    ...shared,
    entry: webEntry,
    format: "esm",
    outDir: "dist/workerd",
    esbuildPlugins: [yamlAsModule, kernelAsModule],
    onSuccess: () => copyFile("build/kernel.wasm", "dist/workerd/kernel.wasm"),
  },
  {
    ...shared,
    entry: { cli: "src/cli/main.ts" },
    format: "esm",
    platform: "node",
    minify: false,
    external: ["undici", "commander", "yaml", "fastify", "prom-client"],
    onSuccess: () => cp("src/sim/scenarios", "dist/scenarios", { recursive: true }),
  },
]);
