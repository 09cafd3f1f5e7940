// Every subpath in one module, for the CommonJS build alone; see tsup.config.ts.

export * as fastify from "./fastify/index";
export * as fetch from "./fetch/index";
export * as flow from "./flow/index";
export * as index from "./index";
export * as telemetry from "./telemetry/index";
