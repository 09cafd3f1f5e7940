// What a scraper is pointed at: addresses become origin, path, id and headers. All faults are
// reported together, and credentials never leave this file but in a header.

import {
  ENDPOINT_FIELDS,
  type EndpointOptions,
  type Fields,
  oneOf,
  readFields,
  unknownKey,
} from "../config";
import type { ConfigFault } from "../errors";
import { ENGINES, type EngineName, engineSpec } from "./engines";

/** An endpoint to read. A text is an address alone. What else it says is for the pool's `add`. */
export interface TargetOptions extends EndpointOptions {
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
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** For the pool, where it does not know this endpoint yet. */
  readonly endpoint: EndpointOptions;
}

/** The names of the engines, as an option. */
export const ENGINE_FIELD = oneOf<EngineName>(...ENGINES.map(({ name }) => name));

const HIDDEN = "***";
const URL_RULE = "must be an http or https address such as http://10.0.0.7:8000";
const ACCEPT = "text/plain;version=0.0.4, */*;q=0.1";
/** Names are tokens and values are visible text, spaces and tabs (RFC 9110, 5.1 and 5.5). */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** They are read apart from the rest, so that no fault shows a secret. */
const SECRET_KEYS = ["url", "headers"];
type OpenOptions = Omit<TargetOptions, "url" | "headers">;
const OPEN_FIELDS: Fields<OpenOptions> = {
  ...ENDPOINT_FIELDS,
  engine: ENGINE_FIELD,
  id: {
    rule: "a text that is not empty",
    read: (value) => (typeof value === "string" && value !== "" ? value : undefined),
  },
};

/**
 * Checks targets; faults are added to `faults`.
 *
 * @param engine what they are where they do not say.
 * @param otherKeys options that the caller has taken out; for suggestions.
 */
export function readTargets(
  targets: unknown,
  engine: EngineName | undefined,
  faults: ConfigFault[],
  otherKeys: readonly string[] = [],
): Target[] {
  if (!Array.isArray(targets)) {
    faults.push({ path: "targets", value: targets, rule: "must be a list of addresses" });
    return [];
  }
  const resolved: Target[] = [];
  const places = new Map<string, number>();
  targets.forEach((given, i) => {
    const target = readTarget(given, engine, otherKeys, `targets.${i}`, faults);
    if (target === undefined) return;
    const before = places.get(target.id);
    if (before !== undefined) {
      const rule = `must have an id of its own, targets.${before} has this one already`;
      faults.push({ path: `targets.${i}`, value: target.id, rule });
    }
    places.set(target.id, i);
    resolved.push(target);
  });
  return resolved;
}

function readTarget(
  given: unknown,
  usualEngine: EngineName | undefined,
  otherKeys: readonly string[],
  path: string,
  faults: ConfigFault[],
): Target | undefined {
  const before = faults.length;
  if (typeof given !== "string" && (typeof given !== "object" || given === null)) {
    faults.push({ path, value: given, rule: URL_RULE });
    return undefined;
  }
  const isText = typeof given === "string";
  const {
    url: address,
    headers: own,
    ...open
  }: Record<string, unknown> = isText ? { url: given } : { ...given };
  const url = readUrl(address, isText ? path : `${path}.url`, faults);
  const headers = readHeaders(own, `${path}.headers`, faults);
  const known = [...SECRET_KEYS, ...Object.keys(OPEN_FIELDS), ...otherKeys];
  const openFaults: ConfigFault[] = [];
  const read = readFields(OPEN_FIELDS, open, path, openFaults);
  const { id, engine = usualEngine, ...endpoint } = read;
  for (const fault of openFaults) {
    const key = fault.path.slice(path.length + 1);
    const isUnknown = !Object.hasOwn(OPEN_FIELDS, key);
    faults.push(isUnknown ? { ...hideUnknown(fault), rule: unknownKey(key, known) } : fault);
  }
  if (url === undefined || faults.length > before) return undefined;
  const usualPath = engine === undefined ? "/metrics" : engineSpec(engine).metricsPath;
  return {
    id: id ?? url.origin,
    origin: url.origin,
    path: url.pathname === "/" ? usualPath : url.pathname,
    query: url.search,
    engine,
    headers: { accept: ACCEPT, "accept-encoding": "identity", ...login(url), ...headers },
    endpoint,
  };
}

function readUrl(text: unknown, path: string, faults: ConfigFault[]): URL | undefined {
  if (typeof text === "string" && URL.canParse(text)) {
    const url = new URL(text);
    if (url.protocol === "http:" || url.protocol === "https:") return url;
  }
  faults.push({ path, value: hideCredentials(text), rule: URL_RULE });
  return undefined;
}

/** Checks headers; a fault shows no value. Names come back in lower case. */
export function readHeaders(
  given: unknown,
  path: string,
  faults: ConfigFault[],
): Record<string, string> | undefined {
  if (given === undefined) return undefined;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    faults.push({ path, value: HIDDEN, rule: "must be an object of texts" });
    return undefined;
  }
  const headers: [string, string][] = [];
  for (const [name, value] of Object.entries(given)) {
    if (!HEADER_NAME.test(name) || typeof value !== "string" || !HEADER_VALUE.test(value)) {
      const rule = "must be a header: its name a token, its value a text without line breaks";
      faults.push({ path: `${path}.${name}`, value: HIDDEN, rule });
    } else headers.push([name.toLowerCase(), value]);
  }
  return Object.fromEntries(headers);
}

function login(url: URL): Record<string, string> {
  if (url.username === "" && url.password === "") return {};
  const bytes = new TextEncoder().encode(`${decode(url.username)}:${decode(url.password)}`);
  return { authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}

/** A stray percent sign stands for itself. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // the only fault is an escape that is none
  }
}

/** A fault of an option that nobody knows shows no value: it may be a header under a wrong name. */
export function hideUnknown(fault: ConfigFault): ConfigFault {
  return fault.rule.startsWith("unknown option") ? { ...fault, value: HIDDEN } : fault;
}

/**
 * A text without what stands before its last at sign, and without the values of its query; it may be no
 * address at all.
 */
export function hideCredentials(text: unknown): unknown {
  if (typeof text !== "string") return text;
  return text
    .replace(/^(https?:\/\/)?.*@/is, `$1${HIDDEN}@`)
    .replace(/([?&][^=&#]*=)[^&#]*/g, `$1${HIDDEN}`)
    .replace(/\?(?!.*=)[^#]+/s, `?${HIDDEN}`);
}
