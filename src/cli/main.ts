#!/usr/bin/env node
// The command `plimsoll`. This file says what there is to say; each command has a file of its own.

import { readFile } from "node:fs/promises";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { printConfig, resolveConfig } from "../config";
import { PlimsollError } from "../errors";
import { ENGINES } from "../telemetry/engines";
import { printFaults } from "../yaml-file";
import { type FileConfig, printSettings, readConfigText } from "./config-file";
import { checkEpp } from "./epp/check";
import { CHECK_HELP, OVERVIEW, SCORE_HELP, SERVE_HELP, SIM_HELP, WATCH_HELP } from "./help";
import { type ConfigFlags, loadConfig, UsageError } from "./load-config";
import { scorePages, scoreRecording } from "./score";
import { serve } from "./serve";
import { serveDemo } from "./serve-demo";
import { type SimFlags, sim } from "./sim";
import { watch } from "./watch";

/** Fine, something was found, or the command line was wrong. */
const EXIT = { fine: 0, finding: 1, usage: 2 } as const;

interface Flags extends ConfigFlags {
  json?: boolean;
  once?: boolean;
  demo?: boolean;
  record?: string;
  replay?: string;
  host?: string;
  port?: number;
  adminPort?: number;
  fromEpp?: boolean;
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
const portOption = (flags: string, text: string) =>
  new Option(flags, text).argParser((given: string) => {
    if (/^\d{1,5}$/.test(given) && Number(given) <= 65_535) return Number(given);
    throw new InvalidArgumentError("It must be a port, 0 to 65535.");
  });
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
    .command("serve [urls...]")
    .description("a reverse proxy in front of the endpoints at these addresses")
    .addOption(configOption())
    .addOption(engineOption())
    .addOption(setOption())
    .option("--host <address>", "where clients connect (default: 0.0.0.0)")
    .addOption(portOption("--port <number>", "default: 8080; 0 takes a free one"))
    .addOption(portOption("--admin-port <number>", "metrics and health (default: 8081)"))
    .option("--demo", "serve simulated engines, under a load, that this command starts on loopback")
    .addHelpText("after", SERVE_HELP)
    .action(async (urls: string[], flags: Flags) => setExit(await runServe(urls, flags)));
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
    .option("--from-epp", "the file is an EPP's (EndpointPickerConfig): print what it is here")
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

async function runWatch(urls: string[], flags: Flags): Promise<number> {
  const config = await loadConfig(flags, urls);
  const isDemo = flags.demo === true;
  if (config.endpoints.length === 0 && !isDemo) {
    throw new UsageError("watch needs an address, --config with endpoints, or --demo");
  }
  const { once = false, json = false, record } = flags;
  return watch({ config, once, json, record, demo: isDemo });
}

async function runServe(urls: string[], flags: Flags): Promise<number> {
  const readAgain = async () => withPorts(await loadConfig(flags, urls, process.env), flags);
  const config = await readAgain();
  if (flags.demo === true) {
    const fixed = { port: flags.port !== undefined, adminPort: flags.adminPort !== undefined };
    // Nobody else should find a demo, unless they are meant to.
    const local = withPorts(config, { ...flags, host: flags.host ?? "127.0.0.1" });
    return serveDemo({ config: local, fixed, warn });
  }
  const { endpoints, endpointsFile, dns } = config.settings;
  if (endpoints.length === 0 && endpointsFile === undefined && dns.length === 0) {
    throw new UsageError("serve needs an address, --config with endpoints, or --demo");
  }
  return serve({ config, readAgain, warn });
}

function withPorts(config: FileConfig, { host, port, adminPort }: Flags): FileConfig {
  const { settings, value } = config;
  const listen = { host: host ?? settings.listen.host, port: port ?? settings.listen.port };
  const admin =
    adminPort === undefined
      ? settings.admin
      : { ...(settings.admin ?? { host: "127.0.0.1" }), port: adminPort };
  return {
    ...config,
    settings: { ...settings, listen, admin },
    value: { ...value, listen, admin: admin ?? false },
  };
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
  const isJson = flags.json === true;
  if (flags.fromEpp) return checkEpp(file, isJson);
  const { config, faults } = readConfigText(await readFile(file, "utf8"));
  if (config === undefined) {
    process.stdout.write(
      `${isJson ? JSON.stringify({ file, faults }) : printFaults(file, faults)}\n`,
    );
    return EXIT.finding;
  }
  const resolved = {
    ...printConfig(resolveConfig(config.detector, { warn: warn })),
    ...printSettings(config),
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
    if (error instanceof UsageError || isFileError(error)) {
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
