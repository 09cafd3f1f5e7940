// Every subpath in one module, for the CommonJS build alone; see tsup.config.ts.

export * as fetch from "./fetch/index";
export * as flow from "./flow/index";
export * as index from "./index";
export * as sim from "./sim/index";
export * as telemetry from "./telemetry/index";

/** The Fastify plugin, loaded when it is asked for. */
export function loadFastify(): unknown {
  return require("./fastify/index");
}

/** The router, loaded when it is asked for. */
export function loadRouter(): unknown {
  return require("./router/index");
}
