// Admissions per second through the flow controller over a pool of 100 endpoints, 8 bands and 100
// flows, while 1,000 and 100,000 requests wait; and the memory that the waiting takes.
//   npm run build && node --expose-gc --import tsx bench/flow.ts

import { FlowController, type Permit } from "../dist/flow.js";
import { EndpointPool } from "../dist/index.js";
import { median, type Row, report, seededRandom, smoke } from "./lib";

const ENDPOINTS = 100;
const BANDS = 8;
const FLOWS = 100;
const ROUNDS = smoke ? 1 : 7;
const ADMISSIONS = smoke ? 2000 : 20_000;

function makeController() {
  const pool = new EndpointPool(
    { metricsStalenessThreshold: 1e9 },
    { clock: () => 1000, random: seededRandom(1), capacity: ENDPOINTS },
  );
  for (let i = 0; i < ENDPOINTS; i++) {
    pool.add(`http://10.0.0.${i}:8000`);
    const idle = { waitingQueueSize: 0, kvCacheUsagePercent: 0.1, runningRequests: 0 };
    pool.report(`http://10.0.0.${i}:8000`, idle);
  }
  const bands = Array.from({ length: BANDS }, () => ({ maxRequests: 200_000 }));
  return new FlowController(pool, { bands, clock: () => 1000 });
}

interface Admitted {
  readonly permit: Permit;
  readonly band: number;
}

/** Keeps `waiting` requests waiting, and times how long it takes to admit one more. */
async function measure(waiting: number): Promise<number> {
  const random = seededRandom(2);
  const controller = makeController();
  const admitted: Admitted[] = [];
  const ask = (band: number) => {
    const flow = `tenant-${Math.floor(random() * FLOWS)}`;
    controller.admit({ priority: band, flow, tokens: 500 }).then(
      (permit) => admitted.push({ permit, band }),
      () => undefined, // the ones that still wait at the end are refused
    );
  };
  for (let i = 0; i < 5 * ENDPOINTS + waiting; i++) ask(i % BANDS);
  await new Promise(setImmediate);
  if (controller.stats().waiting !== waiting) throw new Error("the gate is not where it should be");
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const start = process.hrtime.bigint();
    for (let done = 0; done < ADMISSIONS; ) {
      // A hundred requests end, as many are let in, and as many arrive.
      const ended = admitted.splice(0, 100);
      for (const { permit } of ended) permit.release();
      await Promise.resolve();
      await new Promise<void>((resolve) => queueMicrotask(resolve));
      for (const { band } of ended) ask(band);
      done += ended.length;
      if (ended.length === 0) await new Promise(setImmediate);
    }
    times.push(Number(process.hrtime.bigint() - start) / ADMISSIONS);
  }
  if (controller.stats().waiting !== waiting) throw new Error("requests were lost");
  for (const { permit } of admitted) permit.release();
  await controller.close();
  return median(times);
}

/** Heap of 100,000 waiting requests, and what three rounds of filling and draining leave. */
async function measureMemory(): Promise<Row[]> {
  const { gc } = globalThis as { gc?: () => void };
  if (gc === undefined) return [];
  const heap = () => {
    gc();
    return process.memoryUsage().heapUsed / 2 ** 20;
  };
  const controller = makeController();
  const count = smoke ? 10_000 : 100_000;
  const rows: Row[] = [];
  for (let round = 1; round <= 3; round++) {
    const before = heap();
    const asked = Array.from({ length: count + 5 * ENDPOINTS }, (_, i) =>
      controller.admit({ flow: `tenant-${i % FLOWS}`, priority: i % BANDS }),
    );
    const full = heap() - before;
    for (const promise of asked) promise.then((permit) => permit.release()).catch(() => undefined);
    await Promise.allSettled(asked);
    asked.length = 0;
    await new Promise(setImmediate);
    rows.push({
      round,
      waiting: count,
      "heap while they wait, MB": Math.round(full * 10) / 10,
      "heap after the drain, MB": Math.round(heap() * 100) / 100,
    });
  }
  await controller.close();
  return rows;
}

const few = await measure(1000);
const many = await measure(smoke ? 10_000 : 100_000);
report(
  "flow",
  [
    { waiting: 1000, ns: few },
    { waiting: smoke ? 10_000 : 100_000, ns: many },
  ].map(({ waiting, ns }) => ({
    waiting,
    "ns per admission": Math.round(ns),
    "admissions per second": Math.round(1e9 / ns),
    "of the cost at 1,000": Math.round((ns / few) * 100) / 100,
  })),
);
report("flow-memory", await measureMemory());
