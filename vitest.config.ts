import { defineConfig } from "vitest/config";
import { kernelAsText, yamlAsModule } from "./vite.plugins.ts";

export default defineConfig({
  plugins: [kernelAsText, yamlAsModule],
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/runtimes/**", "test/browser/**"],
    testTimeout: 120_000,
    pool: "forks",
  },
});
