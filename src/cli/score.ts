// plimsoll score: saved pages, or a recording, judged once.

import { readFile } from "node:fs/promises";
import { printConfig } from "../config";
import { formatDuration } from "../duration";
import { EndpointPool } from "../pool";
import { readExposition } from "../telemetry/exposition";
import { table } from "../text-table";
import type { FileConfig } from "./config-file";
import { readInput } from "./input";
import { type ReplayReport, replay } from "./replay";
import { clean, paintFor, sparkline } from "./text";
import { type About, render } from "./view";

/** Longer than Go notation can say; about 285 years. */
const LONGEST_MS = 9e12;

/** What the command line asked for. */
export interface ScoreOptions {
  readonly config: FileConfig;
  readonly json: boolean;
}

/** Judges saved pages, one endpoint each; `-` is standard input. Resolves to the exit code. */
export async function scorePages(files: readonly string[], options: ScoreOptions): Promise<number> {
  const pool = new EndpointPool(options.config.detector, { clock: () => 0 });
  const about = new Map<string, About & { readonly findings: readonly string[] }>();
  for (const file of files) {
    const page = file === "-" ? await readInput() : await readFile(file);
    const { engine, sample, findings } = readExposition(page, options.config.engine);
    pool.add(file);
    pool.report(file, sample);
    const messages = findings.map(({ message }) => message);
    about.set(file, { engine, error: messages[0], findings: messages });
  }
  const snapshot = pool.snapshot();
  if (options.json) {
    const endpoints = snapshot.endpoints.map((endpoint) => ({
      ...endpoint,
      engine: about.get(endpoint.id)?.engine ?? null,
      findings: about.get(endpoint.id)?.findings ?? [],
    }));
    process.stdout.write(`${JSON.stringify({ ...snapshot, endpoints })}\n`);
  } else {
    const lines = render(snapshot, {
      paint: paintFor(process.stdout),
      width: process.stdout.columns ?? Number.POSITIVE_INFINITY,
      height: Number.POSITIVE_INFINITY,
      about: (id) => about.get(id) ?? {},
    });
    process.stdout.write(`${lines.join("\n")}\n`);
  }
  const isUnread = snapshot.endpoints.some(({ state }) => state === "unusable");
  return snapshot.saturation >= 1 || snapshot.failedOpen || isUnread ? 1 : 0;
}

/** Judges a recording. Resolves to the exit code. */
export async function scoreRecording(file: string, options: ScoreOptions): Promise<number> {
  const isLive = process.stderr.isTTY === true;
  const report = await replay(file, options.config, (readings) => {
    if (isLive) process.stderr.write(`\r${readings} readings`);
  });
  if (isLive) process.stderr.write("\r\x1b[K");
  if (options.json) process.stdout.write(`${JSON.stringify(report)}\n`);
  else process.stdout.write(`${printReplay(report).join("\n")}\n`);
  return report.saturatedShare > 0 || report.badLines.length > 0 || report.readings === 0 ? 1 : 0;
}

function printReplay(report: ReplayReport): string[] {
  const { saturation, config } = report;
  const percent = (share: number) => `${(share * 100).toFixed(1)}%`;
  const { mean, p50, p90, p99, max, overTime } = saturation;
  const values = Object.entries({ mean, p50, p90, p99, max });
  const settings = Object.entries(printConfig(config));
  return [
    `${report.readings} readings of ${report.endpoints.length} endpoints over ` +
      `${formatDuration(Math.min(Math.round(report.durationMs), LONGEST_MS))}, ${report.unusableReadings} unusable`,
    `judged with ${settings.map(([key, value]) => `${key}=${value}`).join(" ")}`,
    "",
    `saturation  ${sparkline(overTime, 1.5)}`,
    `            ${values.map(([name, value]) => `${name} ${value.toFixed(2)}`).join("  ")}`,
    `saturated   ${percent(report.saturatedShare)} of the time (saturation >= 1)`,
    `failed open ${percent(report.failedOpenShare)} of the time (nobody passed)`,
    "",
    ...table(
      [
        { title: "ENDPOINT" },
        { title: "READINGS", right: true },
        { title: "CANDIDATE", right: true },
        { title: "NOT FRESH", right: true },
      ],
      report.endpoints.map(({ id, readings, candidateShare, notFreshShare }) => [
        clean(id),
        String(readings),
        percent(candidateShare),
        percent(notFreshShare),
      ]),
    ),
    ...report.badLines.map(({ line, fault }) => `${report.file}:${line}: ${fault}`),
  ];
}
