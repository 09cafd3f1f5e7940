// The process that is measured, bundled from the sources with a map, so that a profile can be told apart by file.

import { build } from "esbuild";

/** Where the bundle is. */
export const CHILD = "build/bench-router.mjs";

/** Bundles it. */
export async function bundleChild(): Promise<void> {
  await build({
    entryPoints: ["bench/router-child.ts"],
    outfile: CHILD,
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "external",
    sourcemap: true,
    loader: { ".wasm": "base64" },
    define: { VERSION: '"bench"' },
  });
}
