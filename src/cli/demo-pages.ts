// The metrics pages of the demo's engines, as far as they matter.

/** The model that the demo's engines say they serve. */
export const DEMO_MODEL = "demo/llama-8b";

/** What a page says. */
export interface PageLoad {
  readonly waiting: number;
  readonly running: number;
  /** Share of the KV cache in use. */
  readonly kv: number;
  /** Blocks of 16 tokens in the KV cache. Default 27,000. */
  readonly kvBlocks?: number | undefined;
}

const KV_BLOCKS = 27_000;
const BLOCK_TOKENS = 16;

/** A metrics page of vLLM. */
export function vllmPage({ waiting, running, kv, kvBlocks = KV_BLOCKS }: PageLoad): string {
  const labels = `{engine="0",model_name="${DEMO_MODEL}"}`;
  return `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running${labels} ${running}.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting${labels} ${waiting}.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="${DEMO_MODEL}",reason="capacity"} ${waiting}.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc${labels} ${kv}
vllm:cache_config_info{block_size="${BLOCK_TOKENS}",engine="0",num_gpu_blocks="${kvBlocks}"} 1.0
vllm:prompt_tokens_total${labels} 1.2e+06
`;
}

/** A metrics page of SGLang. */
export function sglangPage({ waiting, running, kv, kvBlocks = KV_BLOCKS }: PageLoad): string {
  const labels = `{engine_type="unified",model_name="${DEMO_MODEL}",tp_rank="0"}`;
  return `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs${labels} ${running}.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs${labels} ${waiting}.0
# TYPE sglang:token_usage gauge
sglang:token_usage${labels} ${kv}
sglang:max_total_num_tokens${labels} ${kvBlocks * BLOCK_TOKENS}.0
sglang:cache_hit_rate${labels} 0.31
`;
}

/** A metrics page of trtllm-serve. */
export function trtllmPage({ waiting, running, kv, kvBlocks = KV_BLOCKS }: PageLoad): string {
  const labels = `{model_name="${DEMO_MODEL}",engine_type="trtllm"}`;
  return `# TYPE trtllm_num_requests_waiting gauge
trtllm_num_requests_waiting${labels} ${waiting}
trtllm_num_requests_running${labels} ${running}
trtllm_kv_cache_utilization${labels} ${kv}
trtllm_kv_cache_max_blocks${labels} ${kvBlocks / 2}
trtllm_kv_cache_tokens_per_block${labels} ${2 * BLOCK_TOKENS}
`;
}
