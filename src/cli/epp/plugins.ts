// The plugins of an EPP's config: read, looked up by name, and what there is to say of those that do not map.

import { nearestKey } from "../../nearest";
import type { Findings } from "./findings";

/** A plugin that the config declares, or that the EPP adds by itself. */
export interface EppPlugin {
  readonly type: string;
  readonly path: string;
  readonly parameters: Record<string, unknown>;
}

/** The detector that this package implements. */
export const UTILIZATION = "utilization-detector";

/** What the EPP adds by itself where a config does not declare it. */
const BUILT_IN = [
  UTILIZATION,
  "fcfs-ordering-policy",
  "global-strict-fairness-policy",
  "static-usage-limit-policy",
];

const LOAD = "nothing to set: the router ranks endpoints by their load, its own requests included";
const DATA = "nothing to set: the router reads the engines' metrics pages itself";
const SPLIT = "does not map: prefill and decode on servers of their own are not supported";
/** Why a plugin does not map, by its type; the first that fits. */
const REASONS: readonly (readonly [type: RegExp, reason: string])[] = [
  [
    /prefix/,
    "does not map: there is no index of prefixes; affinity.body and affinity.header keep a session together",
  ],
  [
    /session/,
    "does not map: the nearest is affinity.header, which names a header that the client sets",
  ],
  [
    /lora/,
    "does not map: adapters are not followed; endpoints[].models says who serves which model",
  ],
  [/prefill|decode|encode|disagg|^pd-|^epd-/, SPLIT],
  [/label/, "does not map: list the endpoints that have the label, or give them a name for dns"],
  [
    /discovery/,
    "does not map: see endpoints, endpointsFile and dns, which have a form of their own",
  ],
  [/predicted|latency|slo/, "does not map: there is no prediction of latency"],
  [/^(queue|kv-cache|load|running|active|token-load|least|low|no-hit|inflight)/, LOAD],
  [/-picker$/, "nothing to set: the least rank is taken, ties are broken at random"],
  [/profile-handler$/, "nothing to set: there is one way to choose an endpoint"],
  [/-source$|-extractor$|^(core-)?metrics|model-server/, DATA],
  [/-parser$/, "nothing to set: requests go on as they are"],
  [
    /^concurrency-detector$/,
    "does not map: plimsoll serve gates on utilization; the library has a ConcurrencyDetector",
  ],
];

/** Why a plugin of this type does not map. */
export function reasonFor(type: string): string {
  return REASONS.find(([pattern]) => pattern.test(type))?.[1] ?? "does not map: no counterpart";
}

/** The declared plugins by name. Which ones were used is remembered. */
export class EppPlugins {
  readonly #byName = new Map<string, EppPlugin>();
  readonly #used = new Set<EppPlugin>();
  readonly #taken = new Set<EppPlugin>();
  readonly #findings: Findings;

  constructor(given: unknown, findings: Findings) {
    this.#findings = findings;
    for (const [i, one] of findings.list(given, "plugins").entries()) {
      this.#declare(one, `plugins.${i}`);
    }
  }

  #declare(given: unknown, path: string): void {
    const spec = this.#findings.object(given, path);
    if (spec === undefined) {
      if (given === null) this.#findings.fault(path, given, "must be an object with a type");
      return;
    }
    this.#findings.strangers(spec, path, ["name", "type", "parameters"]);
    const type = this.#findings.text(spec.type, `${path}.type`);
    if (spec.type === undefined) this.#findings.fault(path, given, "must have a type");
    if (type === undefined) return;
    const name = this.#findings.text(spec.name, `${path}.name`) ?? type;
    const parameters = this.#findings.object(spec.parameters, `${path}.parameters`) ?? {};
    if (this.#byName.has(name)) {
      this.#findings.fault(path, name, "must have a name of its own: another plugin has this one");
      return;
    }
    this.#byName.set(name, { type, path, parameters });
  }

  /** The plugin that a reference means. A reference to nothing is a fault. */
  resolve(ref: unknown, path: string): EppPlugin | undefined {
    const name = this.#findings.text(ref, path);
    if (name === undefined) return undefined;
    const found = this.#byName.get(name);
    if (found !== undefined) {
      this.#used.add(found);
      return found;
    }
    if (BUILT_IN.includes(name)) return { type: name, path, parameters: {} };
    const near = nearestKey(name, [...this.#byName.keys()]);
    const hint = near === undefined ? "" : `; did you mean "${near}"?`;
    this.#findings.fault(path, name, `must be the name of a plugin${hint}`);
    return undefined;
  }

  /** Whether some plugin is declared under this name. */
  has(name: string): boolean {
    return this.#byName.has(name);
  }

  /** All that there is to say of this one has been said. */
  take(plugin: EppPlugin): void {
    this.#taken.add(plugin);
  }

  /** Notes on all that was not taken. */
  noteRest(): void {
    for (const plugin of this.#byName.values()) {
      if (this.#taken.has(plugin)) continue;
      const { type, path } = plugin;
      const isPolicy = /-policy$|fairness|detector$/.test(type);
      const idle = "does not map: nothing refers to it as detector or policy";
      const reason = isPolicy && !this.#used.has(plugin) ? idle : reasonFor(type);
      this.#findings.note(path, `${type}: ${reason}`);
    }
  }
}
