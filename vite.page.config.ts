// The simulator's page: served while it is worked on, and built into one file that needs no other.

import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";
import { kernelAsText, yamlAsModule } from "./vite.plugins.ts";

export default defineConfig({
  root: "src/web/sim",
  plugins: [kernelAsText, yamlAsModule, viteSingleFile({ removeViteModuleLoader: true })],
  worker: { format: "iife", plugins: () => [kernelAsText, yamlAsModule] },
  build: {
    outDir: "../../../dist/web",
    emptyOutDir: true,
    target: "es2022",
    rolldownOptions: { input: "src/web/sim/sim.html" },
    reportCompressedSize: false,
  },
});
