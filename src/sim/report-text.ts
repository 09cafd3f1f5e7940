// A report for people (a table, several runs side by side) and for spreadsheets (CSV of the run over
// time).

import { table } from "../text-table";
import type { Distribution, Report } from "./report";

/** One line of a table of reports. */
export interface ReportRow {
  readonly title: string;
  readonly cell: (report: Report) => string;
  /** The figure, and which of two is better; undefined where that depends. */
  readonly value?: (report: Report) => number | null;
  readonly better?: "low" | "high";
}

type Value = (report: Report) => number | null;
const low = (title: string, value: Value, cell?: ReportRow["cell"]): ReportRow => {
  return { title, value, better: "low", cell: cell ?? ((report) => ms(value(report))) };
};
const high = (title: string, value: Value, cell: ReportRow["cell"]): ReportRow => {
  return { title, value, better: "high", cell };
};

/** The lines of every table of reports. */
const REPORT_ROWS: readonly ReportRow[] = [
  { title: "arrived", cell: ({ arrived }) => String(arrived) },
  { title: "completed", cell: ({ completed }) => String(completed) },
  low(
    "timed out",
    (r) => r.timedOut,
    ({ timedOut }) => String(timedOut),
  ),
  low(
    "rejected",
    (r) => r.rejected,
    (r) => withReasons(r.rejected, r.rejections),
  ),
  { title: "retries", cell: ({ retries }) => String(retries) },
  low("TTFT mean, ms", ({ ttftMs }) => ttftMs.mean),
  { title: "TTFT p50 / p90", cell: ({ ttftMs }) => pair(ttftMs) },
  low("TTFT p99", ({ ttftMs }) => ttftMs.p99),
  low("TTFT max", ({ ttftMs }) => ttftMs.max),
  low("TPOT mean, ms", ({ tpotMs }) => tpotMs.mean),
  { title: "TPOT p50 / p90", cell: ({ tpotMs }) => pair(tpotMs) },
  low("TPOT p99", ({ tpotMs }) => tpotMs.p99),
  { title: "end to end p50 / p90, ms", cell: ({ e2eMs }) => pair(e2eMs) },
  low("end to end p99", ({ e2eMs }) => e2eMs.p99),
  high(
    "goodput",
    (r) => r.goodput,
    ({ goodput }) => `${(100 * goodput).toFixed(1)} %`,
  ),
  high(
    "requests per s",
    (r) => r.requestsPerS,
    (r) => r.requestsPerS.toFixed(1),
  ),
  high(
    "output tokens per s",
    (r) => r.outputTokensPerS,
    (r) => r.outputTokensPerS.toFixed(0),
  ),
  low(
    "preempted requests",
    (r) => r.preemptedRequests,
    (r) => String(r.preemptedRequests),
  ),
  low(
    "largest herd (fair share)",
    ({ herd }) => herd.size,
    ({ herd }) => {
      return `${herd.size} (${herd.fairSize.toFixed(1)})`;
    },
  ),
  { title: "busiest endpoint, x mean", cell: ({ spread }) => spread.most.toFixed(2) },
];

/** The lines of a table of these reports, for text and for pages: with several tenants, theirs too. */
export function reportRows(reports: readonly Report[]): readonly ReportRow[] {
  const names = reports[0]?.tenants.map(({ name }) => name) ?? [];
  if (names.length < 2) return REPORT_ROWS;
  const ofTenants = names.flatMap((name, i) => [
    low(`${name}: TTFT p50, ms`, ({ tenants }) => tenants[i]?.ttftMs.p50 ?? null),
    low(`${name}: TTFT p99`, ({ tenants }) => tenants[i]?.ttftMs.p99 ?? null),
    low(`${name}: end to end p99`, ({ tenants }) => tenants[i]?.e2eMs.p99 ?? null),
  ]);
  return [...REPORT_ROWS, ...ofTenants];
}

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
  const rows = reportRows(reports).map(({ title, cell }) => [title, ...reports.map(cell)]);
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
