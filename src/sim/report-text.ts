// A report for people (a table, several runs side by side) and for spreadsheets (CSV of the run over
// time).

import { table } from "../text-table";
import type { Distribution, Report } from "./report";

/** One line of a table: a title and a cell per report. */
type Row = readonly [title: string, cell: (report: Report) => string];

const ROWS: readonly Row[] = [
  ["arrived", ({ arrived }) => String(arrived)],
  ["completed", ({ completed }) => String(completed)],
  ["timed out", ({ timedOut }) => String(timedOut)],
  ["rejected", ({ rejected, rejections }) => withReasons(rejected, rejections)],
  ["retries", ({ retries }) => String(retries)],
  ["TTFT mean, ms", ({ ttftMs }) => ms(ttftMs.mean)],
  ["TTFT p50 / p90", ({ ttftMs }) => pair(ttftMs)],
  ["TTFT p99", ({ ttftMs }) => ms(ttftMs.p99)],
  ["TTFT max", ({ ttftMs }) => ms(ttftMs.max)],
  ["TPOT mean, ms", ({ tpotMs }) => ms(tpotMs.mean)],
  ["TPOT p50 / p90", ({ tpotMs }) => pair(tpotMs)],
  ["TPOT p99", ({ tpotMs }) => ms(tpotMs.p99)],
  ["end to end p50 / p90, ms", ({ e2eMs }) => pair(e2eMs)],
  ["end to end p99", ({ e2eMs }) => ms(e2eMs.p99)],
  ["goodput", ({ goodput }) => `${(100 * goodput).toFixed(1)} %`],
  ["requests per s", ({ requestsPerS }) => requestsPerS.toFixed(1)],
  ["output tokens per s", ({ outputTokensPerS }) => outputTokensPerS.toFixed(0)],
  ["preempted requests", ({ preemptedRequests }) => String(preemptedRequests)],
  ["largest herd (fair share)", ({ herd }) => `${herd.size} (${herd.fairSize.toFixed(1)})`],
  ["busiest endpoint, x mean", ({ spread }) => spread.most.toFixed(2)],
];

/**
 * Reports side by side, as a table of text.
 *
 * @param titles of the columns. Default: the policies.
 */
export function reportTable(
  reports: readonly Report[],
  titles: readonly string[] = reports.map(({ policy }) => policy),
): string {
  const columns = [{ title: "" }, ...titles.map((title) => ({ title, right: true }))];
  const rows = ROWS.map(([title, cell]) => [title, ...reports.map(cell)]);
  return table(columns, rows).join("\n");
}

/** The run over time as CSV, one line per step; what was not observed is left empty. */
export function reportCsv({ series, endpoints }: Report): string {
  const columns: [string, readonly (number | null)[]][] = [
    ["time_ms", series.timesMs],
    ["saturation", series.saturation],
    ["true_saturation", series.trueSaturation],
    ["held", series.held],
    ["waiting", series.waiting],
    ["running", series.running],
    ["arrived", series.arrived],
    ["ttft_mean_ms", series.ttftMeanMs],
    ["ttft_max_ms", series.ttftMaxMs],
  ];
  for (const [i, one] of series.endpoints.entries()) {
    const id = endpoints[i]?.id ?? String(i);
    for (const key of ["score", "waiting", "running", "kv", "sent"] as const) {
      columns.push([`${id}_${key}`, one[key]]);
    }
  }
  const lines = [columns.map(([name]) => name).join(",")];
  for (let i = 0; i < series.timesMs.length; i++) {
    lines.push(columns.map(([, values]) => values[i] ?? "").join(","));
  }
  return `${lines.join("\n")}\n`;
}

function ms(value: number | null): string {
  if (value === null) return "-";
  return value >= 100 ? value.toFixed(0) : value.toFixed(1);
}

function pair({ p50, p90 }: Distribution): string {
  return `${ms(p50)} / ${ms(p90)}`;
}

function withReasons(count: number, reasons: Readonly<Record<string, number>>): string {
  const listed = Object.entries(reasons).map(([reason, n]) => `${n} ${reason}`);
  return count === 0 ? "0" : `${count} (${listed.join(", ")})`;
}
