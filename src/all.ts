// Every subpath in one module, for the CommonJS build alone; see tsup.config.ts.

export * as flow from "./flow/index";
export * as index from "./index";
export * as sim from "./sim/index";
export * as telemetry from "./telemetry/index";

/** The router, loaded when it is asked for. */
export function loadRouter(): unknown {
  return require("./router/index");
}
