// A model server of the demo: an engine of the simulator behind a real HTTP server, with the API and the
// metrics page of a real one. It refuses nothing but what it cannot hold, and takes the time of its preset.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Engine } from "../sim/engine";
import type { Job } from "../sim/job";
import type { EngineModel } from "../sim/presets";
import type { Random } from "../sim/random";
import { LOAD_METRICS_HEADER, LOAD_METRICS_REQUEST_HEADER } from "../telemetry/orca";
import {
  type CompletionAnswer,
  type CompletionKind,
  type CompletionRequest,
  endEvents,
  invalid,
  modelList,
  readCompletion,
  tokenEvent,
  wholeAnswer,
} from "./demo-api";
import { type PageLoad, sglangPage, vllmPage } from "./demo-pages";
import type { LiveTime } from "./demo-time";

/** Which server it looks like. */
export type DemoEngineName = "vllm" | "sglang";

/** What an engine is. */
export interface DemoEngineSpec {
  readonly name: DemoEngineName;
  /** What it runs on. */
  readonly gpu: string;
  readonly model: EngineModel;
}

const PAGES = { vllm: vllmPage, sglang: sglangPage };
const KINDS: Readonly<Record<string, CompletionKind>> = {
  "POST /v1/chat/completions": "chat",
  "POST /v1/completions": "text",
};
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** How long answers become of themselves, in tokens. */
const MEAN_OUTPUT = 90;
const LONGEST_OUTPUT = 400;

/** An answer under way. */
interface Live {
  readonly answer: CompletionAnswer;
  readonly response: ServerResponse;
  /** Undefined until the engine has taken it. */
  job: Job | undefined;
  sent: number;
  isGone: boolean;
}

/** One server on loopback. */
export class DemoEngine {
  readonly name: DemoEngineName;
  readonly gpu: string;
  readonly url: string;
  readonly engine: Engine;
  readonly #server: Server;
  readonly #time: LiveTime;
  readonly #random: Random;
  readonly #live = new Set<Live>();
  readonly #unsubscribe: () => void;
  #count = 0;

