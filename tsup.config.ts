import { copyFile } from "node:fs/promises";
import { defineConfig, type Options } from "tsup";

/** The subpaths of the package. */
const entry = { index: "src/index.ts", telemetry: "src/telemetry/index.ts" };

const shared: Options = {
  target: "es2022",
  platform: "neutral",
  splitting: true,
  sourcemap: true,
  minify: true,
  // Names survive, so that `error.name` and stack traces stay readable.
  keepNames: false,
  noExternal: ["@assemblyscript/loader"],
  external: [/^node:/],
  loader: { ".wasm": "base64" },
  esbuildOptions(options) {
    options.mainFields = ["module", "main"];
  },
};

export default defineConfig([
  {
    ...shared,
    entry,
    format: ["esm", "cjs"],
    dts: true,
    clean: true,
    onSuccess: () => copyFile("build/kernel.wasm", "dist/kernel.wasm"),
  },
]);
