// Reading a 50 KB vLLM page, against a parser of the whole exposition format.
//   npm run build && npx tsx bench/scan.ts

import parseExposition from "parse-prometheus-text-format";
import { readExposition } from "../dist/telemetry.js";
import { report, timeContestants } from "./lib";
import { makeVllmPage } from "./pages";

const page = makeVllmPage(7, 42, 0.4375);
const bytes = new TextEncoder().encode(page);

interface Family {
  name: string;
  metrics: { value?: string }[];
}

/** What a caller of the parser would write. */
function readByParsing(text: string): { waiting: number; running: number; kv: number } {
  const families: Family[] = parseExposition(text);
  const readValue = (name: string) =>
    Number(families.find((family) => family.name === name)?.metrics[0]?.value);
  return {
    waiting: readValue("vllm:num_requests_waiting"),
    running: readValue("vllm:num_requests_running"),
    kv: readValue("vllm:kv_cache_usage_perc"),
  };
}

const { sample } = readExposition(bytes);
const parsed = readByParsing(page);
if (
  sample.waitingQueueSize !== parsed.waiting ||
  sample.runningRequests !== parsed.running ||
  sample.kvCacheUsagePercent !== parsed.kv
) {
  throw new Error(`the readings differ: ${JSON.stringify([sample, parsed])}`);
}

const ns = timeContestants({
  "parse-prometheus-text-format": () => readByParsing(page),
  "readExposition, engine unknown": () => readExposition(bytes),
  "readExposition, engine known": () => readExposition(bytes, "vllm"),
});
const parser = ns["parse-prometheus-text-format"] ?? Number.NaN;
report(
  "scan",
  Object.entries(ns).map(([name, value]) => ({
    reader: name,
    "page, KB": Math.round(bytes.length / 1024),
    lines: page.split("\n").length - 1,
    µs: Math.round(value / 10) / 100,
    "times faster": Math.round((parser / value) * 10) / 10,
  })),
);
