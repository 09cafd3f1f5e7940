// The demo fleet: real HTTP servers on loopback that print the pages of three engines under a load
// that moves, so that every state is seen within 20 seconds.

import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type PageLoad, sglangPage, trtllmPage, vllmPage } from "./demo-pages";

/** What a demo endpoint does at a time. */
export type DemoPhase = "idle" | "busy" | "saturated" | "kv-full" | "hung" | "gone";

/** A demo endpoint's load. */
export interface DemoLoad extends PageLoad {
  readonly phase: DemoPhase;
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
const FLEET: readonly { readonly page: (load: PageLoad) => string; readonly offset: number }[] = [
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

  static async open(page: (load: PageLoad) => string, load: () => DemoLoad): Promise<DemoEndpoint> {
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

function answer(response: ServerResponse, load: DemoLoad, page: (load: PageLoad) => string): void {
  if (load.phase === "hung") return;
  response.writeHead(200, { "content-type": "text/plain; version=0.0.4" });
  response.end(page(load));
}
