// The kernel against plain JavaScript that does the same work, from 4 to 16,384 endpoints; then the
// pool's write and its answers when nothing changed; then the detector over objects.
//   npm run build && npx tsx bench/kernel.ts

import { readFileSync } from "node:fs";
import { EndpointPool, UtilizationDetector } from "../dist/index.js";
import { type Contestant, ObjectLoop, ROW, ScoreOnWrite, TypedArrayLoop } from "./contestants";
import { type Row, report, seededRandom, smoke, timeContestants } from "./lib";

const STALENESS_MS = 200;
const NOW = 1_000_000;
const SIZES = smoke ? [8, 64, 256] : [4, 8, 16, 64, 256, 1024, 16384];

/** The exports this benchmark uses; assembly/README.md describes them all. */
interface Exports {
  memory: WebAssembly.Memory;
  reserve(n: number): number;
  configure(stalenessMs: number, scoredUntilMs: number, ignore: number): void;
  rowsPtr(): number;
  resultPtr(): number;
  columnPtr(column: number): number;
  score(from: number, to: number): void;
  reduce(n: number, now: number): void;
  select(n: number, now: number): void;
}

class WasmKernel implements Contestant {
  readonly name = "kernel";
  readonly result: Float64Array;
  readonly candidates: Uint32Array;
  readonly #exports: Exports;
  readonly #rows: Float64Array;
  readonly #n: number;

  constructor(n: number, stalenessMs: number) {
    const module = new WebAssembly.Module(readFileSync("dist/kernel.wasm"));
    const exports = new WebAssembly.Instance(module).exports as unknown as Exports;
    exports.reserve(n);
    exports.configure(stalenessMs, stalenessMs, 0);
    const { buffer } = exports.memory;
    this.#exports = exports;
    this.#n = n;
    this.#rows = new Float64Array(buffer, exports.rowsPtr(), n * ROW);
    this.result = new Float64Array(buffer, exports.resultPtr(), 9);
    this.candidates = new Uint32Array(buffer, exports.columnPtr(5), n);
  }

  write(i: number, row: Float64Array): void {
    this.#rows.set(row, i * ROW);
    this.#exports.score(i, i + 1);
  }

  judge(now: number, list: boolean): void {
    if (list) this.#exports.select(this.#n, now);
    else this.#exports.reduce(this.#n, now);
  }
}

/** A pool as it is in service: mixed load, nearly all fresh, 1 % without a fresh reading. */
function makeRows(n: number): Float64Array[] {
  const random = seededRandom(n);
  return Array.from({ length: n }, () => {
    const waiting = Math.floor(random() * 8);
    const kv = random();
    const stale = random() < 0.01;
    const time = NOW - random() * 100 - (stale ? 1000 : 0);
    return Float64Array.of(waiting, kv, 5, 0.8, 5, 0.8, time, 1);
  });
}

