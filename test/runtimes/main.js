// What Node, Bun and Deno run: loads the built package and prints its decision and its
// simulation.

import * as core from "../../dist/index.js";
import * as sim from "../../dist/sim.js";
import * as telemetry from "../../dist/telemetry.js";
import { decide } from "./decide.js";
import { simulateDigest } from "./simulate.js";

console.log(`${decide(core, telemetry)} ${await simulateDigest(sim)}`);
