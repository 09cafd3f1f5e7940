// Where the engine model can be checked against what is known: closed forms, queueing theory, measured
// runs of vLLM, and published figures in shape.

import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { capacityOf, expectedTpotMs, fitStep } from "../../src/sim/capacity";
import { Engine } from "../../src/sim/engine";
import { EventQueue } from "../../src/sim/events";
import { ENGINE_DEFAULTS, type EngineModel, PRESETS } from "../../src/sim/presets";
import { Random } from "../../src/sim/random";
import type { Scenario } from "../../src/sim/scenario";
import { runOnce } from "./run-once";

const MEASURED = new URL("../../../shared/sim/measured-h100.json", import.meta.url);

/** Mean TPOT of one engine under constant arrivals whose prompts cost nothing, in ms. */
function simulateTpot(
  step: { a: number; d: number },
  rate: number,
  prompt: number,
  output: number,
): number {
  const model = { ...ENGINE_DEFAULTS, c: 0, p: 0, ttftConst: 0, kvBlocks: 30_000, ...step };
  const queue = new EventQueue();
  const engine = new Engine(queue, model);
  const tpots: number[] = [];
  const n = 2000;
  for (let i = 0; i < n; i++) {
    queue.at((i * 1000) / rate, () => {
      let first = 0;
      engine.submit(
        { promptTokens: Math.round(prompt), outputTokens: output },
        {
          firstToken: (now) => {
            first = now;
          },
          finished: (now) => {
            // Past the time in which the batch fills, and before that in which it drains.
            if (i > n / 10 && i < (9 * n) / 10) tpots.push((now - first) / (output - 1));
          },
          failed: () => {
            throw new Error("nothing fails here");
          },
        },
      );
    });
  }
  while (queue.step());
  return tpots.reduce((sum, one) => sum + one, 0) / tpots.length;
}

describe("closed forms", () => {
  test.each([
    [5, 591, 247],
    [8, 575, 248],
    [20, 575, 248],
    [2, 200, 1000],
    [12, 1500, 60],
  ])(
    "TPOT at %d requests/s of %d in, %d out is a / (1 - d * rate * (out - 1) * (in + out / 2))",
    (rate, prompt, output) => {
      const step = { a: 6.1, d: 0.1832 };
      const expected = expectedTpotMs(step, rate, { prompt, output });
      expect(Math.abs(simulateTpot(step, rate, prompt, output) / expected - 1)).toBeLessThan(0.01);
    },
  );

  test("an engine beyond what it can do has no TPOT", () => {
    expect(expectedTpotMs({ a: 6.1, d: 0.1832 }, 40, { prompt: 575, output: 248 })).toBe(
      Number.POSITIVE_INFINITY,
    );
  });

  test("fitting finds the coefficients that runs were made with", () => {
    const step = { a: 13.6, d: 0.0577 };
    const runs = [5, 9, 20].map((rate) => {
      const lengths = { prompt: 580, output: 248 };
      return { rate, ...lengths, tpotMs: expectedTpotMs(step, rate, lengths) };
    });
    const { a, d } = fitStep(runs);
    expect(a).toBeCloseTo(step.a, 9);
    expect(d).toBeCloseTo(step.d, 9);
    expect(fitStep(runs.slice(0, 1))).toEqual({ a: runs[0]?.tpotMs, d: 0 });
  });

  test("an engine keeps up with 95 % of its capacity and not with 110 %", () => {
    const model = PRESETS["llama-3.1-8b/H100/tp1"] as EngineModel;
    const lengths = { prompt: 300, output: 150 };
    const rate = capacityOf(model, lengths);
    const run = (share: number) =>
      runOnce({
        duration: "120s",
        endpoints: [{ preset: "llama-3.1-8b/H100/tp1" }],
        traffic: [{ arrival: { process: "poisson", rate: rate * share }, ...lengths }],
      });
    expect(run(0.95).endMs).toBeLessThan(125_000);
    expect(run(1.1).endMs).toBeGreaterThan(128_000);
  });
});

