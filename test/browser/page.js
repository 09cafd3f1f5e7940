// What the browser runs: the decision, or the error, becomes the title.

import * as core from "/dist/index.js";
import * as telemetry from "/dist/telemetry.js";
import { decide } from "/test/runtimes/decide.js";

let answer;
try {
  answer = decide(core, telemetry);
} catch (error) {
  answer = `${error.code} ${error.message}`;
}
document.title = `answer ${answer}`;
