import { readFile } from "node:fs/promises";
import { defineConfig, type Plugin } from "vitest/config";
import { parse } from "yaml";

/** Embeds the built kernel as base64 text, as tsup does in the package. */
const kernelAsText: Plugin = {
  name: "kernel-as-text",
  enforce: "pre",
  async load(id) {
    if (!id.endsWith("/kernel.wasm")) return null;
    return `export default ${JSON.stringify((await readFile(id)).toString("base64"))};`;
  },
};

/** Parses YAML files, as tsup does. */
const yamlAsModule: Plugin = {
  name: "yaml-as-module",
  enforce: "pre",
  async load(id) {
    if (!id.endsWith(".yaml")) return null;
    return `export default ${JSON.stringify(parse(await readFile(id, "utf8")))};`;
  },
};

export default defineConfig({
  plugins: [kernelAsText, yamlAsModule],
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/runtimes/**", "test/browser/**"],
    testTimeout: 120_000,
    pool: "forks",
  },
});
