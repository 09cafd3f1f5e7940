// A million random operations against plain counts: nothing is admitted twice or lost, no count is
// ever negative, every request ends in exactly one way, and after the drain everything is zero.

import { expect, test } from "vitest";
import { seededRandom } from "../../bench/lib";
import { FlowScheduler } from "../../src/flow/scheduler";
import type { RefusalReason, Ticket } from "../../src/flow/ticket";
import { EndpointPool, type Lease } from "../../src/index";

interface Asked {
  readonly ticket: Ticket;
  readonly band: number;
  ends: number;
  reason: RefusalReason | "admitted" | "failed" | undefined;
}

const BANDS = 3;
const LIMIT = 12;
const fault = new Error("a score that throws");

test("1,000,000 operations", () => {
  const seed = 77;
  const random = seededRandom(seed);
  const int = (n: number) => Math.floor(random() * n);
  let now = 0;
  const pool = new EndpointPool(
    { queueDepthThreshold: 3, metricsStalenessThreshold: 500 },
    { clock: () => now, random },
  );
  const scheduler = new FlowScheduler(pool, {
    bandLimits: Array(BANDS).fill(LIMIT),
    ceilings: [1, 0.9, 0.8],
    maxRequests: 30,
    aggregation: "capped",
    shed: false,
  });
  const waiting = new Set<Asked>();
  let leases: Lease[] = [];
  const ends: Record<string, number> = {};
  let asked = 0;

  const enqueue = () => {
    const band = int(BANDS);
    const deadline = random() < 0.3 ? now + int(500) : undefined;
    const among = random() < 0.02 ? [`e${int(12)}`] : undefined;
    const flow = `f${int(6)}`;
    const score =
      random() < 0.01
        ? () => {
            throw fault;
          }
        : undefined;
    const request = { band, flow, ttlMs: 1 + int(400), deadline, among, score, tokens: int(3000) };
    const entry = { band, ends: 0, reason: undefined } as Omit<Asked, "ticket"> & {
      ticket?: Ticket;
    };
    const end = (reason: Asked["reason"]) => {
      entry.ends++;
      entry.reason = reason;
      ends[String(reason)] = (ends[String(reason)] ?? 0) + 1;
      waiting.delete(entry as Asked);
      expect(entry.ends).toBe(1);
    };
    asked++;
    entry.ticket = scheduler.enqueue(
      request,
      {
        admitted: (lease) => {
          if (lease === undefined) throw new Error("no lease");
          leases.push(lease);
          end("admitted");
        },
        failed: (error) => {
          expect(error).toBe(fault);
          end("failed");
        },
        refused: ({ reason, waitedMs }) => {
          expect(waitedMs).toBeGreaterThanOrEqual(0);
          end(reason);
        },
      },
      now,
    );
    if (entry.ends === 0) waiting.add(entry as Asked);
  };

  const check = () => {
    expect(scheduler.waiting).toBe(waiting.size);
    for (let band = 0; band < BANDS; band++) {
      const count = [...waiting].filter((entry) => entry.band === band).length;
      expect(scheduler.waitingIn(band).requests).toBe(count);
    }
    for (const endpoint of pool) {
      const live = leases.filter((lease) => lease.endpoint === endpoint).length;
      expect(endpoint.leases).toBe(live);
      expect(endpoint.unstartedLeases).toBeGreaterThanOrEqual(0);
      expect(endpoint.unstartedLeases).toBeLessThanOrEqual(live);
    }
  };

  for (let step = 0; step < 1_000_000; step++) {
    const kind = random();
    if (kind < 0.35) enqueue();
    else if (kind < 0.45) {
      leases[int(leases.length)]?.started();
    } else if (kind < 0.7 && leases.length > 0) {
      const place = int(leases.length);
      const lease = leases[place];
      leases[place] = leases.at(-1) as Lease; // there is one
      leases.pop();
      lease?.release({ outputTokens: int(200), failed: random() < 0.2 });
      if (random() < 0.3) lease?.release();
      if (random() < 0.1) lease?.started();
      scheduler.pump(now);
    } else if (kind < 0.75) {
      const [entry] = waiting;
      if (entry !== undefined) {
        expect(scheduler.cancel(entry.ticket, now)).toBe(true);
        expect(scheduler.cancel(entry.ticket, now)).toBe(false);
      }
    } else if (kind < 0.78) {
      const id = `e${int(12)}`;
      if (pool.get(id) === undefined) pool.add(id);
      else if (random() < 0.5) {
        pool.remove(id);
        for (const lease of leases) if (lease.endpoint.id === id) lease.release();
        leases = leases.filter((lease) => lease.endpoint.id !== id);
      }
    } else if (kind < 0.93) {
      const id = `e${int(12)}`;
      const load = {
        waitingQueueSize: int(5),
        kvCacheUsagePercent: random(),
        runningRequests: int(9),
      };
      if (pool.get(id) !== undefined) pool.report(id, load);
      scheduler.pump(now);
    } else {
      now += int(40);
      scheduler.pump(now);
    }
    if (step % 5000 === 0) check();
  }

  check();
  scheduler.stop();
  enqueue();
  scheduler.refuseAll("shutting-down", now);
  for (const lease of leases) lease.release();
  leases = [];
  check();
  expect(waiting.size).toBe(0);
  expect(Object.values(ends).reduce((a, b) => a + b, 0)).toBe(asked);
  const counted = scheduler.counts.flatMap(({ admitted, refused }) => [
    admitted,
    ...Object.values(refused),
  ]);
  expect(counted.reduce((a, b) => a + b, 0)).toBe(asked);
  for (const reason of [
    "admitted",
    "saturated",
    "ttl-expired",
    "cancelled",
    "failed",
    "shutting-down",
  ]) {
    expect(ends[reason], reason).toBeGreaterThan(0);
  }
  expect(pool.snapshot().oldestUnstartedMs).toBeNull();
  for (const endpoint of pool.snapshot().endpoints) {
    expect(endpoint).toMatchObject({ leases: 0, unstartedLeases: 0 });
  }
});