describe("measured runs of vLLM on H100", () => {
  // The same campaign's shape, in figures of our own: two rates to fit, one to check.
  const rows: { model: string; rate: number; prompt: number; output: number; tpotMs: number }[] =
    existsSync(MEASURED)
      ? JSON.parse(readFileSync(MEASURED, "utf8")).rows.map((row: MeasuredRow) => ({
          model: row.model,
          rate: row.rate,
          prompt: row.prompt_len_mean,
          output: row.output_len_configured,
          tpotMs: (1000 * (row.e2e_s.mean - row.ttft_s.mean)) / (row.output_len_configured - 1),
        }))
      : [];
  const models = [...new Set(rows.map(({ model }) => model))];

  test(`are there to check against (${rows.length} rows; none means that ../shared is not there)`, () => {
    expect(models.length === 0 || rows.length >= 3 * models.length).toBe(true);
  });

  test.each(models)(
    "%s: TPOT at 8 requests/s within 4 per cent after fitting on the other rates",
    (model) => {
      const own = rows.filter((row) => row.model === model);
      const step = fitStep(own.filter(({ rate }) => rate !== 8));
      for (const { rate, prompt, output, tpotMs } of own.filter((row) => row.rate === 8)) {
        expect(Math.abs(simulateTpot(step, rate, prompt, output) / tpotMs - 1)).toBeLessThan(0.04);
      }
    },
  );

  test.each(models)("%s: its preset gives the TPOT of every row within 4 per cent", (model) => {
    const preset = PRESETS[PRESET_OF[model] ?? ""];
    expect(preset?.kind).toBe("measured-fit");
    for (const row of rows.filter((one) => one.model === model)) {
      const { a = 0, d = 0 } = preset ?? {};
      const simulated = simulateTpot({ a, d }, row.rate, row.prompt, row.output);
      expect(Math.abs(simulated / row.tpotMs - 1)).toBeLessThan(0.04);
    }
  });
});

interface MeasuredRow {
  model: string;
  rate: number;
  prompt_len_mean: number;
  output_len_configured: number;
  ttft_s: { mean: number };
  e2e_s: { mean: number };
}
const PRESET_OF: Record<string, string> = {
  "meta-llama/Llama-2-7b-hf": "llama-2-7b/H100/tp1",
  "meta-llama/Llama-2-70b-hf": "llama-2-70b/H100/tp4",
  "codellama/CodeLlama-34b-Instruct-hf": "codellama-34b/H100/tp2",
  "mistralai/Mixtral-8x7B-v0.1": "mixtral-8x7b/H100/tp2",
};

describe("queueing theory", () => {
  /** Mean wait in M/M/k, by Erlang's formula C, in units of the mean service time. */
  function erlangWait(k: number, load: number): number {
    let term = 1;
    let sum = 1;
    for (let i = 1; i < k; i++) {
      term *= load / i;
      sum += term;
    }
    term *= load / k;
    const tail = term / (1 - load / k);
    const mustWait = tail / (sum + tail);
    return mustWait / (k - load);
  }

  /** Waits of k servers by recursion over who is free first, for gaps and services in ms. */
  function recursionWait(k: number, n: number, gap: () => number, service: () => number): number {
    const free = new Float64Array(k);
    let [at, waits] = [0, 0];
    for (let i = 0; i < n; i++) {
      let first = 0;
      for (let j = 1; j < k; j++) if ((free[j] ?? 0) < (free[first] ?? 0)) first = j;
      const start = Math.max(at, free[first] ?? 0);
      waits += start - at;
      free[first] = start + service();
      at += gap();
    }
    return waits / n;
  }

  /** Mean wait of an engine that is k servers: its step takes the same whatever is in it. */
  function engineWait(k: number, n: number, gap: () => number, service: () => number): number {
    const queue = new EventQueue();
    const step = { a: 1, d: 0, c: 0, p: 0, ttftConst: 0, kvBlocks: 1e6, maxNumSeqs: k };
    const engine = new Engine(queue, { ...ENGINE_DEFAULTS, ...step });
    let [at, waits, count] = [0, 0, 0];
    const arrive = () => {
      if (count++ >= n) return;
      const arrivedAt = queue.now;
      const mustWait = engine.running + engine.waiting >= k;
      const firstToken = (now: number) => {
        // Who finds a server free waits only for the step that is under way.
        if (mustWait) waits += now - arrivedAt - 1;
      };
      const request = { promptTokens: 1, outputTokens: Math.max(1, Math.round(service())) };
      engine.submit(request, { firstToken, finished() {}, failed() {} });
      at += gap();
      queue.at(at, arrive);
    };
    queue.at(0, arrive);
    while (queue.step());
    return waits / n;
  }

  test.each([
    [1, 0.6],
    [4, 2.6],
    [10, 7],
  ])("with %d servers and a load of %d the wait is Erlang's within 2 per cent", (k, load) => {
    // The noise of chance is large, so it is taken out: the engine is compared with the recursion on
    // the same customers, and the recursion, which is quick, with Erlang's formula on very many.
    const mean = 200;
    const source = (seed: number, half: number) => {
      const gaps = new Random(seed, "gaps");
      const services = new Random(seed, "services");
      return [
        () => gaps.exponential(mean / load),
        () => services.exponential(mean) + half,
      ] as const;
    };
    const many = recursionWait(k, 8_000_000, ...source(5, 0));
    expect(Math.abs(many / (erlangWait(k, load) * mean) - 1)).toBeLessThan(0.01);
    const n = 60_000;
    const engine = engineWait(k, n, ...source(11, 0));
    // A customer who finds a server free holds it half a step longer, until the step ends.
    const isFree = 1 - erlangWait(k, load) * (k - load);
    const exact = recursionWait(k, n, ...source(11, isFree / 2));
    expect(Math.abs(engine / exact - 1)).toBeLessThan(0.01);
  });

  test("Little's law: requests in the system are their rate times their time in it", () => {
    const report = runOnce({
      duration: "300s",
      endpoints: [{ preset: "llama-3.1-8b/A100/tp1", count: 2 }],
      traffic: [
        {
          arrival: { process: "poisson", rate: "70%" },
          prompt: { mean: 300, cv: 1 },
          output: { mean: 150, cv: 1 },
        },
      ],
      network: 0,
    });
    const { series } = report;
    const during = series.timesMs.filter((time) => time <= 300_000).length;
    const inSystem = series.running.map((running, i) => running + (series.waiting[i] ?? 0));
    const mean = inSystem.slice(0, during).reduce((sum, one) => sum + one, 0) / during;
    const ttftConst = 18; // outside the engine
    const expected = (report.arrived / 300_000) * ((report.e2eMs.mean ?? 0) - ttftConst);
    expect(Math.abs(mean / expected - 1)).toBeLessThan(0.03);
  });

  test("work is conserved: every token asked for is made once, and an engine with work does not rest", () => {
    const report = runOnce({
      duration: "60s",
      endpoints: [{ preset: "llama-3.1-8b/A100/tp1", count: 1 }],
      traffic: [{ arrival: { process: "poisson", rate: "150%" }, prompt: 200, output: 100 }],
    });
    const [engine] = report.endpoints;
    expect(engine?.outputTokens).toBe(100 * report.arrived);
    expect(engine?.promptTokens).toBe(200 * report.arrived);
    expect(engine?.busy).toBeGreaterThan(0.995);
  });
});

