// The engine's step rules, one by one.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BlockPool } from "../../src/sim/blocks";
import { Engine } from "../../src/sim/engine";
import { EventQueue } from "../../src/sim/events";
import type { Job, JobRequest } from "../../src/sim/job";
import { ENGINE_DEFAULTS, type EngineModel } from "../../src/sim/presets";

/** A step takes 10 ms whatever is in it, unless a test says otherwise. */
const MODEL: EngineModel = {
  ...ENGINE_DEFAULTS,
  a: 10,
  d: 0,
  c: 0,
  p: 0,
  ttftConst: 0,
  kvBlocks: 1000,
};

function setUp(model: Partial<EngineModel> = {}) {
  const queue = new EventQueue();
  const engine = new Engine(queue, { ...MODEL, ...model });
  const log: string[] = [];
  const submit = (name: string, request: JobRequest): Job | undefined =>
    engine.submit(request, {
      firstToken: (now) => log.push(`${name} first ${now}`),
      finished: (now) => log.push(`${name} done ${now}`),
      failed: (now) => log.push(`${name} failed ${now}`),
    });
  const run = (until = Number.POSITIVE_INFINITY) => {
    let isOver = false;
    if (until < Number.POSITIVE_INFINITY) {
      queue.at(until, () => {
        isOver = true;
      });
    }
    while (!isOver && queue.step());
  };
  return { queue, engine, log, submit, run };
}

describe("EventQueue", () => {
  test("runs events in order of time, and those of one time in the order of planning", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 60 }), (times) => {
        const queue = new EventQueue();
        const seen: [number, number][] = [];
        for (const [i, time] of times.entries()) queue.at(time, () => seen.push([time, i]));
        while (queue.step()) expect(queue.now).toBe(seen.at(-1)?.[0]);
        const wanted = times.map((time, i): [number, number] => [time, i]);
        wanted.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
        expect(seen).toEqual(wanted);
      }),
    );
  });

  test("what is planned for the past happens now", () => {
    const queue = new EventQueue();
    let at = -1;
    queue.at(5, () => queue.at(1, () => (at = queue.now)));
    while (queue.step());
    expect(at).toBe(5);
  });
});

describe("a step", () => {
  test("takes a + d * kvTokens / 1000 + c * batch + p * prefillTokens", () => {
    const { log, submit, run } = setUp({ a: 5, d: 100, c: 3, p: 0.5 });
    submit("x", { promptTokens: 40, outputTokens: 3 });
    submit("y", { promptTokens: 60, outputTokens: 1 });
    run();
    const first = 5 + (100 * 100) / 1000 + 3 * 2 + 0.5 * 100;
    const second = first + 5 + (100 * 41) / 1000 + 3;
    const third = second + 5 + (100 * 42) / 1000 + 3;
    expect(log).toEqual([
      `x first ${first}`,
      `y first ${first}`,
      `y done ${first}`,
      `x done ${third}`,
    ]);
  });

  test("an answer of n tokens takes n steps", () => {
    const { log, submit, run, engine } = setUp();
    submit("x", { promptTokens: 5, outputTokens: 4 });
    run();
    expect(log).toEqual(["x first 10", "x done 40"]);
    expect(engine.counts).toMatchObject({
      steps: 4,
      outputTokens: 4,
      promptTokens: 5,
      finished: 1,
      busyMs: 40,
    });
  });

  test("what comes during a step waits for its end", () => {
    const { log, queue, submit, run } = setUp();
    submit("x", { promptTokens: 5, outputTokens: 3 });
    queue.at(12, () => submit("y", { promptTokens: 5, outputTokens: 1 }));
    run();
    expect(log).toEqual(["x first 10", "x done 30", "y first 30", "y done 30"]);
  });

  test("a long prompt is read in pieces of the token budget, beside those that generate", () => {
    const { log, submit, run, queue } = setUp({ maxNumBatchedTokens: 100 });
    submit("short", { promptTokens: 10, outputTokens: 9 });
    queue.at(15, () => submit("long", { promptTokens: 250, outputTokens: 1 }));
    run();
    // From the third step on 99 tokens of the budget are left for the prompt: 99 + 99 + 52.
    expect(log).toEqual(["short first 10", "long first 50", "long done 50", "short done 90"]);
  });

  test("without chunked prefill a prompt waits for a step that holds it whole", () => {
    const { log, submit, run } = setUp({ maxNumBatchedTokens: 100, chunkedPrefill: false });
    submit("a", { promptTokens: 60, outputTokens: 1 });
    submit("b", { promptTokens: 60, outputTokens: 1 });
    submit("c", { promptTokens: 30, outputTokens: 1 });
    submit("longer than any step", { promptTokens: 150, outputTokens: 1 });
    run();
    expect(log.filter((line) => line.includes("first"))).toEqual([
      "a first 10",
      "b first 20",
      "c first 20",
      "longer than any step first 30",
    ]);
  });

  test("no more than maxNumSeqs run, and the rest waits in order", () => {
    const { log, submit, run, engine } = setUp({ maxNumSeqs: 2 });
    for (const name of ["a", "b", "c", "d"]) submit(name, { promptTokens: 1, outputTokens: 2 });
    run(5);
    expect([engine.running, engine.waiting]).toEqual([2, 2]);
    run();
    expect(log.filter((line) => line.includes("done"))).toEqual([
      "a done 20",
      "b done 20",
      "c done 40",
      "d done 40",
    ]);
  });
});