function proveEqual(contestants: Contestant[]): void {
  const bits = (values: Float64Array) => [...new BigUint64Array(values.slice(0, 9).buffer)].join();
  for (const contestant of contestants) contestant.judge(NOW, true);
  const [first, ...others] = contestants;
  if (first === undefined) return;
  const count = first.result[7] ?? 0;
  const list = first.candidates.slice(0, count).join();
  for (const other of others) {
    const same = bits(other.result) === bits(first.result);
    if (!same || other.candidates.slice(0, count).join() !== list) {
      throw new Error(`${other.name} does not agree with ${first.name}`);
    }
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function compareKernel(): void {
  const rows: Row[] = [];
  for (const n of SIZES) {
    const contestants = [TypedArrayLoop, ScoreOnWrite, ObjectLoop, WasmKernel].map(
      (Class) => new Class(n, STALENESS_MS),
    );
    makeRows(n).forEach((row, i) => {
      for (const contestant of contestants) contestant.write(i, row);
    });
    proveEqual(contestants);
    for (const list of [true, false]) {
      const ns = timeContestants(
        Object.fromEntries(contestants.map((c) => [c.name, () => c.judge(NOW, list)])),
      );
      const kernel = ns.kernel ?? Number.NaN;
      const best = Math.min(...contestants.slice(0, 2).map((c) => ns[c.name] ?? Number.NaN));
      rows.push({
        endpoints: n,
        answer: list ? "saturation + candidates" : "saturation",
        ...Object.fromEntries(
          Object.entries(ns).map(([name, value]) => [`${name}, ns`, round(value)]),
        ),
        "best typed arrays / kernel": round(best / kernel),
      });
    }
  }
  report("kernel", rows);
}

/** The clock is a variable, so that its cost is not in the figures. */
function comparePool(): void {
  const rows: Row[] = [];
  for (const n of SIZES) {
    let now = NOW;
    const pool = new EndpointPool(
      { metricsStalenessThreshold: STALENESS_MS },
      { clock: () => now },
    );
    const ids = Array.from({ length: n }, (_, i) => `http://10.0.0.${i}:8000`);
    const samples = makeRows(n).map((row) => ({
      waitingQueueSize: row[0] as number,
      kvCacheUsagePercent: row[1] as number,
    }));
    ids.forEach((id, i) => {
      pool.add(id);
      pool.report(id, samples[i]);
    });
    now += 1;
    let i = 0;
    const kernel = new WasmKernel(n, STALENESS_MS);
    const rowsOf = makeRows(n);
    const ns = timeContestants({
      "kernel, row written and scored": () => {
        i = i + 1 < n ? i + 1 : 0;
        kernel.write(i, rowsOf[i] as Float64Array);
      },
      "report, scored": () => {
        i = i + 1 < n ? i + 1 : 0;
        pool.report(ids[i] as string, samples[i]);
      },
      "acquire, start, release": () => {
        i = i + 1 < n ? i + 1 : 0;
        const lease = pool.acquire(ids[i] as string, { tokens: 500 });
        lease.started();
        lease.release();
      },
      "performance.now": () => performance.now(),
      saturation: () => pool.saturation(),
      candidates: () => pool.candidates(),
      "report + candidates": () => {
        i = i + 1 < n ? i + 1 : 0;
        pool.report(ids[i] as string, samples[i]);
        pool.candidates();
      },
    });
    rows.push({
      endpoints: n,
      ...Object.fromEntries(
        Object.entries(ns).map(([name, value]) => [`${name}, ns`, round(value)]),
      ),
    });
  }
  report("pool", rows);
}

interface EndpointLike {
  id: string;
  metrics: { waitingQueueSize: number; kvCacheUsagePercent: number; updateTime: number };
}

/** The same rules over the same objects, as one would write them by hand. */
function evaluatePlainly(endpoints: EndpointLike[], now: number) {
  const n = endpoints.length;
  const whole = n & ~3;
  const sums = new Float64Array(8);
  const scores = new Float64Array(n);
  const candidates: EndpointLike[] = [];
  let max = 0;
  let stale = 0;
  let unusable = 0;
  for (let i = 0; i < n; i++) {
    const endpoint = endpoints[i] as EndpointLike;
    const { waitingQueueSize: waiting, kvCacheUsagePercent: kv, updateTime } = endpoint.metrics;
    let score = 1;
    if (!(waiting >= 0 && kv >= 0 && Number.isFinite(waiting) && Number.isFinite(kv))) unusable++;
    else if (!Number.isFinite(updateTime)) unusable++;
    else if (!(Math.abs(now - updateTime) <= STALENESS_MS)) stale++;
    else {
      score = Math.max(waiting / 5, kv / 0.8);
      if (waiting < 5 && kv < 0.8) candidates.push(endpoint);
    }
    if (i === whole) foldPlainly(sums);
    const lane = i < whole ? i & 3 : 0;
    sums[lane] = (sums[lane] as number) + score;
    sums[lane + 4] = (sums[lane + 4] as number) + Math.min(score, 1);
    if (score > max) max = score;
    scores[i] = score;
  }
  if (whole === n) foldPlainly(sums);
  const mean = (sums[0] as number) / n;
  return {
    saturation: mean,
    candidates: candidates.length > 0 ? candidates : endpoints,
    failedOpen: candidates.length === 0,
    scores,
    fresh: n - stale - unusable,
    stale,
    unusable,
    mean,
    capped: (sums[4] as number) / n,
    max,
  };
}

function foldPlainly(sums: Float64Array): void {
  for (const at of [0, 4]) {
    const even = (sums[at] as number) + (sums[at + 2] as number);
    sums[at] = even + ((sums[at + 1] as number) + (sums[at + 3] as number));
  }
}

function compareDetector(): void {
  const rows: Row[] = [];
  for (const n of SIZES) {
    const endpoints = makeRows(n).map((row, i) => ({
      id: `endpoint-${i}`,
      metrics: {
        waitingQueueSize: row[0] as number,
        kvCacheUsagePercent: row[1] as number,
        updateTime: row[6] as number,
      },
    }));
    const config = { metricsStalenessThreshold: STALENESS_MS };
    const detector = new UtilizationDetector<EndpointLike>(config, { clock: () => NOW });
    const ours = detector.evaluate(endpoints);
    const plain = evaluatePlainly(endpoints, NOW);
    for (const key of ["saturation", "capped", "max", "fresh", "stale", "unusable"] as const) {
      if (!Object.is(ours[key], plain[key])) throw new Error(`${key} differs at ${n}`);
    }
    if (ours.candidates.length !== plain.candidates.length) throw new Error("candidates differ");
    const ns = timeContestants({
      detector: () => detector.evaluate(endpoints),
      plain: () => evaluatePlainly(endpoints, NOW),
    });
    const [detectorNs = 0, plainNs = 0] = [ns.detector, ns.plain];
    rows.push({
      endpoints: n,
      "evaluate, ns": round(detectorNs),
      "plain object loop, ns": round(plainNs),
      "evaluate / plain": round(detectorNs / plainNs),
    });
  }
  report("detector", rows);
}

compareKernel();
comparePool();
compareDetector();
