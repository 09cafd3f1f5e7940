// The pool against a model that keeps everything in plain objects and caches nothing: whatever the
// order of adds, removals, reports, readings that end late, passing time and questions, the answers
// are the same. The cache never answers wrongly.

import { expect, test } from "vitest";
import { seededRandom } from "../bench/lib";
import { EndpointPool, type Reading, type StalenessPolicy } from "../src/index";
import { judge, type OracleRow } from "./oracle";

interface Model {
  readonly id: string;
  q: number;
  weight: number;
  waiting: number;
  kv: number;
  engines: number;
  updateTime: number;
}

interface Begun {
  readonly reading: Reading;
  readonly of: Model;
  readonly at: number;
}

const POLICIES: StalenessPolicy[] = ["saturated", "ignore", "hold"];

function rowOf(model: Model): OracleRow {
  const q = model.q * model.engines;
  const { waiting, kv, updateTime, weight } = model;
  return { waiting, kv, q, k: 0.8, queueLimit: q, kvLimit: 0.8, updateTime, weight };
}

test.each(POLICIES)("random operations agree with the model under %s", (stalenessPolicy) => {
  const seed = 4242;
  const random = seededRandom(seed);
  const int = (n: number) => Math.floor(random() * n);
  let now = 10_000;
  const pool = new EndpointPool(
    { stalenessPolicy, holdFor: 300 },
    { clock: () => now, capacity: 1 },
  );
  const models: Model[] = [];
  let begun: Begun[] = [];
  const rules = { staleness: 200, policy: stalenessPolicy, holdFor: 300 };

  const take = (model: Model, time: number, waiting: number, kv: number, engines: number) => {
    const isOlder = time < model.updateTime && model.updateTime <= now;
    if (!isOlder) Object.assign(model, { waiting, kv, engines, updateTime: time });
    return !isOlder;
  };
  const check = (step: number) => {
    const expected = judge(models.map(rowOf), rules, now);
    const ids = models.map(({ id }) => id);
    const passing = expected.candidates.map((i) => ids[i]);
    const candidates = pool.candidates().map(({ id }) => id);
    expect(candidates, `seed ${seed}, step ${step}`).toEqual(passing.length > 0 ? passing : ids);
    expect(pool.saturation()).toBe(expected.mean);
    const evaluation = pool.evaluate();
    expect([...evaluation.scores]).toEqual(expected.scores);
    expect(evaluation).toMatchObject({
      mean: expected.mean,
      capped: expected.capped,
      weighted: expected.weighted,
      max: expected.max,
      fresh: expected.fresh,
      stale: expected.stale,
      unusable: expected.unusable,
      failedOpen: passing.length === 0,
    });
  };

  for (let step = 0; step < 20_000; step++) {
    const model = models[int(models.length)];
    const kind = random();
    if (kind < 0.06 || model === undefined) {
      const id = `e${int(40)}`;
      if (models.some((other) => other.id === id)) continue;
      const weight = 1 + int(4);
      pool.add(id, { weight });
      const nothing = { waiting: Number.NaN, kv: 0, engines: 1, updateTime: Number.NaN };
      models.push({ id, q: 5, weight, ...nothing });
    } else if (kind < 0.09) {
      pool.remove(model.id);
      models.splice(models.indexOf(model), 1);
    } else if (kind < 0.45) {
      const [waiting, kv, engines] = [int(9), random(), 1 + int(2)];
      const time = random() < 0.2 ? now + int(900) - 450 : now;
      const sample = { waitingQueueSize: waiting, kvCacheUsagePercent: kv, engines };
      const taken = pool.report(model.id, { ...sample, updateTime: time });
      expect(taken).toBe(take(model, time, waiting, kv, engines));
    } else if (kind < 0.5) {
      expect(pool.report(model.id, { waitingQueueSize: -1, kvCacheUsagePercent: 0 })).toBe(false);
    } else if (kind < 0.58) {
      begun.push({ reading: pool.beginReading(model.id), of: model, at: now });
    } else if (kind < 0.66 && begun.length > 0) {
      const one = begun[int(begun.length)] as Begun;
      begun = begun.filter((other) => other !== one);
      const [waiting, kv] = [int(9), random()];
      const taken = one.reading.report({ waitingQueueSize: waiting, kvCacheUsagePercent: kv });
      const isThere = models.includes(one.of);
      expect(taken).toBe(isThere && take(one.of, one.at, waiting, kv, 1));
    } else if (kind < 0.7) {
      model.q = 1 + int(8);
      pool.get(model.id)?.update({ queueDepthThreshold: model.q });
    } else if (kind < 0.85) {
      now += random() < 0.1 ? -int(100) : int(120);
    } else {
      check(step);
    }
    if (step % 7 === 0) {
      // Questions in any order, at the very edges of staleness too.
      const [edge] = models.map(({ updateTime }) => updateTime + 200).filter((t) => t > now);
      if (edge !== undefined && random() < 0.3) now = edge;
      if (random() < 0.5) pool.saturation();
      if (random() < 0.5) pool.candidates();
    }
  }
  check(-1);
});

test("10,000 endpoints added and removed at the front keep their order and rows", () => {
  let now = 0;
  const pool = new EndpointPool({}, { clock: () => now });
  for (let i = 0; i < 10_000; i++) {
    pool.add(`e${i}`);
    pool.report(`e${i}`, { waitingQueueSize: i % 5, kvCacheUsagePercent: 0 });
    if (i >= 100) pool.remove(`e${i - 100}`);
  }
  now = 1;
  expect([...pool].map(({ id }) => id)[0]).toBe("e9900");
  expect([...pool.evaluate().scores]).toEqual(Array.from({ length: 100 }, (_, i) => (i % 5) / 5));
});
