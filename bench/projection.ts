// Which shape of projection and rank routes best? Each shape runs through the simulator over every
// built-in scenario, scrape interval, number of routers, and with and without streaming, and is
// compared by p99 time to first token with an oracle that sees everything. The default is the best.

import { readdirSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import type { Endpoint } from "../src/endpoint";
import type { PickFilter } from "../src/pick";
import { kvPenalty } from "../src/projection";
import { POLICIES, type Policy } from "../src/sim/policies";
import type { Scenario } from "../src/sim/scenario";
import { resolveScenario } from "../src/sim/scenario-reader";
import { Run } from "../src/sim/simulate";
import { type Row, report, smoke } from "./lib";

/** What differs between shapes. The values of the default are those of src/projection.ts. */
interface Shape {
  /** Requests at an endpoint: own and others' apart, the sample and what was sent since, or one. */
  readonly load?: "apart" | "delta" | "own" | "sample" | "none";
  readonly pending?: boolean;
  readonly slow?: boolean;
  readonly batch?: number;
  readonly budget?: number;
  readonly spread?: number;
  /** Random among those whose rank is within this share of the least. */
  readonly near?: number;
  /** The others' part goes to the pool's mean with this time constant, in ms. */
  readonly fade?: number;
  readonly filter?: PickFilter;
}

const SHAPES: Readonly<Record<string, Shape>> = {
  "own live, others sampled (the default)": {},
  "  the same, random among those within 2 %": { near: 0.02 },
  "  the same, random within 5 %, no bias": { near: 0.05, spread: 0 },
  "  the same, no bias between routers": { spread: 0 },
  "  the same, bias 0.15": { spread: 0.15 },
  "  the same, bias 1": { spread: 1 },
  "  the same, token budget 256": { budget: 256 },
  "  the same, token budget 1024": { budget: 1024 },
  "  the same, token budget 2048": { budget: 2048 },
  "  the same, batch 64": { batch: 64 },
  "  the same, batch 256": { batch: 256 },
  "  the same, others fade to the mean in 2 s": { fade: 2000 },
  "  the same, hard filter on the queue": { filter: "limits" },
  "  the same, no filter": { filter: "none" },
  "  the same, without pace": { slow: false },
  "  the same, without waiting prompts": { pending: false },
  "  the same, without the batch": { load: "none" },
  "sample plus what was sent since": { load: "delta" },
  "own requests alone": { load: "own" },
  "sample alone, same rank": { load: "sample", pending: false },
};
const CONTESTANTS = [
  "original",
  "credit",
  "least-outstanding",
  "two-choices",
  "round-robin",
  "random",
] as const;
const INTERVALS = ["50ms", "200ms", "1s", "5s"];
const ROUTERS = [1, 4, 16];
const SEEDS = [1];

function policyOf(shape: Shape): Policy {
  const { load = "apart", pending = true, slow = true, batch = 128, budget = 512 } = shape;
  const { spread = 0.5, near = 0, fade, filter = "kv" } = shape;
  return {
    pool: { filter },
    chooser: ({ pool, random }) => {
      const endpoints = [...pool];
      let prompts = 0;
      let count = 0;
      const others = endpoints.map(() => 0);
      const rank = (endpoint: Endpoint, tokens: number, mean: number, now: number): number => {
        const { ledger, pace, bias, index } = endpoint;
        const waiting = endpoint.waiting || 0;
        const seen = waiting + (endpoint.running || 0);
        let theirs = others[index] ?? 0;
        if (fade !== undefined) {
          theirs = mean + (theirs - mean) * Math.exp(-(now - endpoint.updateTime) / fade);
        }
        const requests = {
          apart: ledger.own + theirs,
          delta: Math.max(0, seen + ledger.own - ledger.markOwn),
          own: ledger.own,
          sample: seen,
          none: 0,
        }[load];
        const queued = load === "own" ? 0 : Math.max(0, waiting - ledger.markUnstarted);
        const prompt = queued * (count === 0 ? 512 : prompts / count);
        const read = pending ? ledger.pending + prompt : 0;
        const share = theirs === 0 ? 0 : theirs / (theirs + ledger.own);
        const factor = (slow ? pace.slow : 1) * (1 + spread * bias * share);
        return factor * (1 + (read + tokens) / budget + requests / batch) + kvPenalty(endpoint.kv);
      };
      return ({ tokens, exclude }) => {
        const now = pool.now();
        prompts += tokens;
        count++;
        for (const [i, { waiting, running, ledger }] of endpoints.entries()) {
          others[i] = Math.max(0, (waiting || 0) + (running || 0) - ledger.markOwn);
        }
        const mean = others.reduce((sum, one) => sum + one, 0) / endpoints.length;
        const ranks = new Map<string, number>();
        const note = (endpoint: Endpoint) => {
          const value = rank(endpoint, tokens, mean, now);
          ranks.set(endpoint.id, value);
          return value;
        };
        const best = pool.pick({ tokens, exclude, score: note });
        if (best === undefined || near === 0) return best?.endpoint.id;
        const limit = (ranks.get(best.endpoint.id) ?? 0) * (1 + near);
        const close = [...ranks].filter(([, value]) => value <= limit);
        return close[random.below(close.length)]?.[0];
      };
    },
  };
}

const folder = "src/sim/scenarios";
const scenarios = readdirSync(folder)
  .filter((name) => name.endsWith(".yaml"))
  .map((name): Scenario => parse(readFileSync(`${folder}/${name}`, "utf8")));

/** Every scenario under every condition. */
function* cases(): Generator<Scenario> {
  for (const scenario of scenarios) {
    for (const interval of smoke ? INTERVALS.slice(0, 1) : INTERVALS) {
      for (const routers of smoke ? [1] : ROUTERS) {
        for (const streaming of smoke ? [true] : [true, false]) {
          const traffic = scenario.traffic.map((tenant) => ({ ...tenant, streaming }));
          const duration = smoke ? "5s" : scenario.duration;
          yield { ...scenario, duration, traffic, routers, scrape: { interval } };
        }
      }
    }
  }
}

function p99(scenario: Scenario, policy: Policy, name: string): number {
  let sum = 0;
  const seeds = smoke ? [1] : SEEDS;
  for (const seed of seeds) {
    const run = new Run(resolveScenario(scenario), policy, name, seed);
    while (run.step(1_000_000));
    sum += run.report().ttftMs.p99 ?? Number.NaN;
  }
  return sum / seeds.length;
}

const all = [...cases()];
const oracle = all.map((scenario) => p99(scenario, POLICIES.oracle, "oracle"));
const isOf = (key: string, value: unknown) => (scenario: Scenario) =>
  key === "interval"
    ? scenario.scrape?.interval === value
    : key === "streaming"
      ? scenario.traffic.every((tenant) => tenant.streaming === value)
      : scenario[key as "routers" | "name"] === value;

/** One line: geometric means against the oracle over all cases, and over some of them. */
function compare(name: string, policy: Policy): Row {
  const ratios = all.map((scenario, i) => p99(scenario, policy, name) / (oracle[i] ?? 1));
  const mean = (matches: (scenario: Scenario) => boolean) => {
    const logs = ratios.flatMap((ratio, i) =>
      matches(all[i] as Scenario) ? [Math.log(ratio)] : [],
    );
    return Number(Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length).toFixed(3));
  };
  const row: Row = { shape: name, all: mean(() => true) };
  for (const interval of INTERVALS) row[interval] = mean(isOf("interval", interval));
  for (const routers of ROUTERS) row[`${routers} routers`] = mean(isOf("routers", routers));
  row.streaming = mean(isOf("streaming", true));
  row["not streaming"] = mean(isOf("streaming", false));
  const worst = ratios.indexOf(Math.max(...ratios));
  row.worst = Number((ratios[worst] ?? 0).toFixed(2));
  const { name: where, scrape, routers } = all[worst] as Scenario;
  row["worst case"] = `${where}, ${scrape?.interval}, ${routers} routers`;
  console.error(`${name.trim()}: ${row.all}`); // it takes minutes: show that it goes on
  return row;
}

const rows: Row[] = [compare("this package's pool", POLICIES.plimsoll)];
for (const [name, shape] of Object.entries(SHAPES)) rows.push(compare(name, policyOf(shape)));
for (const name of CONTESTANTS) rows.push(compare(`policy ${name}`, POLICIES[name]));
console.log(`${all.length} cases, p99 time to first token over the oracle's, geometric means`);
report("projection", rows);
