// The flow controller: who waits, who goes, and what the others are told.

import { describe, expect, test, vi } from "vitest";
import {
  AdmissionError,
  type AdmitOptions,
  FlowController,
  type FlowOptions,
  type Permit,
} from "../../src/flow/index";
import {
  ConcurrencyDetector,
  ConfigError,
  EndpointPool,
  maxOf,
  UtilizationDetector,
} from "../../src/index";

const idle = { waitingQueueSize: 0, kvCacheUsagePercent: 0, runningRequests: 0 };

/** A pool of `n` endpoints, each with room for `q` unstarted requests, and its controller. */
function make(n: number, options: FlowOptions = {}, q = 1) {
  const time = { now: 1000 };
  const clock = () => time.now;
  const config = { queueDepthThreshold: q, metricsStalenessThreshold: 1e9 };
  const pool = new EndpointPool(config, { clock });
  for (let i = 0; i < n; i++) {
    pool.add(`e${i}`);
    pool.report(`e${i}`, idle);
  }
  return { pool, time, controller: new FlowController(pool, { clock, ...options }) };
}

/** Lets every promise and microtask that is ready run. */
const settle = () => new Promise(setImmediate);

/** Asks, and notes how it ends. */
function ask(controller: FlowController, options: AdmitOptions = {}) {
  const state: { permit?: Permit; error?: AdmissionError } = {};
  controller.admit(options).then(
    (permit) => {
      state.permit = permit;
    },
    (error) => {
      state.error = error;
    },
  );
  return state;
}

describe("a way in without waiting", () => {
  test("is a permit at once, and counts as an admission", () => {
    const { pool, controller } = make(1, { bands: [{ name: "a" }, { name: "b" }] }, 2);
    const permit = controller.tryAdmit({ priority: "a", tokens: 5 });
    expect(permit).toMatchObject({ waitedMs: 0, lease: { endpoint: { id: "e0", leases: 1 } } });
    const { drainRate, bands } = controller.stats();
    expect(bands.map(({ admitted }) => admitted)).toEqual([1, 0]);
    expect(drainRate).toBeGreaterThan(0);
    permit?.release();
    expect(pool.get("e0")?.leases).toBe(0);
  });

  test("is shut when the gate is, for its band alone", () => {
    const ceilings = { policy: "static", ceiling: [1, 0.5] } as const;
    const { controller } = make(1, { bands: [{}, {}], ceilings }, 2);
    expect(controller.tryAdmit({ priority: 1 })).toBeDefined();
    expect(controller.tryAdmit({ priority: 1 })).toBeUndefined();
    expect(controller.tryAdmit({ priority: 0 })).toBeDefined();
    expect(controller.tryAdmit({ priority: 0 })).toBeUndefined();
    expect(controller.stats().waiting).toBe(0);
  });

  test("passes nobody who waits", async () => {
    const { pool, controller } = make(1);
    const first = controller.tryAdmit();
    const waiting = ask(controller);
    first?.release();
    expect(controller.tryAdmit()).toBeUndefined();
    await settle();
    waiting.permit?.release();
    expect(pool.get("e0")?.leases).toBe(0);
    expect(controller.tryAdmit()).toBeDefined();
  });

  test("is shut while it closes, where nothing comes into question, and to wrong options", async () => {
    const { controller } = make(1);
    expect(controller.tryAdmit({ among: ["other"] })).toBeUndefined();
    expect(() => controller.tryAdmit({ priority: "none" })).toThrow(ConfigError);
    await controller.close();
    expect(controller.tryAdmit()).toBeUndefined();
  });
});

describe("its source", () => {
  test("is listened to while something waits, and else not at all", async () => {
    const { pool, controller } = make(1);
    let listeners = 0;
    const { subscribe } = pool;
    pool.subscribe = (listener) => {
      listeners++;
      const end = subscribe.call(pool, listener);
      return () => {
        listeners--;
        end();
      };
    };
    const first = await controller.admit();
    expect(listeners).toBe(0);
    const second = ask(controller);
    expect(listeners).toBe(1);
    first.release();
    await settle();
    expect(second.permit).toBeDefined();
    expect(listeners).toBe(0);
  });
});

