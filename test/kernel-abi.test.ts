// The raw module through the bare WebAssembly API, by nothing but what assembly/README.md says.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

const bytes = readFileSync(new URL("../build/kernel.wasm", import.meta.url));
const page = readFileSync(new URL("../assembly/README.md", import.meta.url), "utf8");

describe("kernel.wasm", () => {
  test("imports nothing, and exports what its page lists", () => {
    const module = new WebAssembly.Module(bytes);
    expect(WebAssembly.Module.imports(module)).toEqual([]);
    const names = WebAssembly.Module.exports(module).map(({ name }) => name);
    for (const name of names) expect(page).toContain(`\`${name}`);
    expect(names.sort()).toEqual([
      "abiVersion",
      "capacityOf",
      "columnPtr",
      "configure",
      "evaluate",
      "memory",
      "reduce",
      "reserve",
      "resultPtr",
      "rowsPtr",
      "score",
      "select",
      "settle",
    ]);
  });

  test("is under 4,096 bytes, so that browsers compile it synchronously", () => {
    expect(bytes.length).toBeLessThan(4096);
  });

  test("the example of its page prints what the page says", () => {
    const code = /```js\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
    const expected = /console\.log\(.*\/\/ (.*)$/m.exec(code)?.[1];
    const args = ["--input-type=module", "-e", code];
    const printed = execFileSync(process.execPath, args, { encoding: "utf8" });
    expect(printed.trim()).toBe(expected);
  });

  test("the layout is as the page draws it", () => {
    const kernel = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as {
      reserve(n: number): number;
      capacityOf(): number;
      rowsPtr(): number;
      resultPtr(): number;
      columnPtr(i: number): number;
      memory: WebAssembly.Memory;
    };
    for (const wanted of [1, 16, 17, 100, 5000]) {
      expect(kernel.reserve(wanted)).toBe(1);
      const capacity = kernel.capacityOf();
      expect(capacity).toBeGreaterThanOrEqual(wanted);
      expect([kernel.resultPtr(), kernel.rowsPtr()]).toEqual([64, 256]);
      for (let i = 0; i < 8; i++) {
        expect(kernel.columnPtr(i)).toBe(256 + capacity * (64 + 8 * i));
      }
      expect(kernel.memory.buffer.byteLength).toBeGreaterThanOrEqual(256 + capacity * 128);
    }
    expect(kernel.reserve(2 ** 24 + 1)).toBe(0);
  });
});
