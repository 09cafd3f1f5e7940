// What each subpath exports is a promise. A change here needs a line in CHANGELOG.md.

import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";

const SURFACE: Record<string, string[]> = {
  "./dist/index": [
    "CONCURRENCY_DETECTOR",
    "ConcurrencyDetector",
    "ConfigError",
    "DEFAULT_CONFIG",
    "DurationError",
    "EndpointError",
    "EndpointPool",
    "KernelError",
    "PlimsollError",
    "TelemetryError",
    "UTILIZATION_DETECTOR",
    "UtilizationDetector",
    "formatDuration",
    "isGateClosed",
    "maxOf",
    "parseDuration",
    "printConfig",
    "resolveConfig",
  ],
  "./dist/fastify": ["plimsollPlugin"],
  "./dist/fetch": ["createFetch"],
  "./dist/flow": ["AdmissionError", "FlowController"],
  "./dist/router": ["Router", "createRouter"],
  "./dist/sim": [
    "POLICY_NAMES",
    "PRESETS",
    "SCENARIOS",
    "SCENARIO_NAMES",
    "TraceError",
    "capacityOf",
    "expectedTpotMs",
    "fitStep",
    "readTrace",
    "reportCsv",
    "reportTable",
    "simulate",
  ],
  "./dist/telemetry": [
    "ENGINES",
    "LOAD_METRICS_FORMAT",
    "LOAD_METRICS_HEADER",
    "LOAD_METRICS_REQUEST_HEADER",
    "metricNames",
    "readExposition",
    "readLoadMetrics",
    "startScraper",
  ],
};

function node(code: string, type: "module" | "commonjs"): string {
  const args = [`--input-type=${type}`, "-e", code];
  return execFileSync(process.execPath, args, { encoding: "utf8" }).trim();
}

describe.each(Object.entries(SURFACE))("%s", (path, names) => {
  test("exports these names as an ES module", () => {
    const code = `import * as all from "${path}.js"; console.log(JSON.stringify(Object.keys(all).sort()))`;
    expect(JSON.parse(node(code, "module"))).toEqual(names);
  });

  test("exports the same as CommonJS", () => {
    const code = `console.log(JSON.stringify(Object.keys(require("${path}.cjs")).sort()))`;
    expect(JSON.parse(node(code, "commonjs"))).toEqual(names);
  });
});

describe("classes", () => {
  const check = (load: (path: string) => string) => `
    const core = ${load("./dist/index")};
    const telemetry = ${load("./dist/telemetry")};
    const flow = ${load("./dist/flow")};
    const fetching = ${load("./dist/fetch")};
    const { plimsollPlugin } = ${load("./dist/fastify")};
    console.log(flow.AdmissionError.prototype instanceof core.PlimsollError);
    try { fetching.createFetch({}); } catch (error) { console.log(error instanceof core.ConfigError); }
    plimsollPlugin({}, {}).catch((error) => console.log(error instanceof core.ConfigError));
    try { telemetry.readExposition("", "x"); } catch (error) {
      console.log(error instanceof core.PlimsollError, error instanceof core.TelemetryError, error.code);
    }`;

  test("are the same in every subpath", () => {
    const expected = "true\ntrue\ntrue true PLIMSOLL_TELEMETRY\ntrue";
    expect(
      node(
        check((path) => `await import("${path}.js")`),
        "module",
      ),
    ).toBe(expected);
    expect(
      node(
        check((path) => `require("${path}.cjs")`),
        "commonjs",
      ),
    ).toBe(expected);
  });
});

describe("importing the core", () => {
  test("compiles no WebAssembly and starts nothing; the first use does", () => {
    const code = `
      let compiled = 0;
      const { Module } = WebAssembly;
      WebAssembly.Module = class extends Module { constructor(bytes) { super(bytes); compiled++; } };
      const open = process.getActiveResourcesInfo().length;
      const core = await import("./dist/index.js");
      await new Promise(setImmediate);
      const before = [compiled, process.getActiveResourcesInfo().length - open];
      new core.EndpointPool();
      new core.EndpointPool();
      console.log(JSON.stringify([...before, compiled]));`;
    expect(JSON.parse(node(code, "module"))).toEqual([0, 0, 1]);
  });

  test("as CommonJS loads no server", () => {
    const code = `
      require("./dist/index.cjs");
      const loaded = () => Object.keys(require.cache).some((path) => path.includes("fastify"));
      const before = loaded();
      require("./dist/router.cjs");
      console.log(before, loaded());`;
    expect(node(code, "commonjs")).toBe("false true");
  });

  test("without WebAssembly, the first use says so", () => {
    const code = `
      delete globalThis.WebAssembly;
      const { EndpointPool } = await import("./dist/index.js");
      try { new EndpointPool(); } catch (error) { console.log(error.code, error.message); }`;
    expect(node(code, "module")).toMatch(/^PLIMSOLL_KERNEL this host has no WebAssembly/);
  });

  test("without SIMD, or where compiling is refused, it says what is missing", () => {
    const code = (change: string) => `
      ${change}
      const { EndpointPool } = await import("./dist/index.js");
      try { new EndpointPool(); } catch (error) { console.log(error.code, error.message); }`;
    const noSimd = "WebAssembly.validate = () => false;";
    expect(node(code(noSimd), "module")).toMatch(/^PLIMSOLL_KERNEL .*SIMD/);
    const refused = "WebAssembly.Module = class { constructor() { throw new Error('CSP'); } };";
    expect(node(code(refused), "module")).toMatch(/^PLIMSOLL_KERNEL .*wasm-unsafe-eval/);
  });
});
