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
  /** What it is called in metrics: a declared model, `*` or `(other)`. */
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
const ANY = Symbol("*");
const REST = Symbol("(other)");
/** A model whose last endpoint has gone is waited for so long before it counts as unknown, in ms. */
const LONGEST_ABSENCE_MS = 60_000;

/** A declared model, or one of the two above. */
type GateKey = string | symbol;

class ModelGate implements Gate {
  readonly model: string;
  readonly view: PoolView;
  controller: FlowController;
  /** Since when no endpoint declares the model, on the pool's clock, in ms; undefined: one does. */
  undeclaredSince: number | undefined;

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
  readonly #gates = new Map<GateKey, ModelGate>();
  readonly #draining = new Set<Promise<void>>();
  #flow: RouterFlowOptions;
  #differ = false;
  #isClosing = false;

  /** @throws ConfigError with every fault of `flow`. */
  constructor(context: ViewContext, flow: RouterFlowOptions) {
    this.#context = context;
    this.#flow = flow;
    this.#gates.set(ANY, this.#open(ANY, undefined));
  }

  /** The endpoints, and what they serve, have changed. */
  setEndpoints(endpoints: readonly RoutedEndpoint[]): void {
    if (this.#isClosing) return;
    const { members, anyModel } = membersByModel(endpoints);
    // When all are gone, it is still true that they differ.
    if (endpoints.length > 0) this.#differ = members.size > 0;
    for (const [key, ids] of members) {
      const gate = this.#gates.get(key);
      if (gate === undefined) this.#gates.set(key, this.#open(key, ids));
      else {
        gate.view.setMembers(ids);
        gate.undeclaredSince = undefined;
      }
    }
    const now = this.#context.pool.now();
    for (const [key, gate] of this.#gates) {
      if (key === ANY || members.has(key)) continue;
      gate.view.setMembers(anyModel);
      // While there is no endpoint at all, nobody has been replaced by another.
      if (endpoints.length > 0) gate.undeclaredSince ??= now;
      this.#isForgotten(key, gate, now);
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
    if (model === undefined || !this.#differ) return this.#gates.get(ANY);
    const own = this.#gates.get(model);
    if (own !== undefined && own.undeclaredSince === undefined) return own;
    const rest = this.#gates.get(REST);
    if (rest !== undefined && rest.undeclaredSince === undefined) return rest;
    if (own === undefined) return undefined;
    return this.#isForgotten(model, own, this.#context.pool.now()) ? undefined : own;
  }

  /** Whether endpoints differ in the models they serve. */
  get needsModel(): boolean {
    return this.#differ;
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

  /** Lets go of a gate that is no model's any more, and has nothing waiting. */
  #isForgotten(key: GateKey, { undeclaredSince, controller }: ModelGate, now: number): boolean {
    if (undeclaredSince === undefined || now - undeclaredSince <= LONGEST_ABSENCE_MS) return false;
    if (controller.stats().waiting > 0) return false;
    this.#gates.delete(key);
    this.#drain(controller, 0);
    return true;
  }

  #open(key: GateKey, ids: ReadonlySet<string> | undefined): ModelGate {
    const model = typeof key === "string" ? key : (key.description ?? "");
    return new ModelGate(model, new PoolView(this.#context, ids), this.#flow);
  }

  #drain(controller: FlowController, drain: number | string): void {
    const done = controller.close({ drain }).finally(() => this.#draining.delete(done));
    this.#draining.add(done);
  }
}

/** Ids by declared model, those of endpoints that declare none with each; empty when none declares any. */
function membersByModel(endpoints: readonly RoutedEndpoint[]): {
  readonly members: ReadonlyMap<GateKey, ReadonlySet<string>>;
  readonly anyModel: ReadonlySet<string>;
} {
  const members = new Map<GateKey, Set<string>>();
  const anyModel = new Set<string>();
  for (const { id, models } of endpoints) {
    if (models === undefined) anyModel.add(id);
    for (const model of models ?? []) {
      const ids = members.get(model) ?? new Set();
      members.set(model, ids.add(id));
    }
  }
  if (members.size === 0) return { members, anyModel };
  for (const ids of members.values()) for (const id of anyModel) ids.add(id);
  if (anyModel.size > 0) members.set(REST, new Set(anyModel));
  return { members, anyModel };
}
