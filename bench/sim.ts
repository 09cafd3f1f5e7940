// How fast the simulator is: a trace of 19,366 requests over eight engines, and ten times as many.
// With TRACE=FILE a recorded trace is replayed; else one of the same size and shape is made up.

import { readFileSync } from "node:fs";
import { readTrace, type Scenario, simulate, type TraceRequest } from "../dist/sim.js";
import { median, report, seededRandom, smoke } from "./lib";

const REQUESTS = smoke ? 1000 : 19_366;
const PER_S = 5.53;

/** Conversations: mean prompt 1,155, mean answer 211, Poisson arrivals. */
function makeTrace(count: number): TraceRequest[] {
  const random = seededRandom(1);
  const exponential = (mean: number) => -mean * Math.log(1 - random());
  let timeMs = 0;
  return Array.from({ length: count }, () => {
    timeMs += exponential(1000 / PER_S);
    const promptTokens = Math.min(14_000, 1 + Math.floor(exponential(1155)));
    return { timeMs, promptTokens, outputTokens: 1 + Math.floor(exponential(211)) };
  });
}

/** The same trace again and again. */
function repeat(trace: readonly TraceRequest[], times: number): TraceRequest[] {
  const length = (trace.at(-1)?.timeMs ?? 0) + 1000 / PER_S;
  return Array.from({ length: times }, (_, i) =>
    trace.map((request) => ({ ...request, timeMs: request.timeMs + i * length })),
  ).flat();
}

function scenarioOf(trace: readonly TraceRequest[]): Scenario {
  return {
    duration: (trace.at(-1)?.timeMs ?? 0) + 1,
    endpoints: [{ preset: "llama-3.1-8b/H100/tp1", count: 8 }],
    traffic: [{ arrival: { process: "trace" }, trace }],
  };
}

async function time(
  trace: readonly TraceRequest[],
): Promise<{ seconds: number; completed: number }> {
  const start = performance.now();
  const { completed } = await simulate(scenarioOf(trace));
  return { seconds: (performance.now() - start) / 1000, completed };
}

const file = process.env.TRACE;
const trace =
  file === undefined
    ? makeTrace(REQUESTS)
    : readTrace(readFileSync(file, "utf8"), { name: file }).requests;
const rounds = smoke ? 1 : 3;
const once: number[] = [];
const tenfold: number[] = [];
let completed = 0;
for (let round = 0; round < rounds; round++) {
  once.push((await time(trace)).seconds);
  const many = await time(repeat(trace, 10));
  tenfold.push(many.seconds);
  completed = many.completed;
}
report("sim", [
  {
    requests: trace.length,
    seconds: Number(median(once).toFixed(2)),
    "seconds for 10x": Number(median(tenfold).toFixed(2)),
    "cost of 10x": Number((median(tenfold) / median(once)).toFixed(2)),
    "completed of 10x": completed,
    "largest memory, MB": Math.round(process.resourceUsage().maxRSS / 1024),
  },
]);
