// Where endpoints come from besides the config: a file that is looked at, and names that are asked for again
// and again. Each tells of its whole list, and only when that has changed.

import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { ConfigFault } from "../errors";
import { describeFault } from "../errors";
import type { Logger } from "../logger";
import { type PlacedFault, parseYaml } from "../yaml-file";
import type { DnsSource } from "./dns-options";
import { type EndpointContext, type RoutedEndpoint, readEndpoints } from "./endpoints";

/** A running source. */
export interface EndpointSource {
  /** What it is called in the configuration, such as `endpointsFile`. */
  readonly path: "endpointsFile" | "dns";
  /** The file or the host. */
  readonly name: string;
  /** Why it could not be read when it was last looked at; undefined: it could. */
  readonly fault: string | undefined;
  /** Looks again now. Resolves when it has. */
  refresh(): Promise<void>;
  close(): void;
}

/** Told of the whole list when it has changed. */
export type OnEndpoints = (endpoints: readonly RoutedEndpoint[]) => void;

const FILE_INTERVAL_MS = 1000;
const SETTLING_MS = 50;
const SETTLING_LOOKS = 10;
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
  let fault: string | undefined;
  const complain = (text: string) => {
    if (text !== fault) logger?.warn(`${path}: ${text}; its endpoints stay as they were`);
    fault = text;
  };
  const source = poll(FILE_INTERVAL_MS, async (isClosed) => {
    let text: string;
    try {
      text = await readSettled(path, known);
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
      return;
    }
    if (isClosed()) return;
    if (text === known) {
      fault = undefined; // it had gone, and came back as it was
      return;
    }
    const { list, faults } = readList(text, context);
    if (faults.length > 0) {
      complain(faults.map(describePlaced).join("; "));
      return;
    }
    known = text;
    fault = undefined;
    onEndpoints(list);
  });
  return {
    ...source,
    path: "endpointsFile",
    name: path,
    get fault() {
      return fault;
    },
  };
}

/** A changed file is read until it stays the same for a moment: it may be half written. */
async function readSettled(path: string, known: string | undefined): Promise<string> {
  let text = await readFile(path, "utf8");
  for (let i = 0; i < SETTLING_LOOKS && text !== known; i++) {
    const before = text;
    await sleep(SETTLING_MS, undefined, { ref: false });
    text = await readFile(path, "utf8");
    if (text === before) return text;
  }
  if (text !== known) throw new Error("is being written");
  return text;
}

function readList(
  text: string,
  context: EndpointContext,
): { readonly list: readonly RoutedEndpoint[]; readonly faults: readonly PlacedFault[] } {
  const file = parseYaml(text);
  if (file.faults !== undefined) return { list: [], faults: file.faults };
  const { value } = file;
  if (!Array.isArray(value)) {
    const isEmpty = value === null;
    const rule = `${isEmpty ? "is empty, it " : ""}must be a list of endpoints, [] for none`;
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
  const isBare = path === "" && (value === undefined || value === null);
  return `${line}:${column}: ${isBare ? rule : describeFault(fault)}`;
}

/** Answers that say: there are none. Any other failure says nothing, and the addresses stay. */
const NONE = new Set(["ENODATA", "ENOTFOUND"]);

interface Addresses {
  readonly addresses: readonly string[];
  /** Why they are those of before; undefined: they are not. */
  readonly failure?: string | undefined;
}

async function ask(query: Promise<string[]>, before: readonly string[]): Promise<Addresses> {
  try {
    return { addresses: await query };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    return NONE.has(code) ? { addresses: [] } : { addresses: before, failure: code };
  }
}

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
  let fault: string | undefined;
  const { host } = source;
  const running = poll(source.refresh, async (isClosed) => {
    const answers = await Promise.all([
      ask(resolver.resolve4(host), v4),
      ask(resolver.resolve6(host), v6),
    ]);
    if (isClosed()) return;
    [v4, v6] = [answers[0].addresses, answers[1].addresses];
    const failures = new Set(answers.flatMap(({ failure }) => failure ?? []));
    const text = [...failures].join(", ");
    if (text !== "" && text !== fault) {
      logger?.warn(`${host}: ${text}; its addresses stay as they were`);
    }
    fault = text === "" ? undefined : text;
    const addresses = [...new Set([...v4, ...v6])].sort();
    const isUnknown = known === undefined && addresses.length === 0 && text !== "";
    const list = addresses.join();
    if (isUnknown || list === known) return;
    known = list;
    onEndpoints(addresses.map((address) => endpointAt(source, address)));
  });
  return {
    path: "dns",
    name: host,
    get fault() {
      return fault;
    },
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
): Pick<EndpointSource, "refresh" | "close"> {
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
