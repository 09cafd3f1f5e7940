// The gate costs no throughput that the engines could have served: offered 0.9 of what they can do,
// a pool with the controller serves at least 0.98 of what it serves without.

import { expect, test } from "vitest";
import { seededRandom } from "../../bench/lib";
import { FlowScheduler } from "../../src/flow/scheduler";
import { EndpointPool, type Lease } from "../../src/index";
import {
  ModelledEngine,
  scrapeModelled,
  sendLeased,
  VirtualTime,
  type Wire,
} from "./modelled-pool";

const ENGINES = 4;
const PROMPT = 256;
const OUTPUT = 128;
const SECONDS = 40;
const WARM_UP_MS = 5000;

/** Requests per second that one engine can serve when it never idles. */
function capacityOf(): number {
  const time = new VirtualTime();
  const engine = new ModelledEngine(time);
  const more = () => engine.submit(PROMPT, OUTPUT, undefined, more);
  for (let i = 0; i < 256; i++) more();
  time.runUntil(5000);
  const before = engine.done;
  time.runUntil(15_000);
  return (engine.done - before) / 10;
}

interface Outcome {
  readonly served: number;
  readonly refused: number;
}

function run(wire: Wire, gated: boolean, rate: number): Outcome {
  const time = new VirtualTime();
  const random = seededRandom(5);
  const pool = new EndpointPool(
    { metricsStalenessThreshold: Math.max(200, 3 * wire.scrapeMs + wire.roundTripMs) },
    { clock: () => time.now, random: seededRandom(6) },
  );
  const engines = new Map<string, ModelledEngine>();
  for (let i = 0; i < ENGINES; i++) {
    engines.set(`e${i}`, new ModelledEngine(time));
    pool.add(`e${i}`);
  }
  const scheduler = new FlowScheduler(pool, {
    bandLimits: [5000],
    ceilings: [1],
    maxRequests: 5000,
    aggregation: "capped",
    shed: false,
  });
  // Pumps at every change of the pool, as the controller does.
  const pump = () => {
    if (scheduler.waiting > 0) scheduler.pump(time.now);
  };
  scrapeModelled(time, pool, engines, wire, pump);
  let served = 0;
  let refused = 0;
  const send = (lease: Lease | undefined) => {
    const engine = engines.get(lease?.endpoint.id ?? "");
    if (lease === undefined || engine === undefined) throw new Error("no endpoint");
    sendLeased(time, engine, lease, PROMPT, OUTPUT, wire, () => {
      if (time.now > WARM_UP_MS) served++;
      time.at(time.now, pump);
    });
  };
  const arrive = () => {
    if (gated) {
      const request = { band: 0, flow: "", ttlMs: 60_000, tokens: PROMPT };
      scheduler.enqueue(
        request,
        {
          admitted: send,
          failed: (error) => {
            throw error;
          },
          refused: () => {
            refused++;
          },
        },
        time.now,
      );
    } else send(pool.lease({ tokens: PROMPT }));
    time.at(time.now - (Math.log(1 - random()) / rate) * 1000, arrive);
  };
  time.at(0, arrive);
  // Starts are seen at once, and so is what only time tells.
  const tick = () => {
    pump();
    time.at(time.now + 5, tick);
  };
  time.at(0, tick);
  time.runUntil(SECONDS * 1000);
  return { served, refused };
}

const rate = 0.9 * ENGINES * capacityOf();
const WIRES = [50, 1000, 5000].flatMap((scrapeMs) =>
  [0, 150].flatMap((roundTripMs) => [
    { scrapeMs, roundTripMs, streams: true, marks: true },
    { scrapeMs, roundTripMs, streams: false, marks: true },
    { scrapeMs, roundTripMs, streams: true, marks: false },
  ]),
);

test.each(WIRES)(
  "scrape $scrapeMs ms, round trip $roundTripMs ms, streams: $streams, marks: $marks",
  (wire) => {
    const open = run(wire, false, rate);
    const gated = run(wire, true, rate);
    expect(gated.served / open.served).toBeGreaterThanOrEqual(0.98);
    expect(gated.refused).toBe(0);
  },
);