describe("admission", () => {
  test("goes at once while there is room, with the lease of the picked endpoint", async () => {
    const { pool, controller } = make(2);
    const permit = await controller.admit({ tokens: 100 });
    expect(permit).toMatchObject({ waitedMs: 0, lease: { endpoint: { leases: 1 } } });
    permit.release();
    permit[Symbol.dispose]();
    expect([...pool].map(({ leases }) => leases)).toEqual([0, 0]);
  });

  test("one open moment admits what the pool can take, and no more", async () => {
    const { pool, controller } = make(8, {}, 5);
    const asked = Array.from({ length: 1000 }, () => ask(controller, { tokens: 100 }));
    await settle();
    expect(asked.filter(({ permit }) => permit !== undefined).length).toBe(40);
    expect([...pool].map(({ unstartedLeases }) => unstartedLeases)).toEqual(Array(8).fill(5));
    expect(controller.stats()).toMatchObject({ waiting: 960, saturation: 1 });
    // Every start makes room for one more.
    for (const { permit } of asked) permit?.lease?.started();
    await settle();
    expect(asked.filter(({ permit }) => permit !== undefined).length).toBeGreaterThanOrEqual(80);
    await controller.close();
  });

  test("wakes on a released lease and on a sample, without a poll", async () => {
    const { pool, controller, time } = make(1);
    const first = await controller.admit();
    const second = ask(controller);
    await settle();
    expect(second.permit).toBeUndefined();
    time.now += 40;
    first.release();
    await settle();
    expect(second.permit?.waitedMs).toBe(40);
    pool.report("e0", { ...idle, waitingQueueSize: 5 });
    second.permit?.release();
    const third = ask(controller);
    await settle();
    expect(third.permit).toBeUndefined();
    pool.report("e0", idle);
    await settle();
    expect(third.permit).toBeDefined();
  });

  test("wakes when time alone opens the gate", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      const pool = new EndpointPool({
        metricsStalenessThreshold: 200,
        stalenessPolicy: "ignore",
        queueDepthThreshold: 1,
      });
      for (const id of ["full", "free"]) pool.add(id);
      pool.report("full", { ...idle, waitingQueueSize: 9 });
      const controller = new FlowController(pool);
      const waiting = ask(controller);
      await settle();
      expect(waiting.permit).toBeUndefined();
      // Under "ignore" a stale endpoint leaves the pool; nobody is left, and the saturation is 0.
      await vi.advanceTimersByTimeAsync(205);
      expect(waiting.permit).toBeDefined();
    } finally {
      vi.useRealTimers();
    }
  });

  test("a source without leases gives permits without one", async () => {
    const metrics = { waitingQueueSize: 0, kvCacheUsagePercent: 0, updateTime: 5 };
    const source = new UtilizationDetector({}, { clock: () => 5 }).over(() => [{ metrics }]);
    expect((await new FlowController(source).admit()).lease).toBeUndefined();
  });

  test("maxOf drives it: the concurrency limit holds where telemetry sees nothing", async () => {
    const { pool } = make(1, {}, 50);
    const detector = new ConcurrencyDetector(pool, { maxConcurrency: 2 });
    const controller = new FlowController(maxOf(pool, detector));
    const asked = [ask(controller), ask(controller), ask(controller)];
    await settle();
    for (const { permit } of asked) permit?.lease?.started();
    await settle();
    expect(asked.filter(({ permit }) => permit !== undefined).length).toBe(2);
    await controller.close();
  });

  test("one hot endpoint among nine idle does not close the gate", async () => {
    const { pool, controller } = make(10, {}, 5);
    pool.report("e4", { ...idle, waitingQueueSize: 2826 });
    expect((await controller.admit()).lease?.endpoint.id).not.toBe("e4");
  });

  test("a request with nowhere to go waits, and holds up no other flow", async () => {
    const { pool, controller } = make(2);
    const stuck = ask(controller, { flow: "a", among: ["other"] });
    const fine = ask(controller, { flow: "b" });
    await settle();
    expect([stuck.permit, fine.permit !== undefined]).toEqual([undefined, true]);
    pool.add("other");
    pool.report("other", idle);
    await settle();
    expect(stuck.permit?.lease?.endpoint.id).toBe("other");
  });
});

