// plimsoll sim: runs scenarios, shows how far they are, and prints what came of them.

import { readFile, writeFile } from "node:fs/promises";
import { ConfigError } from "../errors";
import { POLICY_NAMES } from "../sim/policy-names";
import { PRESETS } from "../sim/presets";
import type { Report } from "../sim/report";
import { reportCsv, reportTable } from "../sim/report-text";
import { SCENARIO_NAMES, SCENARIOS } from "../sim/scenarios";
import { simulate } from "../sim/simulate";
import { table } from "../text-table";
import { parseYaml, printFaults } from "../yaml-file";
import { UsageError } from "./load-config";
import { embedReports } from "./sim-html";
import {
  asScenario,
  readScenarioText,
  readSweep,
  readTree,
  type SweepValue,
  type Tree,
  withTrace,
  withValue,
} from "./sim-scenario";
import { clean } from "./text";

/** The words of the command. */
export interface SimFlags {
  readonly policy?: string;
  readonly compare?: string;
  readonly sweep?: string;
  readonly set?: string[];
  readonly trace?: string;
  readonly skipBad?: boolean;
  readonly timeScale?: string;
  readonly seed?: string;
  readonly json?: boolean;
  readonly csv?: string;
  readonly html?: string;
  readonly print?: boolean;
  readonly list?: boolean;
}

/** One run that is asked for. */
interface Job {
  readonly title: string;
  readonly tree: Tree;
  readonly swept: SweepValue | undefined;
}

/** Runs the command. Resolves to its exit code. */
export async function sim(name: string | undefined, flags: SimFlags): Promise<number> {
  if (flags.list) {
    process.stdout.write(`${listAll()}\n`);
    return 0;
  }
  const { text, file } = await readScenarioText(name ?? "thundering-herd");
  if (flags.print) {
    process.stdout.write(text);
    return 0;
  }
  const seed = Number(flags.seed ?? 1);
  if (!Number.isSafeInteger(seed)) {
    throw new UsageError(`--seed takes an integer, got ${JSON.stringify(flags.seed)}`);
  }
  let tree = readTree(text, file, flags.set ?? []);
  if (flags.trace !== undefined) {
    const timeScale = Number(flags.timeScale ?? 1);
    const keepDuration = (flags.set ?? []).some((one) => one.startsWith("duration="));
    const skipBad = flags.skipBad === true;
    const read = await withTrace(tree, flags.trace, { skipBad, timeScale, keepDuration });
    tree = read.tree;
    noteTrace(flags.trace, read.trace);
  }
  const jobs = listJobs(tree, flags);
  const reports = await runAll(jobs, seed, (error) => explain(error, text, file));
  await write(reports, jobs, flags, seed);
  return 0;
}

/** Every value of the sweep with every policy of the comparison. */
function listJobs(tree: Tree, flags: SimFlags): Job[] {
  const policies = flags.compare?.split(",") ?? (flags.policy ? [flags.policy] : [undefined]);
  for (const policy of policies) {
    if (policy === undefined || POLICY_NAMES.some((name) => name === policy.trim())) continue;
    throw new UsageError(`there is no policy ${policy}: there are ${POLICY_NAMES.join(", ")}`);
  }
  const values = flags.sweep === undefined ? [undefined] : readSweep(flags.sweep);
  return values.flatMap((swept) =>
    policies.map((policy) => {
      const policed = policy === undefined ? tree : { ...tree, policy: policy.trim() };
      const at = swept === undefined ? policed : withValue(policed, swept.path, swept.value);
      const title = String(at.policy ?? "plimsoll");
      return { title, tree: at, swept };
    }),
  );
}

async function runAll(
  jobs: readonly Job[],
  seed: number,
  onError: (error: unknown) => never,
): Promise<Report[]> {
  const bar = new ProgressBar(jobs.length);
  const reports: Report[] = [];
  for (const { tree } of jobs) {
    try {
      const onProgress = ({ share }: { share: number }) => bar.draw(reports.length, share);
      reports.push(await simulate(asScenario(tree), { seed, onProgress }));
    } catch (error) {
      bar.clear();
      onError(error);
    }
  }
  bar.clear();
  return reports;
}

