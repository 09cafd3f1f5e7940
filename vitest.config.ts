import { readFile } from "node:fs/promises";
import { defineConfig, type Plugin } from "vitest/config";

/** Embeds the built kernel as base64 text, as tsup does in the package. */
const kernelAsText: Plugin = {
  name: "kernel-as-text",
  enforce: "pre",
  async load(id) {
    if (!id.endsWith("/kernel.wasm")) return null;
    return `export default ${JSON.stringify((await readFile(id)).toString("base64"))};`;
  },
};

const apart = ["test/runtimes/**", "test/browser/**", "test/recipes/**"];

export default defineConfig(({ mode }) => ({
  plugins: [kernelAsText],
  test: {
    // Recipes need programs of Debian's: nginx, prometheus with promtool, systemd-analyze.
    ...(mode === "recipes"
      ? { include: ["test/recipes/**/*.test.ts"] }
      : { include: ["test/**/*.test.ts"], exclude: apart }),
    testTimeout: 120_000,
    pool: "forks",
  },
}));
