// plimsoll serve --demo: the router in front of engines of the simulator, under a load of its own, with the live
// table of `watch` over the router's pool. Everything is on loopback and ends with the process.

import { createServer } from "node:net";
import { createRouter, type Router, type RouterAddresses } from "../router/router";
import type { FileConfig } from "./config-file";
import { type DemoEngines, startDemoEngines } from "./demo-engines";
import { DemoLoad, type LoadReport } from "./demo-load";
import { Screen } from "./screen";
import { clip, paintFor } from "./text";
import { headline, render } from "./view";

/** What the command line asked for. */
export interface ServeDemoOptions {
  readonly config: FileConfig;
  /** Ports that the command line names: they are used or it fails. Others may be replaced by free ones. */
  readonly fixed: { readonly port: boolean; readonly adminPort: boolean };
  readonly warn: (text: string) => void;
}

const SEED = 1;
const DRAW_MS = 100;
const LINE_MS = 1000;
const HISTORY = 600;
/** What others have sent may end within this at the end. */
const DRAIN = "2s";
const STOP_SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** Runs until it is told to stop. Resolves to the exit code. */
export async function serveDemo({ config, fixed, warn }: ServeDemoOptions): Promise<number> {
  const demo = await startDemoEngines(SEED);
  try {
    const value = await demoConfig(config, demo, fixed);
    const notes: string[] = [];
    const isLive = process.stdout.isTTY === true;
    const logger = { warn: (text: string) => (isLive ? void notes.push(text) : warn(text)) };
    const router = createRouter(value, { logger, environment: process.env });
    const addresses = await router.start();
    const load = new DemoLoad(addresses.traffic, SEED);
    try {
      const view = new DemoView(router, addresses, load, demo, notes);
      await (isLive ? view.draw() : view.print());
    } finally {
      await load.close();
      await router.close({ drain: DRAIN });
    }
    process.stdout.write(`stopped: ${counts(load.report())}\n`);
    return 0;
  } finally {
    await demo.close();
  }
}

async function demoConfig(
  { value, settings }: FileConfig,
  { engines }: DemoEngines,
  fixed: ServeDemoOptions["fixed"],
): Promise<object> {
  const { listen, admin } = settings;
  const own = engines.map(({ url }) => url);
  const before = "endpoints" in value && Array.isArray(value.endpoints) ? value.endpoints : [];
  const port = fixed.port ? listen.port : await freeOr(listen.host, listen.port);
  const adminValue =
    admin === undefined || fixed.adminPort
      ? (admin ?? false)
      : { ...admin, port: await freeOr(admin.host, admin.port) };
  return {
    ...value,
    endpoints: [...before, ...own],
    listen: { ...listen, port },
    admin: adminValue,
  };
}

/** This port if nobody has it, else 0, which takes a free one. */
function freeOr(host: string, port: number): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(0));
    server.listen({ host, port }, () => server.close(() => resolve(port)));
  });
}

/** What is shown while it runs. */
class DemoView {
  readonly #router: Router;
  readonly #addresses: RouterAddresses;
  readonly #load: DemoLoad;
  readonly #names: ReadonlyMap<string, string>;
  readonly #engines: DemoEngines;
  readonly #notes: readonly string[];
  readonly #history: number[] = [];

  constructor(
    router: Router,
    addresses: RouterAddresses,
    load: DemoLoad,
    demo: DemoEngines,
    notes: readonly string[],
  ) {
    this.#router = router;
    this.#addresses = addresses;
    this.#load = load;
    this.#engines = demo;
    this.#names = new Map(demo.engines.map(({ url, name, gpu }) => [url, `${name} ${gpu}`]));
    this.#notes = notes;
  }

  /** The live table, until q, Ctrl-C or a signal. */
  draw(): Promise<void> {
    return new Promise((resolve) => {
      const screen = new Screen(process.stdout, process.stdin, () => finish());
      const tick = () => screen.draw(this.#lines(process.stdout.columns, process.stdout.rows));
      const onResize = () => screen.draw([""]);
      const finish = untilStopped(tick, DRAW_MS, () => {
        process.stdout.off("resize", onResize);
        screen.close();
        resolve();
      });
      process.stdout.on("resize", onResize);
      screen.open();
      tick();
    });
  }

  /** The addresses, then a line each second, until a signal. */
  print(): Promise<void> {
    const { traffic, admin } = this.#addresses;
    process.stdout.write(`requests  ${traffic}\n`);
    if (admin !== undefined) process.stdout.write(`admin     ${admin}\n`);
    for (const { name, gpu, url } of this.#engines.engines) {
      process.stdout.write(`engine    ${url} ${name} ${gpu}\n`);
    }
    return new Promise((resolve) => {
      untilStopped(() => process.stdout.write(`${this.#line()}\n`), LINE_MS, resolve);
    });
  }

  #line(): string {
    const time = new Date().toISOString().slice(11, 19);
    const pool = headline(this.#router.pool.snapshot(), (_, text) => text, 200);
    return `${time}  ${this.#work()}  ${pool}`;
  }

  #work(): string {
    const { perSecond } = this.#load.report();
    const { live, gates } = this.#router.snapshot();
    const waiting = gates.reduce((sum, gate) => sum + gate.waiting, 0);
    return `${perSecond.toFixed(0)} requests/s, ${live} live, of which ${waiting} wait in the router`;
  }

  #lines(width: number, height: number): string[] {
    const { traffic, admin } = this.#addresses;
    const paint = paintFor(process.stdout);
    const snapshot = this.#router.pool.snapshot();
    this.#history.push(snapshot.saturation);
    if (this.#history.length > HISTORY) this.#history.shift();
    const { p50, p99 } = this.#load.report().firstByteMs;
    const firstByte = Number.isNaN(p50)
      ? ""
      : `; first byte p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`;
    const head = [
      `requests  ${traffic}/v1`,
      `metrics   ${admin === undefined ? "switched off" : `${admin}/metrics`}`,
      `try       curl -N ${traffic}/v1/completions -d '{"prompt":"Hello","stream":true}'`,
      `load      ${this.#work()}${firstByte}`,
      `          ${counts(this.#load.report())}`,
      "",
    ].map((line) => clip(line, width));
    const table = render(snapshot, {
      ...{ paint, width, height: height - head.length, history: this.#history },
      about: (id) => ({ engine: this.#names.get(id) }),
      footer: `q quits   ${this.#notes.at(-1) ?? ""}`.trimEnd(),
    });
    return [...head, ...table];
  }
}

/** Calls `tick` again and again until a signal or the function that it returns; then `onEnd`, once. */
function untilStopped(tick: () => void, everyMs: number, onEnd: () => void): () => void {
  const timer = setInterval(tick, everyMs);
  const finish = () => {
    clearInterval(timer);
    for (const name of STOP_SIGNALS) process.off(name, finish);
    process.stdout.off("error", finish);
    onEnd();
  };
  for (const name of STOP_SIGNALS) process.on(name, finish);
  process.stdout.on("error", finish);
  return finish;
}

function counts({ answered, refused, failed }: LoadReport): string {
  return `${answered} answered, ${refused} refused, ${failed} failed`;
}