describe("KV blocks", () => {
  test("a request holds as many as its tokens need, and gives all of them back", () => {
    const { engine, submit, run } = setUp();
    submit("x", { promptTokens: 30, outputTokens: 20 });
    run(5);
    expect(engine.blocks.used).toBe(2); // 30 tokens
    run(45);
    expect(engine.blocks.used).toBe(3); // 34 tokens
    run();
    expect(engine.blocks.used).toBe(0);
  });

  test("on shortage the youngest is preempted, to the front of those that wait, with nothing computed", () => {
    const { engine, log, submit, run } = setUp({ kvBlocks: 4, maxNumSeqs: 2 });
    const old = submit("old", { promptTokens: 31, outputTokens: 3 });
    const young = submit("young", { promptTokens: 32, outputTokens: 3 });
    submit("next", { promptTokens: 1, outputTokens: 3 });
    run(25); // in the second step young needs a third block, and there is none
    expect(old?.state).toBe("running");
    expect([young?.state, young?.computed, young?.preemptions]).toEqual(["waiting", 0, 1]);
    run();
    const order = log.filter((line) => line.includes("done")).map((line) => line.split(" ")[0]);
    expect(order).toEqual(["old", "young", "next"]);
    expect(log.filter((line) => line.startsWith("young first"))).toHaveLength(1);
    expect(engine.counts).toMatchObject({ preemptions: 1, preempted: 1, finished: 3 });
  });

  test("in a step with a preemption nobody is admitted", () => {
    const { engine, submit, run } = setUp({ kvBlocks: 6 });
    submit("a", { promptTokens: 32, outputTokens: 9 });
    submit("b", { promptTokens: 64, outputTokens: 9 });
    run(5);
    submit("c", { promptTokens: 1, outputTokens: 1 });
    run(15); // a needs a third block: b goes, and though 3 blocks are free now, c does not come in
    expect([engine.running, engine.waiting]).toEqual([1, 2]);
    run();
    expect(engine.counts.finished).toBe(3);
  });

  test("a request that could never fit fails at once, and the others go on", () => {
    const { log, submit, run } = setUp({ kvBlocks: 4 });
    submit("big", { promptTokens: 60, outputTokens: 6 });
    submit("fits exactly", { promptTokens: 60, outputTokens: 5 });
    run();
    expect(log[0]).toBe("big failed 0");
    expect(log.at(-1)).toMatch(/^fits exactly done/);
  });
});

