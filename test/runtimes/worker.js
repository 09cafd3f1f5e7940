// What workerd runs: answers every request with the decision of the built package.

import { decide } from "decide.js";
import * as core from "index.js";
import * as sim from "sim.js";
import { simulateDigest } from "simulate.js";
import * as telemetry from "telemetry.js";

export default {
  async fetch() {
    return new Response(`${decide(core, telemetry)} ${await simulateDigest(sim)}`);
  },
};
