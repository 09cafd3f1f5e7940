// plimsoll/fastify: the gate of a pool as a Fastify plugin.

export type { Admission } from "./admission";
export type {
  HealthReport,
  PlimsollInstance,
  PlimsollPluginOptions,
  RouteAdmission,
} from "./options";
export { plimsollPlugin } from "./plugin";
