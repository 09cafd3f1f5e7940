// What the page lets people set: every field with its path in the scenario, unit and sensible range.

import { POLICY_NAMES } from "../../sim/policy-names";
import { PRESETS } from "../../sim/presets";

/** How a field is edited. `text` holds durations and rates, which are numbers with a unit. */
export type FieldKind = "text" | "number" | "check" | "select";

/** One field. */
export interface FieldSpec {
  /** Path in the scenario, or in an entry of a list. */
  readonly path: string;
  readonly label: string;
  readonly kind: FieldKind;
  /** What the scenario means when it says nothing. */
  readonly unset?: string;
  readonly min?: number;
  readonly max?: number;
  readonly step?: number;
  readonly options?: readonly { readonly value: string; readonly label: string }[];
  readonly isWide?: boolean;
}

/** A list of the scenario. */
export interface ListSpec {
  readonly path: string;
  /** What an entry is called. */
  readonly entry: string;
  /** A new entry. */
  readonly blank: Readonly<Record<string, unknown>>;
  /** There may be none of them. */
  readonly mayBeEmpty?: boolean;
}

/** Fields that belong together; those of a list are shown once per entry. */
export interface GroupSpec {
  readonly title: string;
  readonly fields: readonly FieldSpec[];
  readonly list?: ListSpec;
  readonly isOpen?: boolean;
}

const options = (...values: readonly string[]) => values.map((value) => ({ value, label: value }));
const number = (path: string, label: string, min: number, max: number, unset = "", step = 1) =>
  ({ path, label, kind: "number", min, max, step, unset }) as const;
const text = (path: string, label: string, unset = "") =>
  ({ path, label, kind: "text", unset }) as const;
const check = (path: string, label: string, unset = "false") =>
  ({ path, label, kind: "check", unset }) as const;
const select = (path: string, label: string, unset: string, ...values: readonly string[]) =>
  ({ path, label, kind: "select", unset, options: options(...values) }) as const;

const PRESET_OPTIONS = [
  { value: "", label: "own coefficients" },
  ...Object.entries(PRESETS).map(([name, { kind }]) => ({
    value: name,
    label: `${name} (${kind})`,
  })),
];

/** Policies, for both sides. */
export const POLICY_OPTIONS = options(...POLICY_NAMES);