describe("order", () => {
  async function orderOf(options: FlowOptions, asks: (AdmitOptions & { name: string })[]) {
    const { controller } = make(1, options);
    const first = await controller.admit();
    const order: string[] = [];
    const all = asks.map(({ name, ...rest }) =>
      controller.admit(rest).then((permit) => {
        order.push(name);
        permit.release();
      }),
    );
    first.release();
    await Promise.all(all);
    return order.join(" ");
  }

  test("flows take turns, and within a flow it is first come, first served", async () => {
    const asks = ["a1", "a2", "a3", "b1", "b2", "c1"].map((name) => ({
      name,
      flow: name[0] ?? "",
    }));
    expect(await orderOf({}, asks)).toBe("a1 b1 c1 a2 b2 a3");
  });

  test("within a flow the nearest deadline is first, and a tie goes by arrival", async () => {
    const asks = [
      { name: "none" },
      { name: "late", deadline: 9000 },
      { name: "soon", deadline: 2000 },
      { name: "tie", deadline: 2000 },
    ];
    expect(await orderOf({}, asks)).toBe("soon tie late none");
  });

  test("a higher band goes first, by name or index; the lowest is the default", async () => {
    const bands = [{ name: "chat" }, { name: "batch" }];
    const asks = [
      { name: "default" },
      { name: "batch", priority: "batch" },
      { name: "chat", priority: "chat" },
      { name: "zero", priority: 0 },
    ];
    expect(await orderOf({ bands }, asks)).toBe("chat zero default batch");
  });

  test("a lower band is held back earlier, and a gated band gates those below it", async () => {
    const options: FlowOptions = {
      bands: [{ name: "a" }, { name: "b" }, { name: "c" }],
      ceilings: { policy: "priority-holdback", min: 0.5, max: 1 },
    };
    const { controller } = make(10, options, 1);
    expect(controller.stats().bands.map(({ ceiling }) => ceiling)).toEqual([1, 0.75, 0.5]);
    const counts = { a: 0, b: 0, c: 0 };
    for (const name of ["c", "b", "a"] as const) {
      const asked = Array.from({ length: 10 }, () => ask(controller, { priority: name }));
      await settle();
      counts[name] = asked.filter(({ permit }) => permit !== undefined).length;
    }
    expect(counts).toEqual({ c: 5, b: 3, a: 2 });
    await controller.close();
  });

  test("a low band under a flood of a high one waits until its time to live ends", async () => {
    const bands = [{ name: "high" }, { name: "low" }];
    const { controller, time } = make(1, { bands });
    let current = await controller.admit({ priority: "high" });
    const low = ask(controller, { priority: "low", ttl: "10s" });
    for (let second = 0; second < 11; second++) {
      const next = ask(controller, { priority: "high" });
      time.now += 1000;
      current.release();
      await settle();
      if (next.permit === undefined) throw new Error("the high band waits");
      current = next.permit;
    }
    expect(low.error).toMatchObject({ reason: "ttl-expired", status: 429 });
    expect(controller.stats().bands[1]?.refused["ttl-expired"]).toBe(1);
  });
});

