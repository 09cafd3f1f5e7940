import { describe, expect, test, vi } from "vitest";
import { ConfigError, type EndpointMetrics, UtilizationDetector } from "../src/index";

const NOW = 5000;
const clock = () => NOW;
const idle = () => ({
  metrics: { waitingQueueSize: 1, kvCacheUsagePercent: 0.1, updateTime: NOW },
});

describe("UtilizationDetector", () => {
  test("reads the property metrics and the wall clock when nothing is injected", () => {
    const detector = new UtilizationDetector();
    const metrics = { waitingQueueSize: 1, kvCacheUsagePercent: 0.1, updateTime: new Date() };
    expect(detector.saturation([{ metrics }])).toBe(1 / 5);
    expect(detector.typedName).toEqual({
      type: "utilization-detector",
      name: "utilization-detector",
    });
  });

  test("may be entered again by its own callback", () => {
    const inner = new UtilizationDetector({}, { clock });
    const outer = new UtilizationDetector<{ metrics: EndpointMetrics }>(
      { queueDepthThreshold: 1 },
      {
        clock,
        metricsOf: (endpoint) => {
          expect(inner.saturation([idle(), idle(), idle()])).toBe((0.2 + 0.2 + 0.2) / 3);
          return endpoint.metrics;
        },
      },
    );
    expect(outer.evaluate([idle(), idle()]).saturation).toBe(1);
  });

  test("gives its scratch memory back when a callback throws", () => {
    const detector = new UtilizationDetector<number>(
      {},
      {
        clock,
        metricsOf: (n) => {
          if (n < 0) throw new RangeError("bad endpoint");
          return idle().metrics;
        },
      },
    );
    expect(() => detector.evaluate([1, -1])).toThrow(RangeError);
    expect(detector.saturation([1, 1])).toBe(0.2);
  });

  test("two configs that take turns do not see each other's limits", () => {
    const strict = new UtilizationDetector({ queueDepthThreshold: 1 }, { clock });
    const loose = new UtilizationDetector({ queueDepthThreshold: 10 }, { clock });
    const own = new UtilizationDetector<ReturnType<typeof idle>>(
      {},
      { clock, thresholdsOf: () => ({ queueDepthThreshold: 2 }) },
    );
    for (let n = 1; n < 200; n += 17) {
      const list = Array.from({ length: n }, idle);
      expect(strict.evaluate(list).max).toBe(1);
      expect(own.evaluate(list).max).toBe(0.5);
      expect(loose.evaluate(list).max).toBe(0.125); // KV decides
    }
  });

  test("does not use thresholds outside their range, and says so once", () => {
    const warn = vi.fn();
    const bad = { queueDepthThreshold: 0.5, kvCacheUtilThreshold: 2, headroom: -1, weight: 0 };
    const detector = new UtilizationDetector<ReturnType<typeof idle>>(
      {},
      { clock, logger: { warn }, thresholdsOf: () => bad },
    );
    expect(detector.evaluate([idle()])).toMatchObject({ saturation: 0.2, weighted: 0.2 });
    detector.evaluate([idle()]);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  test("as a source it judges the list of the moment, and notify reaches subscribers once", async () => {
    const list = [idle()];
    const source = new UtilizationDetector({}, { clock }).over(() => list);
    const listener = vi.fn();
    const stop = source.subscribe(listener);
    expect(source.saturation()).toBe(0.2);
    list.push({ metrics: { ...idle().metrics, waitingQueueSize: 5 } });
    source.notify();
    source.notify();
    await new Promise(setImmediate);
    expect(listener).toHaveBeenCalledTimes(1);
    expect(source.evaluate().saturation).toBe(0.6);
    stop();
    source.notify();
    await new Promise(setImmediate);
    expect(listener).toHaveBeenCalledTimes(1);
  });

  test("saturation by another aggregation than the configured one", () => {
    const detector = new UtilizationDetector({ aggregation: "max" }, { clock });
    expect(detector.saturation([idle()])).toBe(0.2);
  });

  test("what an evaluation carries may be kept", () => {
    const detector = new UtilizationDetector({}, { clock });
    const first = detector.evaluate([idle()]);
    detector.evaluate([{ metrics: { ...idle().metrics, waitingQueueSize: 5 } }]);
    expect([first.scores[0], first.saturation]).toEqual([0.2, 0.2]);
  });
});

describe("fromJSON", () => {
  test("takes text or a value, and refuses what the constructor refuses", () => {
    const text = '{"queueDepthThreshold": 3, "metricsStalenessThreshold": "1m30s"}';
    const detector = UtilizationDetector.fromJSON("mine", text);
    expect(detector.typedName.name).toBe("mine");
    expect(detector.config).toMatchObject({
      queueDepthThreshold: 3,
      metricsStalenessThreshold: 90_000,
    });
    expect(UtilizationDetector.fromJSON("x", undefined).config.headroom).toBe(0);
    for (const bad of [
      "{",
      "[]",
      '"x"',
      "5",
      '{"headrom": 0.1}',
      '{"__proto__": {"headroom": 1}}',
    ]) {
      expect(() => UtilizationDetector.fromJSON("x", bad)).toThrow(ConfigError);
    }
    expect(() => UtilizationDetector.fromJSON("x", { headrom: 1 })).toThrow(/"headroom"/);
  });
});
