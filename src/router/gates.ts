// One flow controller for each model that endpoints declare: a saturated model holds back its own requests
// and no others. All of them look at the same pool.

import { type AdmitOptions, FlowController, type FlowStats } from "../flow/controller";
import type { Lease } from "../lease";
import type { RoutedEndpoint } from "./endpoints";
import type { RouterFlowOptions } from "./options";
import { PoolView, type ViewContext } from "./pool-view";

/** What the proxy needs of a lease. */
export type Leased = Pick<Lease, "started" | "release"> & {
  readonly endpoint: { readonly id: string };
};

/** A request that asks for an endpoint. */
export interface GateRequest
  extends Pick<AdmitOptions, "tokens" | "priority" | "flow" | "ttl" | "signal"> {
  /** The session it belongs to, if any. */
  readonly session: string | undefined;
}

/** Lets requests through to endpoints. */
export interface Gate {
  /** What is its own in metrics: a declared model, or `*`. */
  readonly model: string;
  /** A lease at once, if nobody waits and there is room. */
  tryAdmit(request: GateRequest): Leased | undefined;
  /**
   * Waits for leave, and a lease. @param onWait told how long it took, in ms.
   * Rejects with AdmissionError.
   */
  admit(request: GateRequest, onWait: (ms: number) => void): Promise<Leased>;
  /** A lease at once, for a request that was let through before and refused by `tried`. */
  again(request: GateRequest, tried: ReadonlySet<string>): Leased | undefined;
}

/** What a gate is doing. */
export interface GateStats extends FlowStats {
  readonly model: string;
}

/** Requests that name no model go anywhere; those of a model nobody declares, to who declares none. */
const ANY = "";
const REST = "*";

class ModelGate implements Gate {
  readonly model: string;
  readonly view: PoolView;
  controller: FlowController;

  constructor(model: string, view: PoolView, flow: RouterFlowOptions) {
    this.model = model;
    this.view = view;
    this.controller = new FlowController(view, flow);
  }

  tryAdmit(request: GateRequest): Leased | undefined {
    return this.controller.tryAdmit(toOptions(request))?.lease;
  }

  async admit(request: GateRequest, onWait: (ms: number) => void): Promise<Leased> {
    const { lease, waitedMs } = await this.controller.admit(toOptions(request));
    onWait(waitedMs);
    return lease as Lease; // a view gives a lease with every permit
  }

  again(request: GateRequest, tried: ReadonlySet<string>): Leased | undefined {
    const { tokens, session } = request;
    return this.view.lease({ tokens, prefer: session, exclude: tried });
  }
}

/** Written out, since it is done for every request. */
function toOptions({ session, tokens, priority, flow, ttl, signal }: GateRequest): AdmitOptions {
  return { prefer: session, tokens, priority, flow, ttl, signal };
}

/** The gates of a router. */
export class Gates {
  readonly #context: ViewContext;
  readonly #gates = new Map<string, ModelGate>();
  readonly #draining = new Set<Promise<void>>();
  #flow: RouterFlowOptions;
  #isClosing = false;

  /** @throws ConfigError with every fault of `flow`. */
  constructor(context: ViewContext, flow: RouterFlowOptions) {
    this.#context = context;
    this.#flow = flow;
    this.#gates.set(ANY, this.#open("*", undefined));
  }

  /** The endpoints, and what they serve, have changed. */
  setEndpoints(endpoints: readonly RoutedEndpoint[]): void {
    if (this.#isClosing) return;
    const members = membersByModel(endpoints);
    for (const [key, ids] of members) {
      const gate = this.#gates.get(key);
      if (gate === undefined) this.#gates.set(key, this.#open(key, ids));
      else gate.view.setMembers(ids);
    }
    for (const [key, gate] of this.#gates) {
      if (key === ANY || members.has(key)) continue;
      this.#gates.delete(key);
      gate.view.setMembers(new Set());
      this.#drain(gate.controller, 0);
    }
  }

  /**
   * Other bands, ceilings or limits from now on. What waits goes on waiting under those it came under.
   *
   * @throws ConfigError with every fault; nothing has changed then.
   */
  setFlow(flow: RouterFlowOptions): void {
    if (this.#isClosing || JSON.stringify(flow) === JSON.stringify(this.#flow)) return;
    const next = [...this.#gates.values()].map((gate) => new FlowController(gate.view, flow));
    const before = this.#flow;
    this.#flow = flow;
    [...this.#gates.values()].forEach((gate, i) => {
      this.#drain(gate.controller, before.ttl ?? "1m");
      gate.controller = next[i] as FlowController; // one was made for each
    });
  }

  /** Where a request for a model has to ask; undefined when nobody serves it. */
  find(model: string | undefined): Gate | undefined {
    // Without declared models, any endpoint serves any model.
    if (model === undefined || this.#gates.size === 1) return this.#gates.get(ANY);
    const own = model === ANY || model === REST ? undefined : this.#gates.get(model);
    return own ?? this.#gates.get(REST);
  }

  /** What each gate is doing. */
  stats(): GateStats[] {
    return [...this.#gates.values()].map(({ model, controller }) => ({
      model,
      ...controller.stats(),
    }));
  }

  /** Lets nothing new in; what waits is let go, or refused when `drainMs` have passed. */
  async close(drainMs: number): Promise<void> {
    this.#isClosing = true;
    for (const { controller } of this.#gates.values()) this.#drain(controller, drainMs);
    await Promise.all(this.#draining);
  }

  #open(model: string, ids: ReadonlySet<string> | undefined): ModelGate {
    return new ModelGate(model, new PoolView(this.#context, ids), this.#flow);
  }

  #drain(controller: FlowController, drain: number | string): void {
    const done = controller.close({ drain }).finally(() => this.#draining.delete(done));
    this.#draining.add(done);
  }
}

/** Ids by declared model, those of endpoints that declare none with each; empty when none declares any. */
function membersByModel(endpoints: readonly RoutedEndpoint[]): Map<string, Set<string>> {
  const members = new Map<string, Set<string>>();
  const anyModel: string[] = [];
  for (const { id, models } of endpoints) {
    if (models === undefined) anyModel.push(id);
    for (const model of models ?? []) {
      const ids = members.get(model) ?? new Set();
      members.set(model, ids.add(id));
    }
  }
  if (members.size === 0) return members;
  for (const ids of members.values()) for (const id of anyModel) ids.add(id);
  if (anyModel.length > 0) members.set(REST, new Set(anyModel));
  return members;
}
