// The engines whose pages can be read: under which names each one prints its queue, its batch and
// its KV cache. Data only; exposition.ts reads by it.

import { TelemetryError } from "../errors";
import { nearestKey } from "../nearest";

/** An engine whose telemetry is understood. vLLM behind Ray is "vllm". */
export type EngineName =
  | "vllm"
  | "nim"
  | "sglang"
  | "trtllm-serve"
  | "triton-tensorrt-llm"
  | "triton"
  | "tgi"
  | "llama.cpp"
  | "lmdeploy";

/** A metric without its prefix, and the label that selects one of its series. */
export interface MetricRef {
  readonly name: string;
  readonly label?: readonly [key: string, value: string];
}

/** Where the size of the KV cache stands. */
export type CapacityRule =
  /** Labels of an info metric: the first list that is there, its numbers multiplied. */
  | { readonly info: string; readonly labels: readonly (readonly string[])[] }
  /** Gauges, multiplied. */
  | { readonly product: readonly MetricRef[] };

/** One engine. Lists are in order of preference: the first name on the page counts. */
export interface EngineSpec {
  readonly name: EngineName;
  /** What people call it. */
  readonly label: string;
  /** Path of its exposition. */
  readonly metricsPath: string;
  /** What must be set for the page to be there; empty when nothing. */
  readonly needs: string;
  /** What stands before a metric's name. */
  readonly prefixes: readonly string[];
  readonly waiting: readonly MetricRef[];
  readonly running: readonly MetricRef[];
  /** A fraction 0..1. */
  readonly kv: readonly MetricRef[];
  /** Where there is no fraction: numerator and denominator. */
  readonly kvRatio?: readonly [MetricRef, MetricRef];
  readonly capacity?: CapacityRule;
}

const of = (...names: string[]): MetricRef[] => names.map((name) => ({ name }));
const TRITON_REQUESTS = "nv_trt_llm_request_metrics";
const TRITON_BLOCKS = "nv_trt_llm_kv_cache_block_metrics";
const block = (value: string): MetricRef => ({
  name: TRITON_BLOCKS,
  label: ["kv_cache_block_type", value],
});

/** Every engine, in the order in which a page is tried. */
export const ENGINES: readonly EngineSpec[] = [
  {
    name: "vllm",
    label: "vLLM (also behind Ray Serve)",
    metricsPath: "/metrics",
    needs: "",
    prefixes: ["vllm:", "vllm_", "ray_vllm:", "ray_vllm_"],
    waiting: of("num_requests_waiting"),
    running: of("num_requests_running"),
    kv: of("kv_cache_usage_perc", "gpu_cache_usage_perc"),
    capacity: {
      info: "cache_config_info",
      labels: [["kv_cache_size_tokens"], ["num_gpu_blocks", "block_size"]],
    },
  },
  {
    name: "sglang",
    label: "SGLang",
    metricsPath: "/metrics",
    needs: "--enable-metrics",
    prefixes: ["sglang:", "sglang_"],
    waiting: of("num_queue_reqs", "queue_req", "num_requests_waiting"),
    running: of("num_running_reqs", "num_running_req", "num_requests_running"),
    kv: of("token_usage"),
    capacity: { product: of("max_total_num_tokens") },
  },
  {
    name: "trtllm-serve",
    label: "TensorRT-LLM (trtllm-serve)",
    metricsPath: "/prometheus/metrics",
    needs: "return_perf_metrics and enable_iter_perf_stats",
    prefixes: ["trtllm_", "trtllm:"],
    waiting: of("num_requests_waiting"),
    running: of("num_requests_running"),
    kv: of("kv_cache_utilization"),
    capacity: { product: of("kv_cache_max_blocks", "kv_cache_tokens_per_block") },
  },
  {
    name: "triton-tensorrt-llm",
    label: "Triton with TensorRT-LLM",
    metricsPath: "/metrics",
    needs: "port 8002",
    prefixes: [""],
    waiting: [{ name: TRITON_REQUESTS, label: ["request_type", "waiting"] }],
    running: [{ name: TRITON_REQUESTS, label: ["request_type", "active"] }],
    kv: [block("fraction")],
    capacity: { product: [block("max"), block("tokens_per")] },
  },
  {
    name: "tgi",
    label: "Text Generation Inference",
    metricsPath: "/metrics",
    needs: "",
    prefixes: ["tgi_", "tgi:"],
    waiting: of("queue_size"),
    running: of("batch_current_size"),
    kv: [],
    kvRatio: [{ name: "batch_current_max_tokens" }, { name: "batch_max_total_tokens" }],
    capacity: { product: of("batch_max_total_tokens") },
  },
  {
    name: "llama.cpp",
    label: "llama.cpp server",
    metricsPath: "/metrics",
    needs: "--metrics",
    prefixes: ["llamacpp:", "llamacpp_"],
    waiting: of("requests_deferred"),
    running: of("requests_processing"),
    kv: of("kv_cache_usage_ratio"),
  },
  {
    name: "lmdeploy",
    label: "LMDeploy",
    metricsPath: "/metrics",
    needs: "--enable-metrics",
    prefixes: ["lmdeploy:", "lmdeploy_"],
    waiting: of("num_requests_waiting"),
    running: of("num_requests_running"),
    kv: of("gpu_cache_usage_perc"),
  },
  {
    name: "triton",
    label: "Triton, other backends",
    metricsPath: "/metrics",
    needs: "port 8002",
    prefixes: [""],
    waiting: of("nv_inference_pending_request_count"),
    running: [],
    kv: [],
  },
  {
    name: "nim",
    label: "NVIDIA NIM",
    metricsPath: "/v1/metrics",
    needs: "",
    prefixes: [""],
    waiting: of("num_requests_waiting"),
    running: of("num_requests_running"),
    kv: of("gpu_cache_usage_perc"),
  },
];

const BY_NAME = new Map<string, EngineSpec>(ENGINES.map((spec) => [spec.name, spec]));

/**
 * The engine of this name.
 *
 * @throws TelemetryError when there is none; the message has the nearest name.
 */
export function engineSpec(name: EngineName): EngineSpec {
  const spec = BY_NAME.get(name);
  if (spec !== undefined) return spec;
  const known = [...BY_NAME.keys()];
  const near = nearestKey(String(name), known);
  throw new TelemetryError(
    `unknown engine ${JSON.stringify(name)}: ` +
      (near === undefined ? "" : `did you mean "${near}"? `) +
      `the engines are ${known.join(", ")}`,
  );
}

/** Names of the metrics that are read of an engine, without prefix. */
export function bareNames(spec: EngineSpec): string[] {
  const refs = [...spec.waiting, ...spec.running, ...spec.kv, ...(spec.kvRatio ?? [])];
  const names = refs.map((ref) => ref.name);
  if (spec.capacity !== undefined) {
    if ("info" in spec.capacity) names.push(spec.capacity.info);
    else names.push(...spec.capacity.product.map((ref) => ref.name));
  }
  return [...new Set(names)];
}

/**
 * The metrics that are read of an engine, under the prefix that is usual, for exporters that answer
 * `?name[]=...` with those alone.
 */
export function metricNames(name: EngineName): string[] {
  const spec = engineSpec(name);
  return bareNames(spec).map((metric) => (spec.prefixes[0] ?? "") + metric);
}
