// A pool as lines of text: the saturation, its history, and one row per endpoint. Pure; whoever calls
// it decides where the lines go.

import { formatDuration } from "../duration";
import type { EndpointSnapshot, PoolSnapshot } from "../snapshot";
import { table } from "../text-table";
import { clean, clip, type Paint, sparkline } from "./text";

/** What the view needs besides the pool. */
export interface ViewOptions {
  readonly paint: Paint;
  /** Columns of the terminal. */
  readonly width: number;
  /** Rows of the terminal; endpoints that do not fit are counted. Infinity: all. */
  readonly height: number;
  /** Saturation of the past, oldest first. */
  readonly history?: readonly number[] | undefined;
  /** What is known of an endpoint besides its snapshot. */
  readonly about?: ((id: string) => About) | undefined;
  /** Last line. */
  readonly footer?: string | undefined;
}

/** What its reader knows of an endpoint. */
export interface About {
  readonly engine?: string | undefined;
  /** Why the last reading failed. */
  readonly error?: string | undefined;
}

const BAR_WIDTH = 12;
/** A full bar is a score of 1.5, so that the load line at 1 stands at two thirds. */
const BAR_TOP = 1.5;
const COLUMNS = [
  { title: "ENDPOINT" },
  { title: "ENGINE" },
  { title: "WAIT", right: true },
  { title: "RUN", right: true },
  { title: "KV", right: true },
  { title: "AGE", right: true },
  { title: "SCORE", right: true },
  { title: "LOAD".padEnd(BAR_WIDTH) },
  { title: "CANDIDATE" },
];
/** Columns that go first when the terminal is narrow. */
const LEAST = [7, 3, 5, 1];

/** The whole picture. */
export function render(snapshot: PoolSnapshot, options: ViewOptions): string[] {
  const { paint, width, height, history, footer } = options;
  const head = [headline(snapshot, paint, width)];
  if (history !== undefined) {
    const room = Math.max(10, width - 24);
    head.push(paint("dim", clip(`history ${sparkline(history.slice(-room), 1.5)}`, width)));
  }
  const tail = footer === undefined ? [] : [paint("dim", clip(footer, width))];
  const room = Math.max(1, height - head.length - tail.length - 4);
  const shown = snapshot.endpoints.slice(0, room);
  const hidden = snapshot.endpoints.length - shown.length;
  const rows = endpointTable(shown, options);
  if (hidden > 0) rows.push(paint("dim", `and ${hidden} more that do not fit`));
  return [...head, "", ...rows, ...(tail.length > 0 ? ["", ...tail] : [])];
}

/** Saturation, aggregates and counts in one line. */
export function headline(snapshot: PoolSnapshot, paint: Paint, width: number): string {
  const { saturation, aggregation, endpoints, candidates, stale, unusable, failedOpen } = snapshot;
  const style = saturation >= 1 ? "red" : saturation >= 0.8 ? "yellow" : "green";
  const gate = failedOpen ? "  NOBODY PASSES: failed open" : "";
  const first = `saturation ${formatScore(saturation)}`;
  const others = (["mean", "capped", "weighted", "max"] as const)
    .filter((name) => name !== aggregation)
    .map((name) => `${name} ${formatScore(snapshot[name])}`)
    .join("  ");
  const counts = `${candidates}/${endpoints.length} candidates  ${stale} stale  ${unusable} unusable`;
  const rest = clip(` (${aggregation})  ${counts}${gate}  ${others}`, width - first.length);
  return paint("bold", paint(style, first)) + rest;
}

function endpointTable(endpoints: readonly EndpointSnapshot[], options: ViewOptions): string[] {
  const { paint, width, about } = options;
  const cells = endpoints.map((endpoint) => rowOf(endpoint, about?.(endpoint.id) ?? {}));
  let columns = COLUMNS.map((_, i) => i);
  const widthOf = (kept: readonly number[]) =>
    kept.reduce((sum, i) => {
      const title = COLUMNS[i]?.title.length ?? 0;
      // The last column is cut rather than counted in full.
      const content = i === 8 ? 16 : Math.max(0, ...cells.map((row) => row[i]?.length ?? 0));
      return sum + Math.max(title, content) + 2;
    }, 0);
  for (const least of LEAST) {
    if (widthOf(columns) > width) columns = columns.filter((i) => i !== least);
  }
  const lines = table(
    columns.map((i) => COLUMNS[i] ?? { title: "" }),
    cells.map((row) => columns.map((i) => row[i] ?? "")),
  ).map((line) => clip(line, width));
  return lines.map((line, i) => {
    if (i === 0) return paint("dim", line);
    const state = endpoints[i - 1]?.state;
    if (state === "ok") return line;
    return paint(state === "queue-full" || state === "kv-full" ? "yellow" : "red", line);
  });
}

function rowOf(endpoint: EndpointSnapshot, about: About): string[] {
  const { waitingQueueSize, runningRequests, kvCacheUsagePercent: kv, ageMs, engines } = endpoint;
  const engine = about.engine ?? "?";
  const why = [endpoint.state === "unusable" ? undefined : endpoint.reason, about.error];
  return [
    clean(endpoint.id.replace(/^https?:\/\//, "")),
    engines > 1 ? `${engine} x${engines}` : engine,
    waitingQueueSize === null ? "-" : String(waitingQueueSize),
    runningRequests === null ? "-" : String(runningRequests),
    kv === null ? "-" : `${(kv * 100).toFixed(1)}%`,
    ageMs === null ? "-" : formatAge(ageMs),
    formatScore(endpoint.score),
    bar(endpoint.score),
    clean(
      endpoint.state === "ok"
        ? `yes${endpoint.queueOnly ? " (queue only)" : ""}`
        : why.filter(Boolean).join(": ") || endpoint.reason,
    ),
  ];
}

/** A score as a bar, the load line at 1. */
function bar(score: number): string {
  const line = Math.round(BAR_WIDTH / BAR_TOP);
  const filled = Math.round((Math.min(score, BAR_TOP) / BAR_TOP) * BAR_WIDTH);
  return Array.from({ length: BAR_WIDTH }, (_, i) =>
    i === line ? (i < filled ? "╋" : "┃") : i < filled ? "━" : "·",
  ).join("");
}

function formatScore(score: number): string {
  return score < 1000 ? score.toFixed(2) : score.toPrecision(3);
}

function formatAge(ms: number): string {
  if (Math.abs(ms) >= 1e12) return "ages";
  return formatDuration(Math.abs(ms) < 1000 ? Math.round(ms) : Math.round(ms / 100) * 100);
}
