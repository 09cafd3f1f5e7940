// What a command is configured with: the config file, `--set`, and the flags and addresses of the command line.

import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import type { Environment } from "../router/secrets";
import type { EngineName } from "../telemetry/engines";
import { printFaults } from "../yaml-file";
import { type FileConfig, readConfigText } from "./config-file";

/** A mistake in the command line, or in a file that it names. */
export class UsageError extends Error {}

/** Flags that say something of the config. */
export interface ConfigFlags {
  readonly config?: string;
  readonly engine?: EngineName;
  readonly interval?: string;
  readonly timeout?: string;
  readonly set?: string[];
}

/**
 * The config file, then `--set`, then the other flags: the later one wins.
 *
 * Rejects with UsageError with every fault.
 */
export async function loadConfig(
  flags: ConfigFlags,
  urls: readonly string[],
  environment: Environment = process.env,
): Promise<FileConfig> {
  const source = flags.config === undefined ? "{}" : await readFile(flags.config, "utf8");
  const file = readConfigText(source, environment);
  if (file.config === undefined) {
    throw new UsageError(printFaults(flags.config ?? "config", file.faults));
  }
  const overrides = Object.fromEntries((flags.set ?? []).map(readSetting));
  const { interval, timeout, engine } = flags;
  const given = { interval, timeout, engine };
  for (const [key, value] of Object.entries(given)) if (value !== undefined) overrides[key] = value;
  const endpoints = urls.length > 0 ? { endpoints: urls } : {};
  const more = readConfigText(JSON.stringify({ ...overrides, ...endpoints }), environment);
  if (more.config === undefined) {
    throw new UsageError(more.faults.map(({ path, rule }) => `${path}: ${rule}`).join("\n"));
  }
  const own: Record<string, unknown> = { ...file.config.value };
  const before = Array.isArray(own.endpoints) ? own.endpoints : [];
  const value = { ...own, ...overrides, endpoints: [...before, ...urls] };
  const merged = readConfigText(JSON.stringify(value), environment);
  if (merged.config === undefined) {
    throw new UsageError(merged.faults.map(({ path, rule }) => `${path}: ${rule}`).join("\n"));
  }
  return merged.config;
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