describe("refusals", () => {
  test("a full band is 429 saturated, with what closed the gate and when to try again", async () => {
    const { controller } = make(1, { bands: [{ maxRequests: 2 }] });
    const asked = Array.from({ length: 4 }, () => ask(controller));
    await settle();
    const { error } = asked[3] ?? {};
    expect(error).toBeInstanceOf(AdmissionError);
    expect(error).toMatchObject({
      code: "PLIMSOLL_ADMISSION",
      reason: "saturated",
      status: 429,
      gate: { resource: "queue", value: 1, limit: 1, endpoint: "e0" },
    });
    expect(error?.retryAfterS).toBeGreaterThanOrEqual(1);
    expect(error?.retryAfterS).toBeLessThanOrEqual(30);
    expect(error?.message).toMatch(/saturated.*queue 1 of 1.*try again/);
    await controller.close();
  });

  test("the total limit holds over bands", async () => {
    const { controller } = make(1, { bands: [{}, {}], maxRequests: 1 });
    const asked = [0, 0, 1].map((priority) => ask(controller, { priority }));
    await settle();
    expect(asked.map(({ error }) => error?.reason)).toEqual([undefined, undefined, "saturated"]);
    await controller.close();
  });

  test("an empty pool is 503 no-endpoints: when full, when expired, and when shedding", async () => {
    const { controller, time } = make(0, { bands: [{ maxRequests: 1 }] });
    const asked = [ask(controller, { ttl: "1s" }), ask(controller)];
    await settle();
    expect(asked[1]?.error).toMatchObject({ reason: "no-endpoints", status: 503 });
    time.now += 1000;
    ask(controller);
    await settle();
    expect(asked[0]?.error).toMatchObject({ reason: "no-endpoints", status: 503 });
    await controller.close();
    const shed = ask(make(0, { mode: "shed" }).controller);
    await settle();
    expect(shed.error).toMatchObject({ reason: "no-endpoints", status: 503 });
  });

  test("shed refuses at once what may not go now", async () => {
    const { controller } = make(1, { mode: "shed" });
    const asked = [ask(controller), ask(controller)];
    await settle();
    expect(asked[0]?.permit).toBeDefined();
    expect(asked[1]?.error).toMatchObject({ reason: "saturated", status: 429, waitedMs: 0 });
    expect(controller.stats().waiting).toBe(0);
  });

  test("time to live counts from enqueue, and may only be shortened", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      const pool = new EndpointPool({ queueDepthThreshold: 1, metricsStalenessThreshold: 1e9 });
      pool.add("a");
      pool.report("a", idle);
      const controller = new FlowController(pool, { ttl: "2s" });
      pool.report("a", { ...idle, waitingQueueSize: 5 });
      const [short, long] = [ask(controller, { ttl: 500 }), ask(controller, { ttl: "1h" })];
      await vi.advanceTimersByTimeAsync(499);
      expect(short.error).toBeUndefined();
      await vi.advanceTimersByTimeAsync(3);
      expect(short.error).toMatchObject({ reason: "ttl-expired" });
      await vi.advanceTimersByTimeAsync(1499);
      expect(long.error).toMatchObject({ reason: "ttl-expired" });
      expect(long.error?.waitedMs).toBeGreaterThanOrEqual(2000);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test("an abort while waiting frees the place at once, and later aborts do nothing", async () => {
    const { controller } = make(1, { bands: [{ maxRequests: 1 }] });
    const first = await controller.admit();
    const caller = new AbortController();
    const gone = ask(controller, { signal: caller.signal });
    caller.abort(new Error("client left"));
    const next = ask(controller);
    await settle();
    expect(gone.error).toMatchObject({
      reason: "cancelled",
      status: undefined,
      retryAfterS: undefined,
    });
    expect(gone.error?.cause).toMatchObject({ message: "client left" });
    first.release();
    await settle();
    expect(next.permit).toBeDefined();
    const late = new AbortController();
    next.permit?.release();
    const permit = await controller.admit({ signal: late.signal });
    late.abort();
    expect(permit.lease?.endpoint.leases).toBe(1);
    await expect(controller.admit({ signal: AbortSignal.abort() })).rejects.toThrow(
      /caller is gone/,
    );
  });

  test("closing refuses new ones, and the waiting ones when the drain is over", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      const pool = new EndpointPool({ queueDepthThreshold: 1, metricsStalenessThreshold: 1e9 });
      pool.add("a");
      pool.report("a", idle);
      const controller = new FlowController(pool);
      const first = await controller.admit();
      const [second, third] = [ask(controller), ask(controller)];
      let closed = false;
      const closing = controller.close({ drain: "5s" }).then(() => {
        closed = true;
      });
      const late = ask(controller);
      first.release();
      await settle();
      pool.report("a", { ...idle, waitingQueueSize: 5 });
      expect([second.permit !== undefined, closed]).toEqual([true, false]);
      expect(late.error).toMatchObject({ reason: "shutting-down", status: 503 });
      await vi.advanceTimersByTimeAsync(5001);
      await closing;
      expect(third.error).toMatchObject({ reason: "shutting-down", status: 503 });
      expect(vi.getTimerCount()).toBe(0);
      await controller.close();
    } finally {
      vi.useRealTimers();
    }
  });

  test("closing is over as soon as nothing waits", async () => {
    const { controller } = make(1);
    const first = await controller.admit();
    const second = ask(controller);
    const closing = controller.close({ drain: "1h" });
    first.release();
    await closing;
    expect(second.permit).toBeDefined();
  });
});

