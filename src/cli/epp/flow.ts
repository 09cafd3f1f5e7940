// The EPP's flowControl section as the options of this package's flow controller.

import { durationField } from "../../config";
import type { Findings } from "./findings";
import type { EppPlugins } from "./plugins";
import { readQuantity } from "./quantity";
import { translateCeilings } from "./usage-limits";

/** What a flowControl section becomes. */
export interface TranslatedFlow {
  readonly flow: Record<string, unknown>;
  /** Whether tenants take turns. */
  readonly isFair: boolean;
}

/** A band as the EPP has it. */
export interface EppBand {
  readonly priority: number;
  readonly path: string;
  readonly maxRequests: number | undefined;
}

const BYTES = "does not map: requests that wait are limited by number, see maxRequests";
/** What does not map, and why. */
const UNMAPPED: Readonly<Record<string, string>> = {
  maxBytes: BYTES,
  enableEviction: "does not map: a request that has begun is never cut off for another one",
  noEndpointRequestTTL: "does not map: ttl holds while there is no endpoint, too",
  defaultNegativePriorityBand:
    "does not map: bands are listed one by one; add one below the others, with its maxRequests",
};
const SECTION_KEYS = [
  ...Object.keys(UNMAPPED),
  ...["maxRequests", "defaultRequestTTL", "defaultPriorityBand", "priorityBands"],
  ...["usageLimitPolicyPluginRef", "saturationDetector"],
];
const BAND_KEYS = ["priority", "maxBytes", "maxRequests", "fairnessPolicyRef", "orderingPolicyRef"];
const TTL = durationField('a duration >= 0 as a text, such as "60s"', (ms) => ms >= 0);

/** Translates the section; what does not map is noted. */
export function translateFlow(
  section: Record<string, unknown>,
  plugins: EppPlugins,
  findings: Findings,
): TranslatedFlow {
  findings.strangers(section, "flowControl", SECTION_KEYS);
  for (const [key, reason] of Object.entries(UNMAPPED)) {
    const isSaid = section[key] !== undefined && section[key] !== false;
    if (isSaid) findings.note(`flowControl.${key}`, reason);
  }
  const reader = new BandReader(plugins, findings);
  const bands = reader.readAll(section);
  const maxRequests = readLimit(section.maxRequests, "flowControl.maxRequests", findings);
  const ttl = readTtl(section.defaultRequestTTL, findings);
  const policyPath = "flowControl.usageLimitPolicyPluginRef";
  const policy = plugins.resolve(section.usageLimitPolicyPluginRef, policyPath);
  if (policy !== undefined) plugins.take(policy);
  const ceilings = policy === undefined ? undefined : translateCeilings(policy, bands, findings);
  // One band without a limit of its own is what there is without any.
  const isPlain = bands.length < 2 && bands[0]?.maxRequests === undefined;
  return {
    flow: {
      // The EPP gates on the mean; this package on a saturation that one hot endpoint does not close.
      aggregation: "mean",
      ...(maxRequests === undefined ? {} : { maxRequests }),
      ...(ttl === undefined ? {} : { ttl }),
      ...(isPlain ? {} : { bands: bands.map(printBand) }),
      ...(ceilings === undefined ? {} : { ceilings }),
    },
    isFair: reader.isFair,
  };
}

function printBand({ priority, maxRequests }: EppBand): object {
  return { name: String(priority), ...(maxRequests === undefined ? {} : { maxRequests }) };
}

/** A number of requests; 0 and nothing are the default. */
function readLimit(value: unknown, path: string, findings: Findings): number | undefined {
  if (value === undefined || value === null) return undefined;
  const limit = readQuantity(value);
  if (limit !== undefined && limit >= 0) return limit === 0 ? undefined : limit;
  findings.fault(path, value, 'must be a number of requests, such as 100 or "1k"');
  return undefined;
}

function readTtl(value: unknown, findings: Findings): string | undefined {
  if (value === undefined || value === null) return undefined;
  const path = "flowControl.defaultRequestTTL";
  const ms = typeof value === "string" ? TTL.read(value) : undefined;
  if (ms === undefined) findings.fault(path, value, `must be ${TTL.rule}`);
  if (ms === 0) findings.note(path, "does not map: nothing waits for ever here; ttl stays at 1m");
  return ms === undefined || ms === 0 ? undefined : String(value);
}

/** Reads bands, and what their policies say. */
class BandReader {
  /** Whether any band lets tenants take turns. */
  isFair = false;
  readonly #plugins: EppPlugins;
  readonly #findings: Findings;

  constructor(plugins: EppPlugins, findings: Findings) {
    this.#plugins = plugins;
    this.#findings = findings;
  }

  /** All bands, highest first; none where the config names none. */
  readAll(section: Record<string, unknown>): EppBand[] {
    const path = "flowControl.priorityBands";
    const bands = this.#findings
      .list(section.priorityBands, path)
      .flatMap((one, i) => this.#read(one, `${path}.${i}`));
    const usual = this.#findings.object(
      section.defaultPriorityBand,
      "flowControl.defaultPriorityBand",
    );
    const zero =
      usual === undefined
        ? []
        : this.#read({ ...usual, priority: 0 }, "flowControl.defaultPriorityBand");
    const isNamed = bands.some(({ priority }) => priority === 0);
    if (bands.length > 0 && !isNamed) {
      const text = "has no band 0, where requests without an objective go; it is added";
      this.#findings.note(path, text);
    }
    if (!isNamed) {
      const added = { priority: 0, path, maxRequests: undefined };
      if (bands.length > 0 || zero.length > 0) bands.push(zero[0] ?? added);
    }
    bands.forEach(({ priority, path: at }, i) => {
      const isFirst = bands.findIndex((one) => one.priority === priority) === i;
      if (!isFirst) this.#findings.fault(at, priority, "must be a priority of its own");
    });
    return bands.sort((a, b) => b.priority - a.priority);
  }

  #read(given: unknown, path: string): EppBand[] {
    const band = this.#findings.object(given, path);
    if (band === undefined) return [];
    this.#findings.strangers(band, path, BAND_KEYS);
    const { priority = 0, maxBytes, fairnessPolicyRef, orderingPolicyRef } = band;
    if (maxBytes !== undefined) this.#findings.note(`${path}.maxBytes`, BYTES);
    this.#readFairness(fairnessPolicyRef, `${path}.fairnessPolicyRef`);
    this.#readOrdering(orderingPolicyRef, `${path}.orderingPolicyRef`);
    if (!Number.isInteger(priority)) {
      this.#findings.fault(`${path}.priority`, priority, "must be an integer");
      return [];
    }
    const maxRequests = readLimit(band.maxRequests, `${path}.maxRequests`, this.#findings);
    return [{ priority: Number(priority), path, maxRequests }];
  }

  #readFairness(ref: unknown, path: string): void {
    const policy = this.#plugins.resolve(ref, path);
    if (policy === undefined) return;
    this.#plugins.take(policy);
    if (policy.type === "round-robin-fairness-policy") this.isFair = true;
    else if (policy.type !== "global-strict-fairness-policy") {
      this.#findings.note(path, `${policy.type} does not map: tenants can only take turns`);
    }
  }

  #readOrdering(ref: unknown, path: string): void {
    const policy = this.#plugins.resolve(ref, path);
    if (policy === undefined) return;
    this.#plugins.take(policy);
    if (policy.type === "fcfs-ordering-policy") return;
    const text = "does not map: deadlines are not read from requests; first come, first served";
    this.#findings.note(path, `${policy.type} ${text}`);
  }
}
