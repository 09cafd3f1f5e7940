// Endpoints as the router knows them: what the scraper and the pool are told, and what the proxy needs
// beside it. Every list of endpoints (config, file, DNS) is read here.

import type { EndpointOptions } from "../config";
import type { ConfigFault } from "../errors";
import type { EngineName } from "../telemetry/engines";
import { readHeaders, readTargets, type TargetOptions } from "../telemetry/targets";
import { maySetOnRequests } from "./headers";
import { type Environment, fillIn, fillInValues } from "./secrets";

/** A checked endpoint. */
export interface RoutedEndpoint {
  /** Its id in the pool. */
  readonly id: string;
  /** Where requests go. */
  readonly origin: string;
  /** For the scraper. */
  readonly target: TargetOptions;
  /** For the pool. */
  readonly endpoint: EndpointOptions;
  /** Models that it serves; undefined: any. */
  readonly models: readonly string[] | undefined;
  /** Set on every request that is sent to it; names in lower case. */
  readonly requestHeaders: Readonly<Record<string, string>>;
}

/** How to read a list of endpoints. */
export interface EndpointContext {
  /** Engine of those that do not say. */
  readonly engine: EngineName | undefined;
  /** For `${NAME}`; undefined: such texts stay as they are. */
  readonly environment: Environment | undefined;
}

/**
 * Checks a list of endpoints; faults are added to `faults`.
 *
 * @param path where the list stands.
 * @param otherKeys options that the caller has taken out; for suggestions.
 */
export function readEndpoints(
  list: readonly unknown[],
  path: string,
  context: EndpointContext,
  faults: ConfigFault[],
  otherKeys: readonly string[] = [],
): RoutedEndpoint[] {
  const parts = list.map((given, i) => split(given, `${path}.${i}`, context.environment, faults));
  const targetFaults: ConfigFault[] = [];
  const targets = readTargets(
    parts.map(({ target }) => target),
    context.engine,
    targetFaults,
    ["models", "requestHeaders", ...otherKeys],
  );
  for (const fault of targetFaults) {
    faults.push({
      ...fault,
      path: fault.path.replace(/^targets/, path),
      rule: atHome(fault, path),
    });
  }
  if (faults.length > 0) return [];
  // Without faults, every part has become a target.
  return targets.map(({ id, origin, endpoint }, i) => {
    const { target, models, requestHeaders } = parts[i] as Part;
    const options = typeof target === "string" ? { url: target } : (target as TargetOptions);
    return { id, origin, target: options, endpoint, models, requestHeaders };
  });
}

/** No model is called so: people who write it mean all of them. */
const EVERY_MODEL = "*";

interface Part {
  readonly target: unknown;
  readonly models: readonly string[] | undefined;
  readonly requestHeaders: Readonly<Record<string, string>>;
}

/** What is the router's own, and what is for the scraper. */
function split(
  given: unknown,
  path: string,
  environment: Environment | undefined,
  faults: ConfigFault[],
): Part {
  if (typeof given === "string") {
    const target = fillIn(given, environment, path, faults);
    return { target, models: undefined, requestHeaders: {} };
  }
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    return { target: given, models: undefined, requestHeaders: {} };
  }
  const { models, requestHeaders, ...target }: Record<string, unknown> = { ...given };
  if (typeof target.url === "string") {
    target.url = fillIn(target.url, environment, `${path}.url`, faults);
  }
  if (target.headers !== undefined) {
    target.headers = fillInValues(target.headers, environment, `${path}.headers`, faults);
  }
  const at = `${path}.requestHeaders`;
  const filled = fillInValues(requestHeaders, environment, at, faults);
  return {
    target,
    models: readModels(models, `${path}.models`, faults),
    requestHeaders: readRequestHeaders(filled, at, faults),
  };
}

function readRequestHeaders(
  value: unknown,
  path: string,
  faults: ConfigFault[],
): Readonly<Record<string, string>> {
  const headers = readHeaders(value, path, faults) ?? {};
  for (const name of Object.keys(headers)) {
    if (maySetOnRequests(name)) continue;
    const rule = "must be a header of the request itself; this one is set by the router";
    faults.push({ path: `${path}.${name}`, value: name, rule });
  }
  return headers;
}

function readModels(
  value: unknown,
  path: string,
  faults: ConfigFault[],
): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const list: unknown[] = Array.isArray(value) ? value : [value];
  const isName = (one: unknown): one is string =>
    typeof one === "string" && one !== "" && one !== EVERY_MODEL;
  if (list.length > 0 && list.every(isName)) return [...new Set(list)];
  const rule = "must be the name of a model, or a list of them; without any, it serves every model";
  faults.push({ path, value, rule });
  return undefined;
}

/** A rule may name another target by its place. */
function atHome({ rule }: ConfigFault, path: string): string {
  return rule.replace(/\btargets\./g, `${path}.`);
}