describe("one bad request", () => {
  test("with a score that throws fails alone", async () => {
    const { controller } = make(2);
    const bad = ask(controller, {
      score: () => {
        throw new RangeError("mine");
      },
    });
    const good = ask(controller);
    await settle();
    expect(bad.error).toBeInstanceOf(RangeError);
    expect(good.permit).toBeDefined();
    expect(controller.stats().waiting).toBe(0);
  });

  test("with options of the wrong type is refused before it waits", async () => {
    const { controller } = make(1);
    const wrong = [{ among: "e0" }, { exclude: 5 }, { score: 1 }, { flow: {} }, { deadline: "x" }];
    for (const options of wrong) {
      await expect(controller.admit(options as never)).rejects.toThrow(ConfigError);
    }
    expect(controller.stats().waiting).toBe(0);
  });

  test("that has nowhere to go holds up nobody of its own flow, nor of a full band", async () => {
    const { controller } = make(2, { bands: [{ maxRequests: 1 }] });
    const stuck = ask(controller, { among: ["gone"] });
    const fine = [ask(controller), ask(controller, { flow: "b" })];
    await settle();
    expect(stuck.permit).toBeUndefined();
    expect(fine.map(({ permit }) => permit !== undefined)).toEqual([true, true]);
    await controller.close();
  });

  test("that may not wait goes when there is room, and is refused when there is none", async () => {
    const { controller } = make(1);
    const asked = [ask(controller, { ttl: 0 }), ask(controller, { ttl: 0 })];
    await settle();
    expect(asked[0]?.permit).toBeDefined();
    expect(asked[1]?.error).toMatchObject({ reason: "ttl-expired", status: 429 });
  });

  test("that fails unanswered does not make the gate believe that others have started", async () => {
    const { controller } = make(1, {}, 5);
    const asked = Array.from({ length: 20 }, () => ask(controller));
    await settle();
    for (let i = 4; i < 12; i++) {
      asked[i]?.permit?.release({ failed: true });
      await settle();
    }
    const live = asked.filter(({ permit }) => permit?.lease !== undefined).length - 8;
    expect(live).toBe(5);
    await controller.close();
  });
});

describe("what closed the gate", () => {
  test("is told under lower ceilings and other aggregations too", async () => {
    const ceilings = { policy: "static", ceiling: 0.5 } as const;
    for (const options of [{ ceilings }, { ceilings, aggregation: "max" }] as const) {
      const { pool, controller } = make(2, { ...options, mode: "shed" }, 10);
      pool.report("e0", { ...idle, waitingQueueSize: 6 });
      pool.report("e1", { ...idle, waitingQueueSize: 5 });
      const refused = ask(controller);
      await settle();
      const endpoint = "aggregation" in options ? "e0" : "e1";
      expect(refused.error?.gate).toMatchObject({ resource: "queue", limit: 10, endpoint });
    }
  });
});

describe("the clock", () => {
  test("is the source's when none is given", async () => {
    const pool = new EndpointPool({}, { clock: () => 123_456 });
    const controller = new FlowController(pool, { mode: "shed" });
    const refused = ask(controller);
    await settle();
    expect(refused.error?.waitedMs).toBe(0);
    expect(pool.now()).toBe(123_456);
    expect(maxOf(pool, new ConcurrencyDetector(pool)).now?.()).toBe(123_456);
  });

  test("a drain longer than a timer can be does not end at once", async () => {
    const { controller } = make(1);
    const first = await controller.admit();
    const second = ask(controller);
    const closing = controller.close({ drain: "1000h" });
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(second.error).toBeUndefined();
    first.release();
    await closing;
    expect(second.permit).toBeDefined();
  });
});

describe("misuse", () => {
  test("of the constructor is reported all together", () => {
    const { pool } = make(0);
    const wrong = {
      bands: [{ name: "a" }, { name: "a", maxRequests: -1 }],
      ceilings: { policy: "static", ceiling: [1] },
      ttl: 0,
      mode: "drop",
      maxRequest: 5,
    };
    try {
      new FlowController(pool, wrong as never);
      expect.unreachable();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      expect(error.faults.map(({ path }) => path).sort()).toEqual([
        "bands.1.maxRequests",
        "bands.1.name",
        "ceilings.ceiling",
        "maxRequest",
        "mode",
        "ttl",
      ]);
    }
    for (const ceilings of [
      { policy: "soft" },
      { policy: "priority-holdback", min: 2, max: 1 },
      { policy: "static", ceiling: 0 },
    ]) {
      expect(() => new FlowController(pool, { ceilings: ceilings as never })).toThrow(ConfigError);
    }
    expect(() => new FlowController(pool, { bands: [] })).toThrow(/at least one band/);
  });

  test("of admit rejects, and takes no place", async () => {
    const { controller } = make(1);
    for (const options of [
      { priority: "x" },
      { priority: 7 },
      { ttl: "5" },
      { deadline: Number.NaN },
    ]) {
      await expect(controller.admit(options)).rejects.toThrow(ConfigError);
    }
    expect(controller.stats().waiting).toBe(0);
  });

  test("subscribers hear of what came and went, once per turn", async () => {
    const { controller } = make(1);
    const listener = vi.fn();
    const stop = controller.subscribe(listener);
    const first = await controller.admit();
    ask(controller);
    ask(controller);
    await settle();
    expect(listener.mock.calls.length).toBeLessThanOrEqual(2);
    stop();
    first.release();
    await controller.close();
  });
});
