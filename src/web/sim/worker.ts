// Runs one scenario away from the page, which stays quick.

import { ConfigError } from "../../errors";
import type { Scenario } from "../../sim/scenario";
import { simulate } from "../../sim/simulate";
import type { FromWorker, ToWorker } from "./messages";

const post = (message: FromWorker) => postMessage(message);

addEventListener("message", async ({ data }: MessageEvent<ToWorker>) => {
  try {
    const scenario = data.tree as unknown as Scenario; // simulate checks every part of it
    let shown = -1;
    const report = await simulate(scenario, {
      seed: data.seed,
      onProgress: ({ share }) => {
        const percent = Math.floor(100 * share);
        if (percent === shown) return;
        shown = percent;
        post({ kind: "progress", share });
      },
    });
    post({ kind: "report", report });
  } catch (error) {
    if (error instanceof ConfigError) {
      post({ kind: "faults", faults: error.faults.map(({ path, rule }) => ({ path, rule })) });
    } else post({ kind: "faults", faults: [{ path: "", rule: String(error) }] });
  }
});
