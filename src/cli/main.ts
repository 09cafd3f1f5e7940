#!/usr/bin/env node
// The command `plimsoll`. This file says what there is to say; each command has a file of its own.

import { readFile } from "node:fs/promises";
import { Command, CommanderError, Option } from "commander";
import { parse } from "yaml";
import { printConfig, resolveConfig } from "../config";
import { PlimsollError } from "../errors";
import { ENGINES, type EngineName } from "../telemetry/engines";
import { type FileConfig, printScrape, readConfigText } from "./config-file";
import { scorePages, scoreRecording } from "./score";
import { type SimFlags, sim } from "./sim";
import { SimUsageError } from "./sim-scenario";
import { watch } from "./watch";
import { printFaults } from "./yaml-file";

/** Fine, something was found, or the command line was wrong. */
const EXIT = { fine: 0, finding: 1, usage: 2 } as const;

/** A mistake in the command line, or in a file that it names. */
class UsageError extends Error {}

interface Flags {
  config?: string;
  engine?: EngineName;
  interval?: string;
  timeout?: string;
  set?: string[];
  json?: boolean;
  once?: boolean;
  demo?: boolean;
  record?: string;
  replay?: string;
}

const engineOption = () =>
  new Option("--engine <name>", "which engine it is (default: recognised)").choices(
    ENGINES.map(({ name }) => name),
  );
const configOption = () =>
  new Option("--config <file>", "YAML or JSON, see: plimsoll check --help");
const setOption = () =>
  new Option(
    "--set <key=value>",
    "one option of the config, such as headroom=0.2; may be repeated",
  ).argParser((text: string, before: string[] = []) => [...before, text]);
const jsonOption = () => new Option("--json", "JSON instead of text");

function program(setExit: (code: number) => void): Command {
  const plimsoll = new Command("plimsoll")
    .description(
      "How saturated is a pool of LLM model servers, and which of them may take the next request?",
    )
    .version(VERSION)
    .exitOverride()
    .showHelpAfterError("(add --help for what there is)")
    .addHelpText("after", OVERVIEW);
  plimsoll
    .command("watch [urls...]")
    .description("a live table of the endpoints at these addresses")
    .addOption(engineOption())
    .option("--interval <duration>", "time between two readings (default: 50ms)")
    .option("--timeout <duration>", "how long a reading may take (default: 1s)")
    .addOption(configOption())
    .addOption(setOption())
    .option("--once", "one reading of each endpoint, then the table")
    .option("--record <file>", "write every sample to a file, for: plimsoll score --replay")
    .option("--demo", "watch a fleet of stand-ins that this command starts on loopback")
    .addOption(jsonOption())
    .addHelpText("after", WATCH_HELP)
    .action(async (urls: string[], flags: Flags) => setExit(await runWatch(urls, flags)));
  plimsoll
    .command("score [files...]")
    .description("judge saved metrics pages, or a recording")
    .addOption(engineOption())
    .option("--replay <file>", "judge a recording made by: plimsoll watch --record")
    .addOption(configOption())
    .addOption(setOption())
    .addOption(jsonOption())
    .addHelpText("after", SCORE_HELP)
    .action(async (files: string[], flags: Flags) => setExit(await runScore(files, flags)));
  plimsoll
    .command("check <config>")
    .description("all faults of a config file, or what it resolves to")
    .addOption(jsonOption())
    .addHelpText("after", CHECK_HELP)
    .action(async (file: string, flags: Flags) => setExit(await runCheck(file, flags)));
  plimsoll
    .command("sim [scenario]")
    .description("simulate engines, traffic and routers: a built-in scenario, or a YAML file")
    .option("--policy <name>", "how routers choose (default: plimsoll)")
    .option("--compare <names>", "several policies on the same traffic, such as original,plimsoll")
    .option(
      "--sweep <path=values>",
      "a run per value: queueDepthThreshold=2..20, scrape.interval=50ms,1s",
    )
    .addOption(setOption())
    .option(
      "--trace <file>",
      "requests of an Azure, BurstGPT or Mooncake trace, for the first tenant",
    )
    .option("--time-scale <factor>", "times of the trace are multiplied by this (default: 1)")
    .option("--skip-bad", "leave out bad lines of the trace, and count them")
    .option("--seed <integer>", "the same seed gives the same figures (default: 1)")
    .addOption(jsonOption())
    .option("--csv <file>", "the run over time, for spreadsheets")
    .option("--html <file>", "one self-contained page with the charts")
    .option("--print", "print the scenario instead of running it")
    .option("--list", "built-in scenarios, engine presets and policies")
    .addHelpText("after", SIM_HELP)
    .action(async (name: string | undefined, flags: SimFlags) => setExit(await sim(name, flags)));
  return plimsoll;
}

