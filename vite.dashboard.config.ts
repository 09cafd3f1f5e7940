// The dashboard's page: separate files with hashes in their names, as a strict Content-Security-Policy wants
// them, compressed into one JSON file that the router's code embeds.

import { writeFile } from "node:fs/promises";
import { extname } from "node:path";
import { constants, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
};

/** Writes `build/dashboard.json`; the page itself has the name "". */
const packFiles: Plugin = {
  name: "pack-files",
  async writeBundle(_, bundle) {
    const files = Object.values(bundle).map((file) => {
      const extension = extname(file.fileName);
      const type = TYPES[extension];
      if (type === undefined) throw new Error(`what type has ${file.fileName}?`);
      const content = Buffer.from(file.type === "chunk" ? file.code : file.source);
      const gzip = gzipSync(content, { level: constants.Z_BEST_COMPRESSION }).toString("base64");
      return { name: extension === ".html" ? "" : file.fileName, type, gzip };
    });
    await writeFile("build/dashboard.json", JSON.stringify({ files }));
  },
};

export default defineConfig({
  root: "src/web/dashboard",
  plugins: [packFiles],
  // The page is at /dashboard, wherever that is mounted, and its files are below.
  experimental: { renderBuiltUrl: (name) => `dashboard/${name}` },
  build: {
    outDir: "../../../build/dashboard",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsDir: "",
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: { input: "src/web/dashboard/dashboard.html" },
  },
});
