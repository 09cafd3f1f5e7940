// Where endpoints come from besides the config: a file that is looked at, and names that are asked for again
// and again. Each tells of its whole list, and only when that has changed.

import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import type { ConfigFault } from "../errors";
import { describeFault } from "../errors";
import type { Logger } from "../logger";
import { type PlacedFault, parseYaml } from "../yaml-file";
import type { DnsSource } from "./dns-options";
import { type EndpointContext, type RoutedEndpoint, readEndpoints } from "./endpoints";

/** A running source. */
export interface EndpointSource {
  /** Looks again now. Resolves when it has. */
  refresh(): Promise<void>;
  close(): void;
}

/** Told of the whole list when it has changed. */
export type OnEndpoints = (endpoints: readonly RoutedEndpoint[]) => void;

const FILE_INTERVAL_MS = 1000;
/** What its list is called in words of faults. */
const LIST_PATH = "endpoints";

/** Watches a file. What it cannot read or understand is reported once, and changes nothing. */
export function watchFile(
  path: string,
  context: EndpointContext,
  onEndpoints: OnEndpoints,
  logger: Logger | undefined,
): EndpointSource {
  let known: string | undefined;
  let told: string | undefined;
  const complain = (text: string) => {
    if (text !== told) logger?.warn(`${path}: ${text}; its endpoints stay as they were`);
    told = text;
  };
  return poll(FILE_INTERVAL_MS, async (isClosed) => {
    let text: string;
    try {
      text = await readFile(path, "utf8");
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
      return;
    }
    if (text === known || isClosed()) return;
    known = text;
    const { list, faults } = readList(text, context);
    if (faults.length > 0) {
      complain(faults.map(describePlaced).join("; "));
      return;
    }
    told = undefined;
    onEndpoints(list);
  });
}

function readList(
  text: string,
  context: EndpointContext,
): { readonly list: readonly RoutedEndpoint[]; readonly faults: readonly PlacedFault[] } {
  const file = parseYaml(text);
  if (file.faults !== undefined) return { list: [], faults: file.faults };
  const value = file.value ?? [];
  if (!Array.isArray(value)) {
    const rule = "must be a list of endpoints";
    return { list: [], faults: file.place([{ path: "", value, rule }]) };
  }
  const found: ConfigFault[] = [];
  const list = readEndpoints(value, LIST_PATH, context, found);
  // In the file, the list is all there is.
  const bare = found.map((fault) => ({ ...fault, path: fault.path.slice(LIST_PATH.length + 1) }));
  const faults = file.place(bare).map((one) => ({ ...one, path: `${LIST_PATH}.${one.path}` }));
  return { list, faults };
}

function describePlaced(fault: PlacedFault): string {
  const { line, column, path, value, rule } = fault;
  const isSyntax = path === "" && value === undefined;
  return `${line}:${column}: ${isSyntax ? rule : describeFault(fault)}`;
}

/** The one thing that the router asks of a resolver. */
interface AddressResolver {
  resolve4(host: string): Promise<string[]>;
  resolve6(host: string): Promise<string[]>;
}

/** Answers that say: there are none. Any other failure says nothing, and the addresses stay. */
const NONE = new Set(["ENODATA", "ENOTFOUND"]);

/** Asks for a name's addresses. A server that cannot be asked is reported once, and changes nothing. */
export function watchName(
  source: DnsSource,
  onEndpoints: OnEndpoints,
  logger: Logger | undefined,
): EndpointSource {
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  if (source.servers.length > 0) resolver.setServers([...source.servers]);
  let [v4, v6]: [readonly string[], readonly string[]] = [[], []];
  let known: string | undefined;
  let told: string | undefined;
  let isFailing = false;
  const ask = async (before: readonly string[], query: Promise<string[]>) => {
    try {
      return await query;
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
      if (NONE.has(code)) return [];
      isFailing = true;
      if (told !== code) logger?.warn(`${source.host}: ${code}; its addresses stay as they were`);
      told = code;
      return before;
    }
  };
  const { resolve4, resolve6 }: AddressResolver = {
    resolve4: (host) => resolver.resolve4(host),
    resolve6: (host) => resolver.resolve6(host),
  };
  const running = poll(source.refresh, async (isClosed) => {
    const { host } = source;
    isFailing = false;
    const answers = await Promise.all([ask(v4, resolve4(host)), ask(v6, resolve6(host))]);
    if (isClosed()) return;
    [v4, v6] = answers;
    if (!isFailing) told = undefined;
    const addresses = [...new Set([...v4, ...v6])].sort();
    const text = addresses.join();
    if (text === known) return;
    known = text;
    onEndpoints(addresses.map((address) => endpointAt(source, address)));
  });
  return {
    refresh: running.refresh,
    close: () => {
      running.close();
      resolver.cancel();
    },
  };
}

function endpointAt({ template }: DnsSource, address: string): RoutedEndpoint {
  const host = address.includes(":") ? `[${address}]` : address;
  const move = (url: string) => {
    const moved = new URL(url);
    moved.hostname = host;
    return moved;
  };
  const { origin } = move(template.origin);
  const target = { ...template.target, url: move(template.target.url).href };
  return { ...template, id: origin, origin, target };
}

/** Runs again and again, with a pause between; never twice at a time. Holds no process open. */
function poll(
  intervalMs: number,
  look: (isClosed: () => boolean) => Promise<void>,
): EndpointSource {
  let isClosed = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: Promise<void> | undefined;
  const run = (): Promise<void> => {
    running ??= look(() => isClosed).finally(() => {
      running = undefined;
      clearTimeout(timer);
      if (!isClosed) timer = setTimeout(run, intervalMs).unref();
    });
    return running;
  };
  return {
    refresh: run,
    close: () => {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}
