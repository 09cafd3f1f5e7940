// A metrics page of the size and shape that a vLLM server prints: 590 lines, 50 KB, of which four
// matter.

/** The page; `waiting` and `kv` stand where a reader must find them. */
export function makeVllmPage(waiting: number, running: number, kv: number): string {
  const labels = 'engine="0",model_name="llama-3.1-8b"';
  const lines: string[] = [];
  const gauge = (name: string, help: string, value: number) =>
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, `${name}{${labels}} ${value}`);
  const histogram = (name: string, buckets: number) => {
    lines.push(`# HELP ${name} Histogram of ${name}.`, `# TYPE ${name} histogram`);
    for (let i = 0; i < buckets; i++) {
      lines.push(`${name}_bucket{${labels},le="${(i + 1) * 0.025}"} ${i * 17}.0`);
    }
    lines.push(`${name}_bucket{${labels},le="+Inf"} ${buckets * 17}.0`);
    lines.push(`${name}_count{${labels}} ${buckets * 17}.0`, `${name}_sum{${labels}} 913.25`);
  };
  for (const generation of [0, 1, 2]) {
    lines.push(`python_gc_objects_collected_total{generation="${generation}"} 10239.0`);
  }
  gauge("process_resident_memory_bytes", "Resident memory size in bytes.", 9.2e9);
  gauge("vllm:num_requests_running", "Number of requests in model execution batches.", running);
  gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", waiting);
  for (const reason of ["capacity", "deferred"]) {
    lines.push(`vllm:num_requests_waiting_by_reason{${labels},reason="${reason}"} 0.0`);
  }
  gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", kv);
  const config = 'block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="27114"';
  lines.push(`vllm:cache_config_info{${config}} 1.0`);
  const names = [
    "time_to_first_token_seconds",
    "time_per_output_token_seconds",
    "e2e_request_latency_seconds",
  ];
  names.push(
    "request_queue_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
  );
  names.push("iteration_tokens_total", "request_prompt_tokens", "request_generation_tokens");
  while (lines.length < 585) {
    const name = names[lines.length % names.length] ?? "other";
    histogram(`vllm:${name}${lines.length}`, Math.min(20, 585 - lines.length));
  }
  return `${lines.join("\n")}\n`;
}
