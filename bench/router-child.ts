// What is measured, as a process of its own: the router, or the same proxy with round robin and no detector.
//   node build/bench-router.mjs plimsoll|round-robin URL...

import { Session } from "node:inspector/promises";
import { Pool } from "undici";
import { BodyKeeper } from "../src/router/body";
import { resolveRouterConfig } from "../src/router/config";
import type { Leased } from "../src/router/gates";
import { HoldOffs } from "../src/router/hold-off";
import type { RouterConfig } from "../src/router/options";
import { RequestProxy } from "../src/router/proxy";
import { createRouter } from "../src/router/router";
import { createTrafficServer } from "../src/router/server";

const [manner, ...urls] = process.argv.slice(2);
const config: RouterConfig = {
  endpoints: urls,
  listen: { host: "127.0.0.1", port: 0 },
  admin: false,
  ...JSON.parse(process.env.BENCH_CONFIG ?? "{}"),
};

async function startRouter(): Promise<string> {
  const router = createRouter(config);
  const { traffic } = await router.start();
  while (router.pool.evaluate().fresh < urls.length) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  process.on("message", (what) => {
    if (what !== "snapshot") return;
    const { live, pool } = router.snapshot();
    process.send?.({ live, leases: pool.endpoints.reduce((sum, { leases }) => sum + leases, 0) });
  });
  return traffic;
}

/** Everything but the decision is the router's own. */
async function startRoundRobin(): Promise<string> {
  const settings = resolveRouterConfig(config, undefined);
  const ignore = () => undefined;
  let turn = 0;
  const leases: Leased[] = urls.map((id) => ({
    endpoint: { id },
    started: ignore,
    release: ignore,
  }));
  const next = () => leases[turn++ % leases.length] as Leased; // there is at least one
  const gate = { model: "*", tryAdmit: next, admit: async () => next(), again: next };
  const upstreams = new Map(
    urls.map((url) => {
      const options = { connections: null, pipelining: 1, keepAliveTimeout: 4000 };
      return [url, { dispatcher: new Pool(url, options), requestHeaders: {} }];
    }),
  );
  const proxy = new RequestProxy({
    settings: () => settings,
    now: () => performance.now(),
    find: () => gate,
    needsModel: () => false,
    upstream: (id) => upstreams.get(id),
    onSample: ignore,
    holdOffs: new HoldOffs(() => settings.retry),
    keeper: new BodyKeeper(() => settings),
    observer: {
      ...{ onAdmitted: ignore, onAnswer: ignore, onFirstByte: ignore, onTried: ignore },
      ...{ onRefused: ignore, onEnd: ignore },
    },
    onFault: (error) => console.error(error),
  });
  const app = createTrafficServer(proxy, settings);
  return app.listen({ host: "127.0.0.1", port: 0 });
}

/** A profile of what is between two messages, so that loading and warming up are not in it. */
const session = new Session();
session.connect();
process.on("message", async (what) => {
  if (what === "profile") {
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: 200 });
    await session.post("Profiler.start");
    process.send?.("profiling");
  } else if (what === "profiled") {
    process.send?.((await session.post("Profiler.stop")).profile);
  }
});

const url = await (manner === "plimsoll" ? startRouter() : startRoundRobin());
process.send?.({ url });
process.on("SIGTERM", () => process.exit(0));
// Whoever measures may have failed: nothing is left then.
process.on("disconnect", () => process.exit(0));