  private constructor(server: Server, time: LiveTime, spec: DemoEngineSpec, random: Random) {
    this.name = spec.name;
    this.gpu = spec.gpu;
    this.engine = new Engine(time.queue, spec.model);
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on a port
    this.#server = server;
    this.#time = time;
    this.#random = random;
    this.#unsubscribe = time.subscribe(() => this.#flush());
    server.on("request", (request, response) => this.#handle(request, response));
  }

  /** Starts one on a free port. */
  static async open(time: LiveTime, spec: DemoEngineSpec, random: Random): Promise<DemoEngine> {
    // Longer than any router keeps an idle connection.
    const server = createServer({ keepAliveTimeout: 60_000 });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    return new DemoEngine(server, time, spec, random);
  }

  /** Requests that it has not answered to the end. */
  get live(): number {
    return this.#live.size;
  }

  /** Cuts whatever is under way. */
  async close(): Promise<void> {
    this.#unsubscribe();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const route = `${request.method} ${request.url?.split("?")[0]}`;
    const kind = Object.hasOwn(KINDS, route) ? KINDS[route] : undefined;
    if (kind !== undefined) this.#complete(kind, request, response);
    else if (route === "GET /metrics") this.#printPage(response);
    else if (route === "GET /v1/models") sendJson(response, 200, modelList(nowS()));
    else if (route === "GET /health") sendJson(response, 200, {});
    else sendJson(response, 404, { detail: "Not Found" });
    request.resume();
  }

  #printPage(response: ServerResponse): void {
    response.writeHead(200, { "content-type": "text/plain; version=0.0.4" });
    response.end(PAGES[this.name](this.#load()));
  }

  #load(): PageLoad {
    const { kvBlocks } = this.engine.model;
    const gauges = this.#time.run(() => this.engine.readGauges());
    const { waiting, running, kv } = gauges ?? { waiting: 0, running: 0, kv: 0 };
    return { waiting, running, kv, kvBlocks };
  }

  #complete(kind: CompletionKind, request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MAX_BODY_BYTES) chunks.push(chunk);
    });
    request.on("end", () => {
      if (size > MAX_BODY_BYTES) return sendJson(response, 413, invalid("too long").body);
      const reading = readCompletion(kind, Buffer.concat(chunks));
      if (!("request" in reading)) return sendJson(response, reading.status, reading.body);
      const format = request.headers[LOAD_METRICS_REQUEST_HEADER];
      this.#begin(reading.request, response, typeof format === "string" ? format : "");
    });
  }

  #begin(request: CompletionRequest, response: ServerResponse, format: string): void {
    const outputTokens = this.#outputTokens(request);
    const { kvBlocks, blockSize, ttftConst } = this.engine.model;
    if (request.promptTokens + outputTokens > kvBlocks * blockSize) {
      const message = `this model's maximum context length is ${kvBlocks * blockSize} tokens`;
      sendJson(response, 400, invalid(message).body);
      return;
    }
    const id = `${request.kind === "chat" ? "chatcmpl" : "cmpl"}-${++this.#count}`;
    const answer = { ...request, id, created: nowS(), outputTokens };
    const live: Live = { answer, response, job: undefined, sent: 0, isGone: false };
    this.#live.add(live);
    response.on("close", () => this.#forget(live));
    for (const [name, value] of this.#inBand(format)) response.setHeader(name, value);
    if (request.stream) {
      response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
      response.flushHeaders();
    }
    this.#time.run(() => this.#time.queue.after(ttftConst, () => this.#submit(live)));
  }

  #outputTokens({ maxTokens, ignoreEos }: CompletionRequest): number {
    if (ignoreEos && maxTokens !== undefined) return maxTokens;
    const own = Math.ceil(Math.min(LONGEST_OUTPUT, this.#random.lognormal(MEAN_OUTPUT, 0.7)));
    return Math.min(own, maxTokens ?? own);
  }

  #submit(live: Live): void {
    if (live.isGone) return;
    const { promptTokens, outputTokens } = live.answer;
    // What it tells is seen in the job, once time has been caught up with.
    const listener = {
      firstToken: () => undefined,
      finished: () => undefined,
      failed: () => live.response.destroy(),
    };
    live.job = this.engine.submit({ promptTokens, outputTokens }, listener);
  }

  /** Sends the tokens that have been generated meanwhile. Unsent ones wait in memory: a few hundred at most. */
  #flush(): void {
    for (const live of this.#live) {
      const { answer, response, job } = live;
      if (job === undefined || job.generated === live.sent) continue;
      if (answer.stream) {
        let text = "";
        while (live.sent < job.generated) text += tokenEvent(answer, live.sent++);
        response.write(text);
      }
      live.sent = job.generated;
      if (job.generated < answer.outputTokens) continue;
      this.#live.delete(live);
      if (answer.stream) response.end(endEvents(answer));
      else sendJson(response, 200, wholeAnswer(answer));
    }
  }

  #forget(live: Live): void {
    live.isGone = true;
    this.#live.delete(live);
    const { job } = live;
    if (job !== undefined) this.#time.run(() => this.engine.cancel(job));
  }

  /** vLLM says how loaded it is when it is asked to. */
  #inBand(format: string): [string, string][] {
    if (this.name !== "vllm" || !/^(json|text)$/i.test(format)) return [];
    const { waiting, running, kv } = this.#load();
    const metrics = {
      kv_cache_usage_perc: kv,
      num_requests_waiting: waiting,
      num_requests_running: running,
    };
    const text = Object.entries(metrics).map(([key, value]) => `named_metrics.${key}=${value}`);
    return [
      [
        LOAD_METRICS_HEADER,
        format.toLowerCase() === "json"
          ? `JSON ${JSON.stringify({ named_metrics: metrics })}`
          : `TEXT ${text.join(", ")}`,
      ],
    ];
  }
}

function sendJson(response: ServerResponse, status: number, value: object): void {
  const body = JSON.stringify(value);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
}

function nowS(): number {
  return Math.floor(Date.now() / 1000);
}