const OVERVIEW = `
Examples:
  plimsoll watch --demo                        see it work, without any server
  plimsoll watch http://10.0.0.7:8000 http://10.0.0.8:8000
  plimsoll score metrics-*.txt                 judge pages saved with curl
  plimsoll check plimsoll.yaml                 find the faults of a config
  plimsoll sim --compare original,plimsoll     what a policy does to latency

Exit codes: 0 fine, 1 something was found (saturated, unreadable, faulty), 2 wrong usage.`;

const WATCH_HELP = `
A URL without a path is read at its engine's usual one (/metrics for most).
The bar of LOAD has its load line at a score of 1. Press q to quit.
Without a terminal, one line per second is printed; with --json, one JSON value.
With --once, the exit code is 1 when the pool is saturated, nobody passes, or an
endpoint cannot be read.

Examples:
  plimsoll watch --demo
  plimsoll watch http://10.0.0.7:8000 --interval 200ms --set queueDepthThreshold=8
  plimsoll watch --config plimsoll.yaml --record monday.jsonl
  plimsoll watch http://10.0.0.7:8000 --once --json`;

const SCORE_HELP = `
Each file is the page of one endpoint; - is standard input.
With --replay, the exit code is 1 when the pool was saturated at any time.

Examples:
  curl -s http://10.0.0.7:8000/metrics | plimsoll score -
  plimsoll score --replay monday.jsonl --set queueDepthThreshold=8 --set headroom=0.2`;

const CHECK_HELP = `
A config has the options of the detector at the top, and what to read:

  queueDepthThreshold: 5            # Q, requests
  kvCacheUtilThreshold: 0.8         # K, a fraction
  metricsStalenessThreshold: 200ms  # S (default: three times the interval)
  headroom: 0                       # a fraction
  stalenessPolicy: saturated        # saturated, ignore, hold
  holdFor: 2s                       # for hold
  aggregation: mean                 # mean, weighted, max, capped
  interval: 50ms
  timeout: 1s
  engine: vllm                      # default: recognised
  endpoints:
    - http://10.0.0.7:8000
    - { url: "http://10.0.0.8:8000", weight: 2, queueDepthThreshold: 10 }

Faults are printed as FILE:LINE:COLUMN: what is wrong, and exit with 1.`;

const SIM_HELP = `
Without a scenario, thundering-herd runs. --set and --sweep take paths of the scenario,
and the detector's options by their own names.

Examples:
  plimsoll sim --list
  plimsoll sim mixed-gpus --compare round-robin,least-outstanding,plimsoll
  plimsoll sim thundering-herd --policy original --sweep scrape.interval=50ms,200ms,1s,5s
  plimsoll sim kv-pressure --sweep kvCacheUtilThreshold=0.5..1:0.1
  plimsoll sim --print two-tenants > mine.yaml && plimsoll sim mine.yaml --html report.html
  plimsoll sim --trace AzureLLMInferenceTrace_conv.csv --set endpoints.0.count=2`;

