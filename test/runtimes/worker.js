// What workerd runs: answers every request with the decision of the built package, through createFetch.

import { decide } from "decide.js";
import { createFetch } from "fetch.js";
import * as core from "index.js";
import * as sim from "sim.js";
import { simulateDigest } from "simulate.js";
import * as telemetry from "telemetry.js";

export default {
  async fetch() {
    const pool = new core.EndpointPool();
    pool.add("http://10.0.0.7:8000");
    const digest = await simulateDigest(sim);
    const answer = async () => new Response(`${decide(core, telemetry)} ${digest}`);
    const response = await createFetch(pool, { fetch: answer })("/v1/models");
    return new Response(response.body, response);
  },
};
