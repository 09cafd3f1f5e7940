// In-band telemetry: the response header in which vLLM and Triton report their load with an answer,
// so that no poll is needed. https://github.com/cncf/xds and the engines' documentation call the
// format ORCA.

import type { Sample } from "../sample";

/** Request header that asks an engine to report its load with the answer. */
export const LOAD_METRICS_REQUEST_HEADER = "endpoint-load-metrics-format";
/** Its value: `JSON` or `TEXT`. */
export const LOAD_METRICS_FORMAT = "JSON";
/** Response header that carries the report. */
export const LOAD_METRICS_HEADER = "endpoint-load-metrics";

/** A longer header is no report. */
const MAX_LENGTH = 16_384;
const WAITING = ["num_requests_waiting", "waiting_queue_size"];
const RUNNING = ["num_requests_running"];
const KV = ["kv_cache_usage_perc", "gpu_cache_usage_perc", "kv_cache_utilization"];
const CAPACITY = ["max_token_capacity", "kv_cache_size_tokens"];
const KV_UNIT_LIMIT = 1.001;

/**
 * Reads the header `endpoint-load-metrics`, in either of its formats:
 *
 * - `TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_waiting=2`
 * - `JSON {"named_metrics": {"kv_cache_usage_perc": 0.4, "num_requests_waiting": 2}}`
 *
 * @returns the sample, for `pool.report` when the answer begins; undefined when the header carries
 * neither queue nor KV usage. A value that is there and makes no sense is NaN.
 */
export function readLoadMetrics(header: string | null | undefined): Sample | undefined {
  if (typeof header !== "string" || header.length > MAX_LENGTH) return undefined;
  const metrics = readPairs(header.trim());
  const waiting = firstOf(metrics, WAITING);
  const kv = firstOf(metrics, KV);
  if (waiting === undefined && kv === undefined) return undefined;
  return {
    waitingQueueSize: waiting,
    kvCacheUsagePercent: kv === undefined ? null : kv > KV_UNIT_LIMIT ? Number.NaN : kv,
    runningRequests: firstOf(metrics, RUNNING),
    kvCapacityTokens: firstOf(metrics, CAPACITY),
  };
}

function readPairs(text: string): Map<string, number> {
  const [, format = "", body = text] = /^(TEXT|JSON|BIN)\s+(.*)$/is.exec(text) ?? [];
  if (format.toUpperCase() === "BIN") return new Map();
  return body.startsWith("{") ? readJSON(body) : readTerms(body);
}

function readJSON(text: string): Map<string, number> {
  const metrics = new Map<string, number>();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return metrics; // a header cut short says nothing
  }
  const named =
    typeof value === "object" && value !== null ? entriesOf(value, "named_metrics") : [];
  for (const [name, number] of named) {
    metrics.set(name, typeof number === "number" ? number : Number.NaN);
  }
  return metrics;
}

function entriesOf(value: object, key: string): [string, unknown][] {
  const own = Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
  return typeof own === "object" && own !== null ? Object.entries(own) : [];
}

function readTerms(text: string): Map<string, number> {
  const metrics = new Map<string, number>();
  for (const term of text.split(",")) {
    const [, name, number] =
      /^\s*(?:named_metrics\.)?([A-Za-z0-9_:.]+)\s*[=:]\s*([^\s]+)\s*$/.exec(term) ?? [];
    if (name === undefined || number === undefined) continue;
    const isNumber = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(number);
    metrics.set(name, isNumber ? Number(number) : Number.NaN);
  }
  return metrics;
}

/** A name may carry its engine's prefix. */
function firstOf(metrics: Map<string, number>, names: readonly string[]): number | undefined {
  for (const name of names) {
    for (const [key, value] of metrics) {
      if (key === name || key.endsWith(`:${name}`)) return value;
    }
  }
  return undefined;
}
