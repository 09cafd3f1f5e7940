// The API reference covers every subpath of the package. That it builds without a warning is a step of the gate.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import tsup from "../../tsup.config";

const read = (path: string) =>
  JSON.parse(readFileSync(new URL(`../../${path}`, import.meta.url), "utf8"));

test("every subpath that is code is an entry of the reference, and warnings are errors", () => {
  const { exports } = read("package.json");
  const subpaths = Object.keys(exports).filter((path) => !/\.\w+$/.test(path.slice(1)));
  const [first] = [tsup].flat();
  const built: Record<string, string> = Object(typeof first === "object" ? first.entry : {});
  const sources = subpaths.map((path) => built[path === "." ? "index" : path.slice(2)]);
  const { entryPoints, treatWarningsAsErrors, out } = read("typedoc.json");
  expect([...entryPoints].sort()).toEqual(sources.sort());
  expect([treatWarningsAsErrors, out]).toEqual([true, "build/docs"]);
});
