// The options of endpoints that are found by name, checked.

import { isIP } from "node:net";
import { type Field, type Fields, readFields } from "../config";
import type { ConfigFault } from "../errors";
import { timeField } from "./config-fields";
import { type EndpointContext, type RoutedEndpoint, readEndpoints } from "./endpoints";

/** A checked source. */
export interface DnsSource {
  /** The name to ask for. */
  readonly host: string;
  /** In ms. */
  readonly refresh: number;
  /** Empty: the system's. */
  readonly servers: readonly string[];
  /** What each of its endpoints is, but for its address. */
  readonly template: RoutedEndpoint;
}

interface OwnOptions {
  refresh: number;
  servers: readonly string[];
}

const SERVER_RULE = 'a list of name servers, such as "10.0.0.2" or "127.0.0.1:5353"';
const servers: Field<readonly string[]> = {
  rule: SERVER_RULE,
  read: (value) =>
    Array.isArray(value) && value.length > 0 && value.every(isServer) ? [...value] : undefined,
};

/** The options that only such a source has. */
export const DNS_FIELDS: Fields<OwnOptions> = { refresh: timeField("5s"), servers };
const DEFAULT_REFRESH_MS = 5000;

/** Checks sources; faults are added to `faults`. */
export function readDnsSources(
  list: readonly unknown[],
  context: EndpointContext,
  faults: ConfigFault[],
): DnsSource[] {
  return list.flatMap((given, i) => readSource(given, `dns.${i}`, context, faults));
}

function readSource(
  given: unknown,
  path: string,
  context: EndpointContext,
  faults: ConfigFault[],
): DnsSource[] {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    faults.push({ path, value: given, rule: "must be an object with a url" });
    return [];
  }
  const { refresh, servers, ...endpoint }: Record<string, unknown> = { ...given };
  const own = readFields(DNS_FIELDS, { refresh, servers }, path, faults);
  if (Object.hasOwn(endpoint, "id")) {
    faults.push({ path: `${path}.id`, value: endpoint.id, rule: "each address has its own id" });
  }
  const templateFaults: ConfigFault[] = [];
  const keys = Object.keys(DNS_FIELDS);
  const [template] = readEndpoints([endpoint], path, context, templateFaults, keys);
  for (const fault of templateFaults) {
    faults.push({ ...fault, path: path + fault.path.slice(`${path}.0`.length) });
  }
  if (template === undefined) return [];
  const { protocol, hostname } = new URL(template.origin);
  if (protocol !== "http:" || isIP(hostname.replace(/^\[|\]$/g, "")) !== 0) {
    const rule = "must be an http address with a name, such as http://vllm.default.svc:8000";
    faults.push({ path: `${path}.url`, value: template.origin, rule });
    return [];
  }
  const { refresh: refreshMs = DEFAULT_REFRESH_MS, servers: asked = [] } = own;
  return [{ host: hostname, refresh: refreshMs, servers: asked, template }];
}

function isServer(value: unknown): value is string {
  if (typeof value !== "string") return false;
  const [, v6, v4, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(value) ?? [];
  const isAddress = isIP(v6 ?? v4 ?? "") !== 0 || isIP(value) === 6;
  return isAddress && (port === undefined || Number(port) <= 65_535);
}
