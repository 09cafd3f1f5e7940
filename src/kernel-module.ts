// Compiles the kernel from bytes that the build embeds. The workerd build replaces this file, since
// that runtime may not compile bytes.

import base64 from "../build/kernel.wasm";
import { KernelError } from "./errors";

let compiled: WebAssembly.Module | undefined;

/**
 * The compiled kernel; compiled at the first call, not at import.
 *
 * @throws KernelError when this host has no WebAssembly, no SIMD, or may not compile.
 */
export function kernelModule(): WebAssembly.Module {
  compiled ??= compile();
  return compiled;
}

function compile(): WebAssembly.Module {
  if (typeof WebAssembly === "undefined") {
    throw new KernelError(
      "this host has no WebAssembly, which the kernel needs (node --jitless turns it off)",
    );
  }
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  if (!WebAssembly.validate(bytes)) {
    throw new KernelError(
      "this host's WebAssembly has no SIMD, which the kernel needs: Chrome 91, Firefox 89 and " +
        "Safari 16.4 have it",
    );
  }
  try {
    return new WebAssembly.Module(bytes);
  } catch (cause) {
    throw new KernelError(
      "this host refused to compile the kernel: the usual cause in a browser is a " +
        "Content-Security-Policy without 'wasm-unsafe-eval' in script-src",
      { cause },
    );
  }
}