describe("published figures, in shape", () => {
  /** TTFT p99 over seeds, in ms. */
  function p99(policy: "least-kv" | "plimsoll", interval: string): number {
    const seeds = [1, 2, 3, 4, 5];
    const values = seeds.map((seed) => {
      const report = runOnce(
        {
          duration: "6s",
          // Four engines for which 195 requests/s of 512 in, 512 out are about 85 % of what they can.
          endpoints: [
            { a: 4, d: 0.006, c: 0.004, p: 0.0165, kvBlocks: 60_000, maxNumSeqs: 512, count: 4 },
          ],
          traffic: [{ arrival: { process: "poisson", rate: 195 }, prompt: 512, output: 512 }],
          network: 0,
          scrape: { interval, latency: 0 },
          policy,
        },
        seed,
      );
      return report.ttftMs.p99 ?? Number.NaN;
    });
    return values.reduce((sum, one) => sum + one, 0) / seeds.length;
  }

  test("by stale KV usage alone, TTFT p99 rises with the interval: more than threefold from 5 to 100 ms", () => {
    const values = ["5ms", "10ms", "50ms", "100ms", "500ms"].map((interval) =>
      p99("least-kv", interval),
    );
    expect([...values].sort((a, b) => a - b)).toEqual(values);
    expect((values[3] ?? 0) / (values[0] ?? 1)).toBeGreaterThan(3);
  });

  test("with the live projection it rises by less than 10 % up to 5 s", () => {
    const values = ["5ms", "100ms", "1s", "5s"].map((interval) => p99("plimsoll", interval));
    expect(Math.max(...values) / (values[0] ?? 1)).toBeLessThan(1.1);
  });

  test("the preemption cliff: a KV cache that is 5 % smaller preempts nobody, a bit, a third", () => {
    const shares = [2200, 2100, 2000].map((kvBlocks) => {
      const all = [1, 2, 3].map((seed) => {
        const { preemptedRequests, arrived } = runOnce(nearTheCliff(kvBlocks), seed);
        return preemptedRequests / arrived;
      });
      return all.reduce((sum, share) => sum + share, 0) / all.length;
    });
    expect(shares[0]).toBeLessThan(0.01);
    expect(shares[1]).toBeGreaterThan(0.05);
    expect(shares[1]).toBeLessThan(0.17);
    expect(shares[2]).toBeGreaterThan(0.27);
    expect(shares[2]).toBeLessThan(0.66);
  });
});

/** One engine whose cache is just about full. The publication does not give its traffic. */
function nearTheCliff(kvBlocks: number): Scenario {
  const output = { mean: 512, cv: 0.1 };
  return {
    duration: "60s",
    endpoints: [{ preset: "llama-3.1-8b/H100/tp1", kvBlocks }],
    traffic: [{ arrival: { process: "constant", rate: 8.3 }, prompt: 512, output }],
  };
}