describe("the prefix cache", () => {
  const prompt = (hashes: number[], promptTokens: number): JobRequest => ({
    promptTokens,
    outputTokens: 1,
    prefix: hashes,
    prefixChunkTokens: 64,
  });

  test("what one request computed another need not, in whole blocks", () => {
    const { engine, log, submit, run, queue } = setUp({ p: 1 });
    submit("a", prompt([1, 2], 140));
    queue.at(1000, () => submit("b", prompt([1, 2], 140)));
    queue.at(2000, () => submit("c", prompt([1, 3], 140)));
    run();
    expect(log).toContain("a first 150");
    expect(log).toContain(`b first ${1000 + 10 + 140 - 128}`);
    expect(log).toContain(`c first ${2000 + 10 + 140 - 64}`);
    expect(engine.counts.hitTokens).toBe(128 + 64);
  });

  test("at least one token of a prompt is computed", () => {
    const { log, submit, run, queue } = setUp({ p: 1 });
    submit("a", prompt([1], 64));
    queue.at(1000, () => submit("b", prompt([1], 64)));
    run();
    // A hit on all 64 would leave nothing: the whole chunk is computed again.
    expect(log).toContain(`b first ${1000 + 10 + 64}`);
  });

  test("blocks that only the cache holds count as free, and the oldest go first", () => {
    const { engine, submit, run, queue } = setUp({ kvBlocks: 12 });
    submit("a", prompt([1], 70));
    queue.at(100, () => submit("b", prompt([2], 70)));
    run();
    expect([engine.kv, engine.blocks.cached, engine.blocks.free]).toEqual([0, 8, 12]);
    submit("c", { promptTokens: 100, outputTokens: 1 }); // needs 7 of which 4 are empty
    run();
    expect([engine.blocks.find(1), engine.blocks.find(2)?.hash]).toEqual([undefined, 2]);
  });

  test("only whole blocks are shared", () => {
    const { engine, submit, run, queue } = setUp({ p: 1 });
    const shared = { promptTokens: 100, outputTokens: 1, prefix: [1], prefixChunkTokens: 60 };
    submit("a", shared);
    queue.at(1000, () => submit("b", shared));
    run();
    expect([engine.counts.hitTokens, engine.blocks.cached]).toEqual([48, 3]);
  });

  test("can be turned off", () => {
    const { engine, submit, run, queue } = setUp({ prefixCache: false });
    submit("a", prompt([1, 2], 140));
    queue.at(1000, () => submit("b", prompt([1, 2], 140)));
    run();
    expect([engine.counts.hitTokens, engine.blocks.cached]).toEqual([0, 0]);
  });

  test("blocks are never lost or made, whatever happens", () => {
    const operation = fc.record({
      at: fc.integer({ min: 0, max: 600 }),
      prompt: fc.integer({ min: 1, max: 200 }),
      output: fc.integer({ min: 1, max: 30 }),
      prefix: fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 3 }),
      cancelAfter: fc.option(fc.integer({ min: 0, max: 100 }), { nil: undefined }),
    });
    fc.assert(
      fc.property(
        fc.array(operation, { maxLength: 40 }),
        fc.integer({ min: 8, max: 40 }),
        (all, kvBlocks) => {
          const { engine, queue, run } = setUp({
            kvBlocks,
            maxNumBatchedTokens: 128,
            maxNumSeqs: 4,
          });
          let ended = 0;
          let cancelled = 0;
          for (const { at, prompt: promptTokens, output, prefix, cancelAfter } of all) {
            queue.at(at, () => {
              const request = { promptTokens, outputTokens: output, prefix, prefixChunkTokens: 32 };
              const end = () => ended++;
              const job = engine.submit(request, { firstToken() {}, finished: end, failed: end });
              if (cancelAfter === undefined || job === undefined) return;
              queue.after(cancelAfter, () => {
                if (job.state !== "ended") cancelled++;
                engine.cancel(job);
              });
            });
          }
          run();
          expect(ended + cancelled).toBe(all.length);
          expect([engine.blocks.used, engine.running, engine.waiting]).toEqual([0, 0, 0]);
          expect(engine.blocks.free).toBe(kvBlocks);
          expect(engine.blocks.take(kvBlocks)).toBe(true);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("a pool of blocks takes all or nothing", () => {
    const pool = new BlockPool(4);
    expect([pool.take(5), pool.take(4), pool.take(1)]).toEqual([false, true, false]);
    pool.give(2);
    expect([pool.free, pool.used]).toEqual([2, 2]);
  });
});

describe("faults", () => {
  test("a dead engine fails what is in it and refuses connections, and comes back empty", () => {
    const { engine, log, submit, run, queue } = setUp();
    submit("x", { promptTokens: 100, outputTokens: 50 });
    queue.at(25, () => engine.die());
    queue.at(30, () => expect(submit("y", { promptTokens: 1, outputTokens: 1 })).toBeUndefined());
    queue.at(40, () => {
      expect(engine.readGauges()).toBeUndefined();
      engine.recover();
    });
    queue.at(50, () => submit("z", { promptTokens: 1, outputTokens: 1 }));
    run();
    expect(log).toEqual(["x first 10", "x failed 25", "z first 60", "z done 60"]);
    expect(engine.blocks.used).toBe(0);
  });

  test("a hung engine takes requests, answers no scrape, and goes on where it was", () => {
    const { engine, log, submit, run, queue } = setUp();
    submit("x", { promptTokens: 1, outputTokens: 3 });
    queue.at(15, () => engine.hang());
    queue.at(50, () => {
      expect(engine.readGauges()).toBeUndefined();
      expect(submit("y", { promptTokens: 1, outputTokens: 1 })).toBeDefined();
    });
    queue.at(100, () => engine.recover());
    run();
    expect(log).toEqual(["x first 10", "y first 110", "y done 110", "x done 120"]);
  });

  test("a slow engine's steps take so many times as long", () => {
    const { engine, log, submit, run } = setUp();
    engine.slowness = 4;
    submit("x", { promptTokens: 1, outputTokens: 2 });
    run();
    expect(log.at(-1)).toBe("x done 80");
  });

  test("a cancelled request frees its place, wherever it is", () => {
    const { engine, log, submit, run, queue } = setUp({ maxNumSeqs: 1 });
    const x = submit("x", { promptTokens: 20, outputTokens: 9 });
    const y = submit("y", { promptTokens: 1, outputTokens: 1 });
    submit("z", { promptTokens: 1, outputTokens: 1 });
    queue.at(12, () => {
      for (const job of [x, y, x]) if (job !== undefined) engine.cancel(job);
      expect([engine.running, engine.waiting, engine.blocks.used]).toEqual([0, 1, 0]);
    });
    run();
    expect(log).toEqual(["x first 10", "z first 30", "z done 30"]);
  });

  test("a listener may cancel others while a step ends", () => {
    const { engine, queue, run } = setUp();
    const jobs: (Job | undefined)[] = [];
    const done: number[] = [];
    for (let i = 0; i < 3; i++) {
      const cancel = () => {
        for (const [k, job] of jobs.entries()) if (k !== i && job) engine.cancel(job);
      };
      const listener = { firstToken: cancel, finished: () => done.push(i), failed() {} };
      jobs.push(engine.submit({ promptTokens: 1, outputTokens: 2 }, listener));
    }
    run();
    expect([done, engine.blocks.used, queue.size]).toEqual([[0], 0, 0]);
  });
});

describe("the metrics page", () => {
  test("shows the engine as its present step began", () => {
    const { engine, submit, run } = setUp({ maxNumSeqs: 1, kvBlocks: 10 });
    submit("x", { promptTokens: 16, outputTokens: 5 });
    submit("y", { promptTokens: 16, outputTokens: 5 });
    run(5);
    submit("z", { promptTokens: 16, outputTokens: 5 });
    expect(engine.readGauges()).toEqual({ time: 0, waiting: 1, running: 1, kv: 0.1 });
    run(12);
    expect(engine.readGauges()).toEqual({ time: 10, waiting: 2, running: 1, kv: 0.2 });
  });

  test("an engine that publishes rarely shows what was, also once it is idle", () => {
    const { engine, submit, run } = setUp({ publishingLag: 100 });
    submit("x", { promptTokens: 1, outputTokens: 12 });
    run(99);
    expect(engine.readGauges()).toMatchObject({ time: 0, running: 0 });
    run(115);
    expect(engine.readGauges()).toMatchObject({ time: 100, running: 1 });
    run(150);
    expect(engine.running).toBe(0);
    expect(engine.readGauges()).toMatchObject({ time: 100, running: 1 });
    run(200);
    expect(engine.readGauges()).toMatchObject({ time: 200, running: 0 });
  });
});
