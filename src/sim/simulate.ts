// Runs a scenario: traffic comes in, routers choose, engines work, until the last request has ended.

import { ConfigError, type ConfigFault } from "../errors";
import { EventQueue } from "./events";
import { Fleet } from "./fleet";
import { Flight } from "./flight";
import { POLICIES, type Policy } from "./policies";
import { Recorder } from "./recorder";
import type { Report } from "./report";
import { Router } from "./router";
import type { Scenario } from "./scenario";
import { type ResolvedScenario, resolveScenario } from "./scenario-reader";
import { Traffic, type TrafficRequest } from "./traffic";

/** How far a run is. */
export interface Progress {
  /** Share of the time in which requests arrive, 0 to 1. */
  readonly share: number;
  /** Simulated time, in ms. */
  readonly timeMs: number;
  readonly arrived: number;
  readonly completed: number;
}

/** How a scenario is run. */
export interface SimulateOptions {
  /** The same seed gives the same report; an integer. Default 1. */
  readonly seed?: number | undefined;
  /** Is told how far the run is, some times a second. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** Ends the run; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Events between two looks at the rest of the world. Not a time: no clock is read here. */
const EVENTS_PER_TURN = 10_000;

/**
 * Runs a scenario to its end.
 *
 * @example
 * const report = await simulate({
 *   duration: "30s",
 *   endpoints: [{ preset: "llama-3.1-8b/H100/tp1", count: 4 }],
 *   traffic: [{ arrival: { process: "poisson", rate: "60%" }, prompt: 512, output: 128 }],
 * });
 * report.ttftMs.p99;
 *
 * @returns the report. Rejects with ConfigError and every fault of the scenario, and with the
 * signal's reason.
 */
export async function simulate(scenario: Scenario, options: SimulateOptions = {}): Promise<Report> {
  const { seed = 1, onProgress, signal } = options;
  if (!Number.isSafeInteger(seed)) {
    const fault: ConfigFault = { path: "seed", value: seed, rule: "must be an integer" };
    throw new ConfigError([fault]);
  }
  signal?.throwIfAborted();
  const resolved = resolveScenario(scenario);
  const run = new Run(resolved, POLICIES[resolved.policy], resolved.policy, seed);
  while (run.step(EVENTS_PER_TURN)) {
    onProgress?.(run.progress());
    await turn();
    signal?.throwIfAborted();
  }
  onProgress?.(run.progress());
  return run.report();
}

/** Lets everything else run. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

/** One run. `simulate` is the way to use it; this is for those who bring a policy of their own. */
export class Run {
  readonly #queue = new EventQueue();
  readonly #scenario: ResolvedScenario;
  readonly #traffic: Traffic;
  readonly #recorder: Recorder;
  readonly #routers: readonly Router[];
  readonly #policy: string;
  readonly #seed: number;
  #next: TrafficRequest | undefined;
  #endMs = 0;

  constructor(scenario: ResolvedScenario, policy: Policy, name: string, seed: number) {
    this.#scenario = scenario;
    this.#policy = name;
    this.#seed = seed;
    const queue = this.#queue;
    const fleet = new Fleet(scenario.endpoints, scenario.faults, queue);
    this.#recorder = new Recorder(scenario, fleet);
    const host = {
      sent: (flight: Flight, member: Fleet["members"][number]) =>
        this.#recorder.noteSent(flight, member, queue.now),
      firstByte: (flight: Flight) => this.#recorder.noteFirstByte(flight),
      ended: (flight: Flight) => {
        this.#recorder.noteCompleted(flight);
        this.#endMs = queue.now;
      },
      rejected: (flight: Flight, reason: Parameters<Recorder["noteRejected"]>[1]) => {
        flight.state = "rejected";
        this.#recorder.noteRejected(flight, reason);
        this.#endMs = queue.now;
      },
    };
    this.#routers = Array.from(
      { length: scenario.routers },
      (_, i) => new Router(i, queue, fleet, scenario, policy, seed, host),
    );
    this.#traffic = new Traffic(scenario.traffic, scenario.duration, seed);
    this.#next = this.#traffic.take();
    this.#planArrival();
    queue.at(scenario.duration, () => this.#recorder.noteWindowEnd());
    this.#planSample(this.#recorder.series.stepMs);
  }

  /** Leases that the routers hold; 0 at the end. */
  get leases(): number {
    return this.#routers.reduce((sum, router) => sum + router.leases, 0);
  }

  /** Runs up to `events` events. False once the last request has ended. */
  step(events: number): boolean {
    for (let i = 0; i < events; i++) {
      if (this.#isDone || !this.#queue.step()) return false;
    }
    return !this.#isDone;
  }

  progress(): Progress {
    const { now } = this.#queue;
    const { arrived, completed } = this.#recorder;
    const share = this.#isDone ? 1 : Math.min(1, now / this.#scenario.duration);
    return { share, timeMs: now, arrived, completed };
  }

  report(): Report {
    return this.#recorder.report(this.#seed, this.#policy, this.#endMs);
  }

  get #isDone(): boolean {
    const isQuiet = this.#next === undefined && this.#recorder.open === 0;
    return isQuiet && this.#queue.now >= this.#scenario.duration;
  }

  #planArrival(): void {
    const request = this.#next;
    if (request === undefined) return;
    this.#queue.at(request.time, () => {
      this.#next = this.#traffic.take();
      this.#planArrival();
      this.#arrive(request);
    });
  }

  #arrive(request: TrafficRequest): void {
    const flight = new Flight(request);
    const i = Math.min(this.#routers.length - 1, Math.floor(request.lot * this.#routers.length));
    const router = this.#routers[i] as Router; // i is below the length
    this.#recorder.noteArrived(flight);
    this.#queue.after(this.#scenario.timeout, () => {
      if (flight.isOver) return;
      this.#recorder.noteTimedOut(flight, this.#queue.now);
      flight.state = "timed-out";
      this.#endMs = this.#queue.now;
      router.giveUp(flight);
    });
    router.take(flight);
  }

  #planSample(ms: number): void {
    this.#queue.after(ms, () => {
      this.#recorder.series.sample(this.#queue.now, this.#routers);
      if (this.#recorder.series.isOpen) this.#planSample(ms);
    });
  }
}