async function write(
  reports: readonly Report[],
  jobs: readonly Job[],
  flags: SimFlags,
  seed: number,
): Promise<void> {
  const [first] = reports;
  if (first === undefined) return;
  if (flags.csv !== undefined) {
    if (reports.length > 1) throw new UsageError("--csv writes one run: leave out the others");
    await writeFile(flags.csv, reportCsv(first));
  }
  if (flags.html !== undefined) {
    const page = await readFile(new URL("./web/sim.html", import.meta.url), "utf8");
    const titles = jobs.map(({ title, swept }) =>
      swept === undefined ? title : `${title}, ${swept.path}=${String(swept.value)}`,
    );
    const scenario = jobs[0]?.tree ?? {};
    await writeFile(flags.html, embedReports(page, { reports, scenario, titles }));
  }
  if (flags.json) {
    const all = reports.map((report, i) => {
      const swept = jobs[i]?.swept;
      return swept === undefined ? report : { swept, ...report };
    });
    process.stdout.write(`${JSON.stringify(all.length === 1 ? all[0] : all)}\n`);
    return;
  }
  const { scenario, durationMs, routers, scrapeIntervalMs } = first;
  const header =
    `${clean(scenario)}: ${durationMs / 1000} s of traffic, ${routers} router${routers > 1 ? "s" : ""}, ` +
    `scrape every ${scrapeIntervalMs} ms, seed ${seed}\n` +
    `${[...new Set(first.endpoints.map(({ kind }) => kind))].map((kind) => `engines: ${kind}`).join("\n")}\n\n`;
  const titles = jobs.map(({ title }) => title);
  const body = flags.sweep === undefined ? reportTable(reports, titles) : sweepTable(reports, jobs);
  process.stdout.write(`${header}${body}\n`);
}

/** One line per run: how the main figures follow the value. */
function sweepTable(reports: readonly Report[], jobs: readonly Job[]): string {
  const ms = (value: number | null) => (value === null ? "-" : value.toFixed(0));
  const columns = [
    "TTFT p50, ms",
    "TTFT p99",
    "end to end p99",
    "goodput",
    "req/s",
    "lost",
    "preempted",
  ];
  const rows = reports.map((report, i) => [
    String(jobs[i]?.swept?.value ?? ""),
    jobs[i]?.title ?? "",
    ms(report.ttftMs.p50),
    ms(report.ttftMs.p99),
    ms(report.e2eMs.p99),
    `${(100 * report.goodput).toFixed(1)} %`,
    report.requestsPerS.toFixed(1),
    String(report.rejected + report.timedOut),
    String(report.preemptedRequests),
  ]);
  const titles = [jobs[0]?.swept?.path ?? "", "policy"];
  return table(
    [...titles.map((title) => ({ title })), ...columns.map((title) => ({ title, right: true }))],
    rows,
  ).join("\n");
}

/** What is built in. */
function listAll(): string {
  const scenarios = SCENARIO_NAMES.map((name) => {
    const { duration, routers = 1, endpoints = [] } = SCENARIOS[name] ?? {};
    const count = endpoints.reduce((sum, one) => sum + (one.count ?? 1), 0);
    return [name, `${duration}`, `${count} endpoints`, `${routers} router`];
  });
  const presets = Object.entries(PRESETS).map(([name, preset]) => [
    name,
    preset.kind,
    ...[preset.a, preset.d, preset.c, preset.p].map(String),
    String(preset.kvBlocks),
  ]);
  const titles = (...names: string[]) => names.map((title) => ({ title }));
  return [
    ...table(titles("SCENARIO", "DURATION", "", ""), scenarios),
    "",
    "A step of an engine takes a + d * kvTokens / 1000 + c * batch + p * promptTokens ms.",
    ...table(titles("PRESET", "KIND", "a", "d", "c", "p", "KV BLOCKS"), presets),
    "",
    `policies: ${POLICY_NAMES.join(", ")}`,
  ].join("\n");
}

/** Faults of the scenario with their place in the file, where they stand in it. */
function explain(error: unknown, text: string, file: string): never {
  if (!(error instanceof ConfigError)) throw error;
  const parsed = parseYaml(text);
  if (parsed.faults !== undefined) throw error;
  throw new UsageError(printFaults(file, parsed.place(error.faults)));
}

function noteTrace(
  file: string,
  trace: { requests: readonly unknown[]; skipped: number; outOfOrder: number; format: string },
): void {
  const { requests, skipped, outOfOrder, format } = trace;
  const more = [
    skipped > 0 ? `${skipped} bad lines left out` : "",
    outOfOrder > 0 ? `${outOfOrder} out of order` : "",
  ].filter((one) => one !== "");
  const notes = more.length > 0 ? ` (${more.join(", ")})` : "";
  process.stderr.write(`${clean(file)}: ${requests.length} requests, ${format}${notes}\n`);
}

/** A bar on the standard error, where that is a terminal. */
class ProgressBar {
  static readonly #WIDTH = 30;
  readonly #runs: number;
  #drawn = "";

  constructor(runs: number) {
    this.#runs = runs;
  }

  draw(done: number, share: number): void {
    if (process.stderr.isTTY !== true) return;
    const all = (done + share) / this.#runs;
    const full = Math.round(all * ProgressBar.#WIDTH);
    const run = this.#runs > 1 ? ` run ${Math.min(done + 1, this.#runs)} of ${this.#runs}` : "";
    const bar = "█".repeat(full) + "░".repeat(ProgressBar.#WIDTH - full);
    const text = `${bar} ${Math.floor(100 * all)} %${run}`;
    if (text === this.#drawn) return;
    this.#drawn = text;
    process.stderr.write(`\r${text}`);
  }

  clear(): void {
    if (this.#drawn !== "") process.stderr.write(`\r${" ".repeat(this.#drawn.length)}\r`);
    this.#drawn = "";
  }
}
