// What the browser runs: the decision and a simulation, or the error, becomes the title.

import * as core from "/dist/index.js";
import * as sim from "/dist/sim.js";
import * as telemetry from "/dist/telemetry.js";
import { decide } from "/test/runtimes/decide.js";
import { simulateDigest } from "/test/runtimes/simulate.js";

let answer;
try {
  answer = `${decide(core, telemetry)} ${await simulateDigest(sim)}`;
} catch (error) {
  answer = `${error.code} ${error.message}`;
}
document.title = `answer ${answer}`;
