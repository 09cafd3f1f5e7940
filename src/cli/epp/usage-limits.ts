// The EPP's usage-limit policies as ceilings of bands.

import type { Findings } from "./findings";
import type { EppBand } from "./flow";
import type { EppPlugin } from "./plugins";

const HOLDBACK_KEYS = ["shape", "domain", "strategy", "minCeiling", "maxCeiling", "ceilings"];
const ZERO = "does not map: a ceiling is > 0 here; ceilings stay at 1";

/** The ceilings that a policy sets; undefined where they are the default, or do not map. */
export function translateCeilings(
  policy: EppPlugin,
  bands: readonly EppBand[],
  findings: Findings,
): object | undefined {
  const { type, path } = policy;
  if (type === "static-usage-limit-policy") return translateStatic(policy, findings);
  if (type === "priority-holdback-policy") return translateHoldback(policy, bands, findings);
  findings.note(path, `${type} does not map: ceilings are static or priority-holdback`);
  return undefined;
}

function translateStatic({ path, parameters }: EppPlugin, findings: Findings): object | undefined {
  const at = `${path}.parameters`;
  findings.strangers(parameters, at, ["threshold"]);
  const ceiling = readCeiling(parameters.threshold ?? 1, `${at}.threshold`, findings);
  return ceiling === undefined || ceiling === 1 ? undefined : { policy: "static", ceiling };
}

function translateHoldback(
  { path, parameters }: EppPlugin,
  bands: readonly EppBand[],
  findings: Findings,
): object | undefined {
  const at = `${path}.parameters`;
  findings.strangers(parameters, at, HOLDBACK_KEYS);
  const domain = readDomain(parameters, at, findings);
  if (domain === undefined) return undefined;
  if (domain === "explicit") return translateExplicit(parameters, bands, at, findings);
  const { minCeiling, maxCeiling = 1 } = parameters;
  if (minCeiling === undefined) {
    findings.fault(at, parameters, "must have a minCeiling");
    return undefined;
  }
  const min = readCeiling(minCeiling, `${at}.minCeiling`, findings);
  const max = readCeiling(maxCeiling, `${at}.maxCeiling`, findings);
  if (min === undefined || max === undefined) return undefined;
  if (min >= max) {
    findings.fault(`${at}.minCeiling`, min, `must be less than maxCeiling, which is ${max}`);
    return undefined;
  }
  if (domain === "rank") return { policy: "priority-holdback", min, max };
  return spreadByValue(bands, min, max, at, findings);
}

/** `domain`, or the older `strategy`. */
function readDomain(
  parameters: Record<string, unknown>,
  at: string,
  findings: Findings,
): "rank" | "value" | "explicit" | undefined {
  const { domain, strategy } = parameters;
  const words = { rank: "rank", value: "value", explicit: "explicit" } as const;
  const older = { "stepwise-spread": "rank", "linear-proportional": "value" } as const;
  if (domain === undefined && strategy === undefined) return "rank";
  const [key, all] = domain === undefined ? ["strategy", older] : ["domain", words];
  const found = Object.entries(all).find(([word]) => word === parameters[key]);
  if (found !== undefined) return found[1];
  const rule = `must be one of ${Object.keys(all).join(", ")}`;
  findings.fault(`${at}.${key}`, parameters[key], rule);
  return undefined;
}

/** Ceilings in proportion to priorities, written out for the bands that are listed. */
function spreadByValue(
  bands: readonly EppBand[],
  min: number,
  max: number,
  at: string,
  findings: Findings,
): object | undefined {
  const [highest, lowest] = [bands[0]?.priority, bands.at(-1)?.priority];
  if (highest === undefined || lowest === undefined || highest === lowest) {
    return { policy: "priority-holdback", min, max };
  }
  findings.note(at, "is written out for the bands that are listed; there it follows the live ones");
  const ceiling = bands.map(({ priority }) => {
    const share = (priority - lowest) / (highest - lowest);
    return Number((min + share * (max - min)).toFixed(6));
  });
  return { policy: "static", ceiling };
}

function translateExplicit(
  parameters: Record<string, unknown>,
  bands: readonly EppBand[],
  at: string,
  findings: Findings,
): object | undefined {
  const given = findings.object(parameters.ceilings, `${at}.ceilings`) ?? {};
  if (Object.keys(given).length === 0) findings.fault(at, parameters, "must have ceilings");
  for (const priority of Object.keys(given)) {
    if (bands.some((band) => String(band.priority) === priority)) continue;
    findings.note(`${at}.ceilings.${priority}`, "does not map: no band has this priority");
  }
  const ceiling = bands.map(({ priority, path }) => {
    const own = given[String(priority)];
    if (own === undefined) findings.note(path, `priority ${priority} has no ceiling; it gets 1`);
    return readCeiling(own ?? 1, `${at}.ceilings.${priority}`, findings);
  });
  const isWhole = ceiling.length > 0 && ceiling.every((one) => one !== undefined);
  return isWhole ? { policy: "static", ceiling } : undefined;
}

/** A number in (0, 1]; 0 is noted, anything else is a fault. */
function readCeiling(value: unknown, path: string, findings: Findings): number | undefined {
  if (typeof value === "number" && value > 0 && value <= 1) return value;
  if (value === 0) findings.note(path, ZERO);
  else findings.fault(path, value, "must be a number from 0 to 1");
  return undefined;
}
