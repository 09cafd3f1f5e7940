// What is simulated: engines, traffic, routers, faults. Types only; scenario-reader.ts checks them.

import type { DetectorConfig, EndpointOptions } from "../config";
import type { Duration } from "../duration";
import type { FlowOptions } from "../flow/options";
import type { EngineModel } from "./presets";
import type { TraceRequest } from "./traces";

/**
 * How a router chooses:
 * - `plimsoll`: this package's pool with the live projection;
 * - `original`: the llm-d detector's signal: filter, then the least score, over samples as they are;
 * - `credit`: the same with the usual repair, `max(0, own - (waiting + running))` on the queue;
 * - `least-kv`: the least KV usage by the last sample;
 * - `round-robin`, `random`, `two-choices` (of two at random the one with fewer own requests),
 *   `least-outstanding` (fewest own requests): without telemetry;
 * - `oracle`: sees engines and wires as they are, and what every router has sent.
 */
export type PolicyName =
  | "plimsoll"
  | "original"
  | "credit"
  | "least-kv"
  | "round-robin"
  | "random"
  | "two-choices"
  | "least-outstanding"
  | "oracle";

/** Endpoints of one kind. A preset, coefficients of your own, or a preset with changes. */
export interface EndpointSpec extends Partial<EngineModel> {
  /** Name of a preset, see `PRESETS`. Without one, `a`, `d` and `kvBlocks` must be given. */
  readonly preset?: string | undefined;
  /** How many of them; integer > 0. Default 1. */
  readonly count?: number | undefined;
  /** What the routers' pools are told of it: weight, thresholds, labels. */
  readonly options?: EndpointOptions | undefined;
}

/** Requests per second, or a share of what all endpoints can do with these lengths ("60%"). */
export type Rate = number | string;

/**
 * When requests come:
 * - `constant`: evenly; `poisson`: at random; `gamma`: at random with gaps of variation `cv`;
 * - `bursts`: `size` requests at once, `every` so long, or so often that `rate` is the mean;
 * - `ramp`: at random, the rate going from `rate` to `to` over the duration;
 * - `trace`: when the trace says.
 */
export interface ArrivalSpec {
  readonly process: "constant" | "poisson" | "gamma" | "bursts" | "ramp" | "trace";
  readonly rate?: Rate | undefined;
  /** Ramp: rate at the end. */
  readonly to?: Rate | undefined;
  /** Gamma: deviation / mean of the gaps, > 0; 1 is `poisson`, more is burstier. */
  readonly cv?: number | undefined;
  /** Bursts: requests in each, integer > 0. */
  readonly size?: number | undefined;
  /** Bursts: time between two. */
  readonly every?: Duration | undefined;
  /** Trace: times are multiplied by this, > 0; 0.5 is twice as fast. Default 1. */
  readonly timeScale?: number | undefined;
}

/** Tokens: a fixed number, or lognormal with mean, variation (deviation / mean) and bounds. */
export type LengthSpec =
  | number
  | {
      readonly mean: number;
      readonly cv: number;
      readonly min?: number | undefined;
      readonly max?: number | undefined;
    };

/** Traffic of one tenant. */
export interface TenantSpec {
  /** Default `tenant-1` and so on. */
  readonly name?: string | undefined;
  readonly arrival: ArrivalSpec;
  /** Tokens of prompts and answers. With a trace they may be left out: then its lengths count. */
  readonly prompt?: LengthSpec | undefined;
  readonly output?: LengthSpec | undefined;
  /** Every prompt begins with one of `variants` texts of so many tokens. */
  readonly sharedPrefix?:
    | { readonly tokens: number; readonly variants?: number | undefined }
    | undefined;
  /** Band of the flow controller: its name or index. Default: the lowest. */
  readonly priority?: string | number | undefined;
  /** Answers are streamed, so that the router sees their first byte. Default true. */
  readonly streaming?: boolean | undefined;
  /** Requests of a trace, as `readTrace` gives them. */
  readonly trace?: readonly TraceRequest[] | undefined;
}

/** How routers read the engines. */
export interface ScrapeSpec {
  /** Time between two readings of an endpoint. Default "200ms". */
  readonly interval?: Duration | undefined;
  /** From asking to having the answer. Default "4ms". */
  readonly latency?: Duration | undefined;
  /** Share of readings that fail, in [0, 1). Default 0. */
  readonly loss?: number | undefined;
  /** `spread`: each router reads each endpoint at a time of its own; `aligned`: all at once. */
  readonly phase?: "spread" | "aligned" | undefined;
}

/**
 * What goes wrong:
 * - `dies`: it refuses connections, and what is in it fails; after `for` it is back, empty;
 * - `hangs`: it takes requests and does not go on; after `for` it goes on;
 * - `slow`: its steps take `factor` times as long;
 * - `scrape-outage`: readings of it fail.
 */
export type FaultKind = "dies" | "hangs" | "slow" | "scrape-outage";

/** One fault. */
export interface FaultSpec {
  readonly kind: FaultKind;
  /** When it begins, from the start. */
  readonly at: Duration;
  /** How long it lasts. Default: to the end. */
  readonly for?: Duration | undefined;
  /** Which endpoints, counted from 0. Default: all. */
  readonly endpoints?: readonly number[] | undefined;
  /** Slow: > 0. Default 3. */
  readonly factor?: number | undefined;
}

/** When an answer counts as good. */
export interface SloSpec {
  /** Longest time to first token. Default "500ms". */
  readonly ttft?: Duration | undefined;
  /** Longest mean time per token after the first. Default "50ms". */
  readonly tpot?: Duration | undefined;
}

/** A scenario. As YAML it reads the same. */
export interface Scenario {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  /** How long requests arrive; then the simulation runs until the last has ended. */
  readonly duration: Duration;
  readonly endpoints: readonly EndpointSpec[];
  /** One entry per tenant. */
  readonly traffic: readonly TenantSpec[];
  /** Routers side by side; requests go to one of them at random. 1 to 16. Default 1. */
  readonly routers?: number | undefined;
  /** Default `plimsoll`. */
  readonly policy?: PolicyName | undefined;
  readonly scrape?: ScrapeSpec | undefined;
  /** Answers carry the engine's load in a header. Default false. */
  readonly inBand?: boolean | undefined;
  /** One way between router and engine. Default "0.5ms". */
  readonly network?: Duration | undefined;
  /** Config of the routers' pools. S is three scrape intervals where it is not given. */
  readonly detector?: DetectorConfig | undefined;
  /** Flow controller: its options, true for the defaults, false (default) for none. */
  readonly flow?: boolean | Omit<FlowOptions, "clock"> | undefined;
  /** After this a client gives up. Default "2m". */
  readonly timeout?: Duration | undefined;
  /** Other endpoints that are tried when one fails before the first byte, 0 to 10. Default 2. */
  readonly retries?: number | undefined;
  readonly faults?: readonly FaultSpec[] | undefined;
  readonly slo?: SloSpec | undefined;
}
