// Pages that were damaged on the way: 100,000 of them, and no reading that is not on the page. The
// oracle is a slow reader of its own that splits lines and uses regular expressions.

import { expect, test } from "vitest";
import { seededRandom } from "../../bench/lib";
import { ENGINES, type EngineSpec, type MetricRef } from "../../src/telemetry/engines";
import { readExposition } from "../../src/telemetry/exposition";
import { PAGES } from "./pages";

const LINE =
  /^[ \t]*([a-zA-Z_:][a-zA-Z0-9_:]*)(?:[ \t]*\{((?:[^"\n]|"(?:[^"\\\n]|\\[^\n])*")*?)\}[ \t]*|[ \t]+)([^ \t\n]+)([^\n]*)$/;
const PAIR = /^[ \t]*([a-zA-Z0-9_]+)[ \t]*=[ \t]*"((?:[^"\\\n]|\\[^\n])*)"[ \t]*(?:,[ \t]*|$)/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const TAIL = /^[ \t]*$|^[ \t]+#|^[ \t]+[+-]?\d+(\.\d*)?(e[+-]?\d+)?([ \t]*$|[ \t]+#)/i;
const REPLICAS = ["pid", "tp_rank", "pp_rank", "moe_ep_rank"];

/** The finite values of a metric per engine, read slowly. */
function readSlowly(page: string, spec: EngineSpec, ref: MetricRef): Map<string, number> {
  const engines = new Map<string, number>();
  for (const line of page.replace(/^\ufeff/, "").split(/\r?\n|\r$/)) {
    const [, name = "", labels, value = "", tail = ""] = LINE.exec(line) ?? [];
    if (!spec.prefixes.some((prefix) => name === prefix + ref.name)) continue;
    const pairs = readPairs(labels ?? "");
    if (pairs === undefined || !TAIL.test(tail)) continue;
    if (ref.label !== undefined && pairs.get(ref.label[0]) !== ref.label[1]) continue;
    const special = /^[+-]?(nan|inf(inity)?)$/i.test(value);
    if (!special && !NUMBER.test(value)) continue;
    const rest = [...pairs].filter(([key]) => !REPLICAS.includes(key) && key !== ref.label?.[0]);
    const engine = rest
      .map(([key, text]) => `${key}=${text}`)
      .sort()
      .join();
    const number = special ? Number.NaN : Number(value);
    const before = engines.get(engine) ?? Number.NaN;
    engines.set(engine, number > before || Number.isNaN(before) ? number : before);
  }
  return engines;
}

function readPairs(text: string): Map<string, string> | undefined {
  const pairs = new Map<string, string>();
  for (let rest = text.replace(/^[ \t]+|[ \t]+$/g, ""); rest !== ""; ) {
    const match = PAIR.exec(rest);
    if (match === null) return undefined;
    pairs.set(match[1] ?? "", match[2] ?? "");
    rest = rest.slice(match[0].length);
  }
  return pairs;
}

function expectedQueue(page: string, spec: EngineSpec): number | null {
  for (const ref of spec.waiting) {
    const engines = readSlowly(page, spec, ref);
    if (engines.size === 0) continue;
    return [...engines.values()].reduce((a, b) => a + (b >= 0 ? b : Number.NaN), 0);
  }
  return null;
}

const NOISE = [...'\n\r\t "{}=,#:_0123456789.eE+-NaInfx\\\u0000\ufeff\u00e9'];

function damage(page: string, random: () => number): string {
  let text = page;
  const times = 1 + Math.floor(random() * 4);
  for (let i = 0; i < times; i++) {
    const at = Math.floor(random() * (text.length + 1));
    const to = at + Math.floor(random() * 12);
    const noise = NOISE[Math.floor(random() * NOISE.length)] ?? "";
    const kind = random();
    if (kind < 0.3) text = text.slice(0, at) + noise + text.slice(at);
    else if (kind < 0.55) text = text.slice(0, at) + text.slice(to);
    else if (kind < 0.8) text = text.slice(0, at) + noise + text.slice(at + 1);
    else if (kind < 0.9) text = text.slice(0, at);
    else text = text.slice(0, at) + text.slice(at, to).repeat(3) + text.slice(at);
  }
  return text;
}

test("100,000 damaged pages are read without an exception, and only as they stand", () => {
  const seed = 20_261_201;
  const random = seededRandom(seed);
  for (let i = 0; i < 100_000; i++) {
    const known = PAGES[i % PAGES.length];
    const spec = ENGINES.find(({ name }) => name === known?.engine);
    if (known === undefined || spec === undefined) throw new Error("no page");
    const page = damage(known.page, random);
    const { engine, sample, findings } = readExposition(page, known.engine);
    expect(engine).toBe(known.engine);
    // What begins like another format is said to be one.
    if (findings.some(({ code }) => code === "not-an-exposition" || code === "json-quoted"))
      continue;
    const expected = expectedQueue(page, spec);
    const got = sample.waitingQueueSize;
    const same = Object.is(got, expected) || (Number.isNaN(got) && !Number.isFinite(expected));
    if (!same)
      throw new Error(`seed ${seed}, page ${i}: ${got}, not ${expected}\n${JSON.stringify(page)}`);
    readExposition(page);
  }
});
