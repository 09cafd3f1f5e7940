// How Vite and Vitest load what is no JavaScript: the kernel and YAML files, as tsup does.

import { readFile } from "node:fs/promises";
import type { Plugin } from "vite";
import { parse } from "yaml";

/** The built kernel as base64 text. */
export const kernelAsText: Plugin = {
  name: "kernel-as-text",
  enforce: "pre",
  async load(id) {
    if (!id.endsWith("/kernel.wasm")) return null;
    return `export default ${JSON.stringify((await readFile(id)).toString("base64"))};`;
  },
};

/** A YAML file as the value in it. */
export const yamlAsModule: Plugin = {
  name: "yaml-as-module",
  enforce: "pre",
  async load(id) {
    if (!id.endsWith(".yaml")) return null;
    return `export default ${JSON.stringify(parse(await readFile(id, "utf8")))};`;
  },
};
