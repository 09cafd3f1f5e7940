// What Node, Bun and Deno run: loads the built package and prints its decision.

import * as core from "../../dist/index.js";
import * as telemetry from "../../dist/telemetry.js";
import { decide } from "./decide.js";

console.log(decide(core, telemetry));
