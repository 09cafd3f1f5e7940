// The live dashboard inside an application that has the plugin: its pool and its flow controller as a page.

import type { FastifyPluginAsync } from "fastify";
import { Journal } from "../dashboard/journal";
import { dashboardRoutes } from "../dashboard/plugin";
import { ConfigError } from "../errors";

/**
 * The pool and the controller of `plimsollPlugin` as a page at `/dashboard`, below the prefix that it is
 * registered with. It names endpoints: register it where only those come who may see them. Times to first
 * token and dropped requests are not shown, since the application answers its requests itself.
 *
 * @throws ConfigError from `ready` where `plimsollPlugin` was not registered before.
 * @example
 * await app.register(plimsollPlugin, { pool });
 * await app.register(plimsollDashboard, { prefix: "/ops" }); // the page is at /ops/dashboard
 */
export const plimsollDashboard: FastifyPluginAsync = async (app) => {
  if (!app.hasDecorator("plimsoll")) {
    const rule = "plimsollPlugin must be registered before plimsollDashboard";
    throw new ConfigError([{ path: "plimsoll", value: undefined, rule }]);
  }
  const { pool, controller } = app.plimsoll;
  const journal = new Journal(() => {
    const { saturation, waiting } = controller.stats();
    let queued = 0;
    for (const endpoint of pool) queued += endpoint.waiting || 0; // NaN before the first reading
    return { saturation: pool.saturation(), gateSaturation: saturation, held: waiting, queued };
  });
  const snapshot = () => ({
    ...{ pool: pool.snapshot(), heldOff: [] },
    gates: [{ model: "*", ...controller.stats() }],
  });
  const onFault = (error: unknown) => app.log.error(error, "the dashboard saw nothing");
  app.addHook("onReady", async () => journal.start());
  app.addHook("onClose", async () => journal.close());
  await app.register(dashboardRoutes, { source: { snapshot, journal }, onFault });
};
