import { copyFile, readFile, writeFile } from "node:fs/promises";
import type { Plugin } from "esbuild";
import { defineConfig, type Options } from "tsup";

/** The subpaths of the package. */
const entry = {
  index: "src/index.ts",
  telemetry: "src/telemetry/index.ts",
  flow: "src/flow/index.ts",
  fetch: "src/fetch/index.ts",
  fastify: "src/fastify/index.ts",
};

/** Fastify needs Node's own http. */
const { fastify: _, ...webEntry } = entry;

const { version } = JSON.parse(await readFile("package.json", "utf8"));

const shared: Options = {
  target: "es2022",
  platform: "neutral",
  splitting: true,
  sourcemap: true,
  minify: true,
  noExternal: ["@assemblyscript/loader"],
  external: [/^node:/, /^fastify/],
  loader: { ".wasm": "base64" },
  define: { VERSION: JSON.stringify(version) },
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
  for (const name of Object.keys(entry)) {
    await writeFile(`dist/${name}.cjs`, `module.exports = require("./all.cjs").${name};\n`);
  }
}

export default defineConfig([
  {
    ...shared,
    entry,
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
  { ...shared, entry, format: ["esm", "cjs"], dts: { only: true } },
  {
    ...shared,
    entry: webEntry,
    format: "esm",
    outDir: "dist/workerd",
    esbuildPlugins: [kernelAsModule],
    onSuccess: () => copyFile("build/kernel.wasm", "dist/workerd/kernel.wasm"),
  },
  {
    ...shared,
    entry: { cli: "src/cli/main.ts" },
    format: "esm",
    platform: "node",
    minify: false,
    external: ["undici", "commander", "yaml"],
  },
]);
