// What a scraper is pointed at: addresses become origin, path, id and headers. All faults are
// reported together, and credentials never leave this file but in a header.

import { ConfigError, type ConfigFault } from "../errors";
import { ENGINES, type EngineName, engineSpec } from "./engines";

/** An endpoint to read. A text is an address alone. */
export interface TargetOptions {
  /** Where it is: `http://host:port`, with the path of its metrics when that is unusual. */
  readonly url: string;
  /** Its id in the pool. Default: scheme, host and port of the address. */
  readonly id?: string | undefined;
  /** Which engine it is. Default: recognised from its page. */
  readonly engine?: EngineName | undefined;
  /** Sent with every reading. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A checked target. */
export interface Target {
  readonly id: string;
  readonly origin: string;
  /** Path without query. */
  readonly path: string;
  /** Query with its question mark, or empty. */
  readonly query: string;
  readonly engine: EngineName | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Checks targets.
 *
 * @param engine what they are where they do not say.
 * @throws ConfigError with every fault.
 */
export function resolveTargets(
  targets: readonly (string | TargetOptions)[],
  engine: EngineName | undefined,
): Target[] {
  const faults: ConfigFault[] = [];
  const resolved: Target[] = [];
  const ids = new Map<string, number>();
  targets.forEach((given, i) => {
    const target = resolveTarget(given, engine, `targets.${i}`, faults);
    if (target === undefined) return;
    const before = ids.get(target.id);
    if (before !== undefined) {
      const rule = `must have an id of its own, "${target.id}" is targets.${before} already`;
      faults.push({ path: `targets.${i}`, value: target.id, rule });
    }
    ids.set(target.id, i);
    resolved.push(target);
  });
  if (faults.length > 0) throw new ConfigError(faults);
  return resolved;
}

function resolveTarget(
  given: string | TargetOptions,
  engine: EngineName | undefined,
  path: string,
  faults: ConfigFault[],
): Target | undefined {
  const options: TargetOptions = typeof given === "string" ? { url: given } : given;
  const url = parseUrl(options?.url);
  if (url === undefined) {
    const rule = "must be an http or https address such as http://10.0.0.7:8000";
    faults.push({ path, value: hideCredentials(options?.url), rule });
    return undefined;
  }
  const own = options.engine ?? engine;
  if (own !== undefined && !ENGINES.some((spec) => spec.name === own)) {
    const rule = `must be one of ${ENGINES.map((spec) => spec.name).join(", ")}`;
    faults.push({ path: `${path}.engine`, value: own, rule });
    return undefined;
  }
  const usual = own === undefined ? "/metrics" : engineSpec(own).metricsPath;
  return {
    id: options.id ?? url.origin,
    origin: url.origin,
    path: url.pathname === "/" ? usual : url.pathname,
    query: url.search,
    engine: own,
    headers: { accept: ACCEPT, "accept-encoding": "identity", ...login(url), ...options.headers },
  };
}

const ACCEPT = "text/plain;version=0.0.4, */*;q=0.1";

function parseUrl(text: unknown): URL | undefined {
  if (typeof text !== "string" || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  return url.protocol === "http:" || url.protocol === "https:" ? url : undefined;
}

function login(url: URL): Record<string, string> {
  if (url.username === "" && url.password === "") return {};
  const plain = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  const bytes = new TextEncoder().encode(plain);
  return { authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}

/** A text without what stands before an at sign. */
function hideCredentials(text: unknown): unknown {
  return typeof text === "string" ? text.replace(/\/\/[^/]*@/, "//***@") : text;
}
