// The demo fleet: real HTTP servers on loopback that print the pages of three engines under a load
// that moves, so that every state is seen within 20 seconds.

import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What a demo endpoint does at a time. */
export type DemoPhase = "idle" | "busy" | "saturated" | "kv-full" | "hung" | "gone";

/** A demo endpoint's load. */
export interface DemoLoad {
  readonly phase: DemoPhase;
  readonly waiting: number;
  readonly running: number;
  readonly kv: number;
}

/** A running fleet. */
export interface DemoFleet {
  readonly urls: readonly string[];
  close(): Promise<void>;
}

const CYCLE_MS = 16_000;
const PHASES: readonly DemoPhase[] = [
  "idle",
  "busy",
  "busy",
  "saturated",
  "kv-full",
  "busy",
  "hung",
  "gone",
];
/** What each endpoint is, and where in the cycle it begins. */
const FLEET: readonly { readonly page: (load: DemoLoad) => string; readonly offset: number }[] = [
  { page: vllmPage, offset: 0 },
  { page: vllmPage, offset: 3 },
  { page: sglangPage, offset: 1 },
  { page: sglangPage, offset: 4 },
  { page: trtllmPage, offset: 2 },
  { page: trtllmPage, offset: 5 },
];

/** The load of endpoint `index` at `ms` after the start. The same for the same time. */
export function demoLoad(index: number, ms: number): DemoLoad {
  const offset = FLEET[index % FLEET.length]?.offset ?? 0;
  const at = ((ms / CYCLE_MS) * PHASES.length + offset) % PHASES.length;
  const phase = PHASES[Math.floor(at)] ?? "idle";
  const swing = (Math.sin(ms / 700 + index * 2) + 1) / 2;
  const round = (value: number) => Math.round(value * 1000) / 1000;
  switch (phase) {
    case "idle":
      return { phase, waiting: 0, running: Math.round(swing * 2), kv: round(0.02 + swing * 0.03) };
    case "saturated":
      return {
        phase,
        waiting: Math.round(6 + swing * 9),
        running: 64,
        kv: round(0.7 + swing * 0.1),
      };
    case "kv-full":
      return { phase, waiting: Math.round(swing * 2), running: 48, kv: round(0.9 + swing * 0.09) };
    default:
      return {
        phase,
        waiting: Math.round(swing * 4),
        running: Math.round(20 + swing * 20),
        kv: round(0.3 + swing * 0.3),
      };
  }
}

/** Starts the fleet on free ports. */
export async function startDemoFleet(
  clock: () => number = () => performance.now(),
): Promise<DemoFleet> {
  const start = clock();
  const endpoints = await Promise.all(
    FLEET.map(({ page }, i) => DemoEndpoint.open(page, () => demoLoad(i, clock() - start))),
  );
  return {
    urls: endpoints.map(({ url }) => url),
    close: async () => {
      await Promise.all(endpoints.map((endpoint) => endpoint.close()));
    },
  };
}

/** One server. "gone" closes it for real, so that connections are refused. */
class DemoEndpoint {
  readonly url: string;
  readonly #server: Server;
  readonly #port: number;
  readonly #load: () => DemoLoad;
  readonly #timer: NodeJS.Timeout;

  private constructor(server: Server, load: () => DemoLoad) {
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
    this.url = `http://127.0.0.1:${this.#port}`;
    this.#load = load;
    this.#timer = setInterval(() => this.#comeAndGo(), 100);
    this.#timer.unref();
  }

  static async open(page: (load: DemoLoad) => string, load: () => DemoLoad): Promise<DemoEndpoint> {
    const server = createServer((_, response) => answer(response, load(), page));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    return new DemoEndpoint(server, load);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  #comeAndGo(): void {
    const isGone = this.#load().phase === "gone";
    if (isGone && this.#server.listening) {
      this.#server.close();
      this.#server.closeAllConnections();
    } else if (!isGone && !this.#server.listening) {
      this.#server.listen(this.#port, "127.0.0.1");
    }
  }
}

function answer(response: ServerResponse, load: DemoLoad, page: (load: DemoLoad) => string): void {
  if (load.phase === "hung") return;
  response.writeHead(200, { "content-type": "text/plain; version=0.0.4" });
  response.end(page(load));
}

function vllmPage({ waiting, running, kv }: DemoLoad): string {
  const labels = '{engine="0",model_name="demo/llama-8b"}';
  return `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running${labels} ${running}.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting${labels} ${waiting}.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="demo/llama-8b",reason="capacity"} ${waiting}.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc${labels} ${kv}
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="27000"} 1.0
vllm:prompt_tokens_total${labels} 1.2e+06
`;
}

function sglangPage({ waiting, running, kv }: DemoLoad): string {
  const labels = '{engine_type="unified",model_name="demo/llama-8b",tp_rank="0"}';
  return `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs${labels} ${running}.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs${labels} ${waiting}.0
# TYPE sglang:token_usage gauge
sglang:token_usage${labels} ${kv}
sglang:max_total_num_tokens${labels} 432000.0
sglang:cache_hit_rate${labels} 0.31
`;
}

function trtllmPage({ waiting, running, kv }: DemoLoad): string {
  const labels = '{model_name="demo/llama-8b",engine_type="trtllm"}';
  return `# TYPE trtllm_num_requests_waiting gauge
trtllm_num_requests_waiting${labels} ${waiting}
trtllm_num_requests_running${labels} ${running}
trtllm_kv_cache_utilization${labels} ${kv}
trtllm_kv_cache_max_blocks${labels} 13500
trtllm_kv_cache_tokens_per_block${labels} 32
`;
}
