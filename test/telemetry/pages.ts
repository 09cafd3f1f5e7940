// Self-written pages of each engine, in the shapes that real servers print.

import type { EngineName } from "../../src/telemetry/engines";

/** What a page says of the whole endpoint. */
export interface Expected {
  readonly waiting: number | null;
  readonly running: number | null;
  readonly kv: number | null;
  readonly capacity: number | null;
  readonly engines: number;
}

/** A page and its right reading. */
export interface KnownPage {
  readonly title: string;
  readonly engine: EngineName;
  readonly page: string;
  readonly expected: Expected;
}

/** One page per row of the engine table, and per way of printing it. */
export const PAGES: readonly KnownPage[] = [
  {
    title: "vLLM",
    engine: "vllm",
    page: `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 11.0
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 3.0
vllm:lora_requests_info{max_lora="1",running_lora_adapters="a, b",waiting_lora_adapters=""} 1.7e+09
lmcache:kv_msg_queue_size 99
vllm:cpu_kv_cache_usage_pct 55
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:cache_config_info{block_size="16",engine="0",num_cpu_blocks="None",num_gpu_blocks="1000"} 1.0
`,
    expected: { waiting: 3, running: 11, kv: 0.25, capacity: 16000, engines: 1 },
  },
  {
    title: "vLLM with the old name of KV usage, underscores and CRLF",
    engine: "vllm",
    page: "vllm_num_requests_waiting 1\r\nvllm_num_requests_running 2\r\nvllm_gpu_cache_usage_perc 0.5\r\n",
    expected: { waiting: 1, running: 2, kv: 0.5, capacity: null, engines: 1 },
  },
  {
    title: "vLLM with both names of KV usage",
    engine: "vllm",
    page: "vllm:gpu_cache_usage_perc 0.9\nvllm:kv_cache_usage_perc 0.1\nvllm:num_requests_waiting 0",
    expected: { waiting: 0, running: null, kv: 0.1, capacity: null, engines: 1 },
  },
  {
    title: "vLLM with two data parallel engines",
    engine: "vllm",
    page: `vllm:num_requests_waiting{engine="0",model_name="m"} 4
vllm:num_requests_waiting{engine="1",model_name="m"} 9
vllm:num_requests_running{engine="0",model_name="m"} 20
vllm:num_requests_running{engine="1",model_name="m"} 21
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.7
vllm:cache_config_info{engine="0",kv_cache_size_tokens="500"} 1
vllm:cache_config_info{engine="1",kv_cache_size_tokens="700"} 1
`,
    expected: { waiting: 13, running: 41, kv: 0.7, capacity: 1200, engines: 2 },
  },
  {
    title: "vLLM behind Ray",
    engine: "vllm",
    page: `ray_vllm:num_requests_waiting{Component="core_worker",WorkerId="w1",model_name="m"} 2.0
ray_vllm:num_requests_running{Component="core_worker",WorkerId="w1",model_name="m"} 5.0
ray_vllm:gpu_cache_usage_perc{Component="core_worker",WorkerId="w1",model_name="m"} 0.125
`,
    expected: { waiting: 2, running: 5, kv: 0.125, capacity: null, engines: 1 },
  },
  {
    title: "NVIDIA NIM",
    engine: "nim",
    page: `num_requests_running{model_name="m"} 6.0
num_requests_waiting{model_name="m"} 1.0
gpu_cache_usage_perc{model_name="m"} 0.75
num_request_max{model_name="m"} 2048.0
`,
    expected: { waiting: 1, running: 6, kv: 0.75, capacity: null, engines: 1 },
  },
  {
    title: "SGLang with tensor and data parallel ranks",
    engine: "sglang",
    page: `sglang:num_queue_reqs{dp_rank="0",model_name="m",tp_rank="0"} 5.0
sglang:num_queue_reqs{dp_rank="0",model_name="m",tp_rank="1"} 4.0
sglang:num_queue_reqs{dp_rank="1",model_name="m",tp_rank="2"} 7.0
sglang:num_running_reqs{dp_rank="0",model_name="m",tp_rank="0"} 30.0
sglang:num_running_reqs{dp_rank="1",model_name="m",tp_rank="2"} 31.0
sglang:num_prefill_prealloc_queue_reqs{dp_rank="0",model_name="m",tp_rank="0"} 77.0
sglang:token_usage{dp_rank="0",model_name="m",tp_rank="0"} 0.4
sglang:token_usage{dp_rank="1",model_name="m",tp_rank="2"} 0.6
sglang:max_total_num_tokens{dp_rank="0",model_name="m",tp_rank="0"} 1000.0
sglang:max_total_num_tokens{dp_rank="0",model_name="m",tp_rank="1"} 1000.0
sglang:max_total_num_tokens{dp_rank="1",model_name="m",tp_rank="2"} 2000.0
`,
    expected: { waiting: 12, running: 61, kv: 0.6, capacity: 3000, engines: 2 },
  },
  {
    title: "an early SGLang, whose two queue names are one queue",
    engine: "sglang",
    page: `sglang:queue_req{name="m"} 8.0
sglang:num_requests_waiting{name="m"} 8.0
sglang:num_requests_running{name="m"} 3.0
sglang:token_usage{name="m"} 0.5
sglang:cache_hit_rate{name="m"} 87.5
`,
    expected: { waiting: 8, running: 3, kv: 0.5, capacity: null, engines: 1 },
  },
  {
    title: "trtllm-serve",
    engine: "trtllm-serve",
    page: `trtllm_num_requests_waiting{model_name="m"} 2
trtllm_num_requests_running{model_name="m"} 9
trtllm_kv_cache_utilization{model_name="m"} 0.3
trtllm_kv_cache_max_blocks{model_name="m"} 400
trtllm_kv_cache_tokens_per_block{model_name="m"} 32
`,
    expected: { waiting: 2, running: 9, kv: 0.3, capacity: 12800, engines: 1 },
  },
  {
    title: "Triton with TensorRT-LLM",
    engine: "triton-tensorrt-llm",
    page: `nv_inference_pending_request_count{model="tensorrt_llm",version="1"} 50
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 4
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="active",version="1"} 12
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"} 0.5
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="tensorrt_llm",version="1"} 64
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="tensorrt_llm",version="1"} 100
`,
    expected: { waiting: 4, running: 12, kv: 0.5, capacity: 6400, engines: 1 },
  },
  {
    title: "Triton with another backend",
    engine: "triton",
    page: `nv_inference_request_success{model="resnet",version="1"} 12
nv_inference_pending_request_count{model="resnet",version="1"} 6
`,
    expected: { waiting: 6, running: null, kv: null, capacity: null, engines: 1 },
  },
  {
    title: "TGI",
    engine: "tgi",
    page: `tgi_queue_size 3
tgi_batch_current_size 7
tgi_batch_current_max_tokens 4000
tgi_batch_max_total_tokens 16000
tgi_batch_next_size_bucket{le="4"} 300
`,
    expected: { waiting: 3, running: 7, kv: 0.25, capacity: 16000, engines: 1 },
  },
  {
    title: "llama.cpp",
    engine: "llama.cpp",
    page: `llamacpp:kv_cache_usage_ratio 0.0625
llamacpp:requests_processing 4
llamacpp:requests_deferred 2
llamacpp:prompt_tokens_seconds -nan
`,
    expected: { waiting: 2, running: 4, kv: 0.0625, capacity: null, engines: 1 },
  },
  {
    title: "LMDeploy",
    engine: "lmdeploy",
    page: `lmdeploy:num_requests_waiting{engine="0",model_name="m"} 1.0
lmdeploy:num_requests_running{engine="0",model_name="m"} 2.0
lmdeploy:gpu_cache_usage_perc{engine="0",model_name="m"} 0.875
`,
    expected: { waiting: 1, running: 2, kv: 0.875, capacity: null, engines: 1 },
  },
];
