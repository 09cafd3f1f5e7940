import { defineConfig } from "vitest/config";
import { kernelAsText, yamlAsModule } from "./vite.plugins.ts";

const apart = ["runtimes", "browser", "recipes"].map((name) => `test/${name}/**`);

export default defineConfig(({ mode }) => ({
  plugins: [kernelAsText, yamlAsModule],
  test: {
    // Recipes need programs of Debian's: nginx, prometheus with promtool, systemd-analyze.
    ...(mode === "recipes"
      ? { include: ["test/recipes/**/*.test.ts"] }
      : { include: ["test/**/*.test.ts"], exclude: apart }),
    testTimeout: 120_000,
    pool: "forks",
  },
}));
