// The kernel as Cloudflare's workerd wants it: imported as a module that the platform has compiled.

import compiled from "./kernel.wasm";

/** The compiled kernel. */
export function kernelModule(): WebAssembly.Module {
  // The other builds declare this import as text; in workerd it is a module.
  return compiled as unknown as WebAssembly.Module;
}