async function runWatch(urls: string[], flags: Flags): Promise<number> {
  const config = await loadConfig(flags, urls);
  const isDemo = flags.demo === true;
  if (config.endpoints.length === 0 && !isDemo) {
    throw new UsageError("watch needs an address, --config with endpoints, or --demo");
  }
  const { once = false, json = false, record } = flags;
  return watch({ config, once, json, record, demo: isDemo });
}

async function runScore(files: string[], flags: Flags): Promise<number> {
  const config = await loadConfig(flags, []);
  const options = { config, json: flags.json === true };
  if (flags.replay !== undefined) {
    if (files.length > 0) throw new UsageError("score takes files or --replay, not both");
    return scoreRecording(flags.replay, options);
  }
  if (files.length === 0)
    throw new UsageError("score needs a file, - for standard input, or --replay");
  return scorePages(files, options);
}

async function runCheck(file: string, flags: Flags): Promise<number> {
  const { config, faults } = readConfigText(await readFile(file, "utf8"));
  const isJson = flags.json === true;
  if (config === undefined) {
    process.stdout.write(
      `${isJson ? JSON.stringify({ file, faults }) : printFaults(file, faults)}\n`,
    );
    return EXIT.finding;
  }
  const resolved = {
    ...printConfig(resolveConfig(config.detector, { warn: warn })),
    ...printScrape(config),
  };
  if (isJson) process.stdout.write(`${JSON.stringify({ file, faults, config: resolved })}\n`);
  else {
    const { stringify } = await import("yaml");
    process.stdout.write(
      `# ${file}: no faults; every option with its value\n${stringify(resolved)}`,
    );
  }
  return EXIT.fine;
}

/** The config file, then `--set`, then the other flags: the later one wins. */
async function loadConfig(flags: Flags, urls: readonly string[]): Promise<FileConfig> {
  const source = flags.config === undefined ? "" : await readFile(flags.config, "utf8");
  const file = readConfigText(source);
  if (file.config === undefined) {
    throw new UsageError(printFaults(flags.config ?? "config", file.faults));
  }
  const overrides = Object.fromEntries((flags.set ?? []).map(readSetting));
  const { interval, timeout, engine } = flags;
  const given = { interval, timeout, engine };
  for (const [key, value] of Object.entries(given)) if (value !== undefined) overrides[key] = value;
  const endpoints = urls.length > 0 ? { endpoints: urls } : {};
  const more = readConfigText(JSON.stringify({ ...overrides, ...endpoints }));
  if (more.config === undefined) {
    throw new UsageError(more.faults.map(({ path, rule }) => `${path}: ${rule}`).join("\n"));
  }
  return {
    detector: { ...file.config.detector, ...more.config.detector },
    endpoints: [...file.config.endpoints, ...more.config.endpoints],
    interval: more.config.interval ?? file.config.interval,
    timeout: more.config.timeout ?? file.config.timeout,
    engine: more.config.engine ?? file.config.engine,
  };
}

function readSetting(text: string): [string, unknown] {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageError(`--set takes key=value, got ${JSON.stringify(text)}`);
  try {
    return [text.slice(0, at), parse(text.slice(at + 1))];
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
    throw new UsageError(`--set ${text}: the value is no YAML (${why})`);
  }
}

function warn(text: string): void {
  process.stderr.write(`plimsoll: ${text}\n`);
}

/** Runs one command line. Resolves to the exit code; prints, and never throws. */
export async function main(argv: readonly string[]): Promise<number> {
  let code: number = EXIT.fine;
  try {
    await program((result) => {
      code = result;
    }).parseAsync(argv, { from: "user" });
    return code;
  } catch (error) {
    // Commander has printed its own message by now.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.usage;
    if (error instanceof UsageError || error instanceof SimUsageError || isFileError(error)) {
      warn(error.message);
      return EXIT.usage;
    }
    if (!(error instanceof PlimsollError)) throw error;
    warn(error.message);
    return EXIT.finding;
  }
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error;
}

declare const VERSION: string;

// A reader that has seen enough, such as head, is no fault.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(EXIT.fine);
});
process.exitCode = await main(process.argv.slice(2));