/** All groups, in order. */
export const GROUPS: readonly GroupSpec[] = [
  {
    title: "Routers and telemetry",
    isOpen: true,
    fields: [
      text("duration", "Duration", "such as 60s"),
      number("routers", "Routers", 1, 16, "1"),
      text("scrape.interval", "Scrape interval", "200ms"),
      text("scrape.latency", "Scrape latency", "4ms"),
      number("scrape.loss", "Lost readings (share)", 0, 0.95, "0", 0.01),
      select("scrape.phase", "Scrape phase", "spread", "spread", "aligned"),
      text("network", "Network, one way", "0.5ms"),
      text("timeout", "Client gives up after", "2m"),
      number("retries", "Retries", 0, 10, "2"),
      check("inBand", "Load in answer headers"),
    ],
  },
  {
    title: "Detector",
    fields: [
      number("detector.queueDepthThreshold", "Q (requests)", 1, 1000, "5"),
      number("detector.kvCacheUtilThreshold", "K (share)", 0.05, 1, "0.8", 0.05),
      number("detector.headroom", "Headroom (share)", 0, 5, "0", 0.05),
      text("detector.metricsStalenessThreshold", "Staleness S", "3 x interval"),
      select(
        "detector.stalenessPolicy",
        "Staleness policy",
        "saturated",
        "saturated",
        "ignore",
        "hold",
      ),
      text("detector.holdFor", "Hold for", "2s"),
      select("detector.aggregation", "Aggregation", "mean", "mean", "weighted", "max", "capped"),
    ],
  },
  {
    title: "Flow controller and SLO",
    fields: [
      check("flow", "Flow controller"),
      text("flow.ttl", "Time to live", "1m"),
      number("flow.ceilings.min", "Ceiling, lowest band", 0.05, 4, "1", 0.05),
      number("flow.ceilings.max", "Ceiling, highest band", 0.05, 4, "1", 0.05),
      select("flow.mode", "Mode", "queue", "queue", "shed"),
      text("slo.ttft", "SLO: time to first token", "500ms"),
      text("slo.tpot", "SLO: time per token", "50ms"),
    ],
  },
  {
    title: "Priority bands",
    list: { path: "flow.bands", entry: "Band", blank: { maxRequests: 5000 }, mayBeEmpty: true },
    fields: [
      text("name", "Name", "its place, from 0"),
      number("maxRequests", "May wait (requests)", 0, 1_000_000, "5000"),
    ],
  },
  {
    title: "Engines",
    list: {
      path: "endpoints",
      entry: "Engines",
      blank: { preset: "llama-3.1-8b/H100/tp1", count: 1 },
    },
    fields: [
      {
        path: "preset",
        label: "Preset",
        kind: "select",
        unset: "",
        options: PRESET_OPTIONS,
        isWide: true,
      },
      number("count", "How many", 1, 256, "1"),
      number("maxNumSeqs", "maxNumSeqs", 1, 4096, "128"),
      number("maxNumBatchedTokens", "maxNumBatchedTokens", 1, 131072, "2048"),
      number("kvBlocks", "KV blocks", 1, 1_000_000, "preset's"),
      number("blockSize", "Block size (tokens)", 1, 256, "16"),
      check("prefixCache", "Prefix cache", "true"),
      check("chunkedPrefill", "Chunked prefill", "true"),
      text("publishingLag", "Publishing lag", "0s"),
      number("a", "a (ms per step)", 0.1, 1000, "preset's", 0.1),
      number("d", "d (ms per 1,000 kv tokens)", 0, 100, "preset's", 0.001),
      number("c", "c (ms per sequence)", 0, 100, "preset's", 0.001),
      number("p", "p (ms per prompt token)", 0, 100, "preset's", 0.001),
      number("ttftConst", "Constant (ms)", 0, 10_000, "preset's", 0.5),
    ],
  },
  {
    title: "Traffic",
    list: {
      path: "traffic",
      entry: "Tenant",
      blank: { arrival: { process: "poisson", rate: "20%" }, prompt: 300, output: 100 },
    },
    fields: [
      text("name", "Name", "tenant-1"),
      select(
        "arrival.process",
        "Arrivals",
        "",
        "constant",
        "poisson",
        "gamma",
        "bursts",
        "ramp",
        "trace",
      ),
      text("arrival.rate", "Rate (per s, or 60%)"),
      text("arrival.to", "Ramp: rate at the end"),
      number("arrival.cv", "Gamma: burstiness (CV)", 0.1, 20, "", 0.1),
      number("arrival.size", "Bursts: size", 1, 100_000),
      text("arrival.every", "Bursts: every"),
      number("arrival.timeScale", "Trace: time scale", 0.001, 1000, "1", 0.001),
      number("prompt.mean", "Prompt, mean (tokens)", 1, 200_000),
      number("prompt.cv", "Prompt, variation (CV)", 0, 10, "0", 0.1),
      number("prompt.min", "Prompt, shortest", 1, 1_000_000, "1"),
      number("prompt.max", "Prompt, longest", 1, 1_000_000),
      number("output.mean", "Answer, mean (tokens)", 1, 100_000),
      number("output.cv", "Answer, variation (CV)", 0, 10, "0", 0.1),
      number("output.min", "Answer, shortest", 1, 1_000_000, "1"),
      number("output.max", "Answer, longest", 1, 1_000_000),
      number("sharedPrefix.tokens", "Shared beginning (tokens)", 1, 100_000),
      number("sharedPrefix.variants", "Shared beginnings", 1, 10_000, "1"),
      text("priority", "Priority band", "lowest"),
      check("streaming", "Answers stream", "true"),
    ],
  },
  {
    title: "Faults",
    list: {
      path: "faults",
      entry: "Fault",
      blank: { kind: "dies", at: "20s", for: "10s", endpoints: [0] },
      mayBeEmpty: true,
    },
    fields: [
      select("kind", "Kind", "", "dies", "hangs", "slow", "scrape-outage"),
      text("at", "At"),
      text("for", "For", "to the end"),
      text("endpoints", "Engines (0, 1, ...)", "all"),
      number("factor", "Slow: factor", 0.1, 100, "3", 0.1),
    ],
  },
];
