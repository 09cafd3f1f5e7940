// One decision over seeded endpoints, the same in every runtime: detector and pool, all policies and
// aggregations, special values, and a metrics page. The answer is a digest of every bit.

const SPECIAL = [Number.NaN, Number.POSITIVE_INFINITY, -1, -0, 5e-324, Number.MAX_VALUE];
const NOW = 1_000_000;

/** 64-bit FNV-1a over the bytes of doubles. */
class Digest {
  #hash = 0xcbf29ce484222325n;

  add(value) {
    const bytes = new Uint8Array(Float64Array.of(value).buffer);
    for (const byte of bytes) {
      this.#hash = BigInt.asUintN(64, (this.#hash ^ BigInt(byte)) * 0x100000001b3n);
    }
  }

  toString() {
    return this.#hash.toString(16).padStart(16, "0");
  }
}

function seededRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function makeEndpoints(random) {
  const odd = () => random() < 0.05;
  const special = () => SPECIAL[Math.floor(random() * SPECIAL.length)];
  return Array.from({ length: 333 }, (_, i) => ({
    id: `endpoint-${i}`,
    weight: 0.5 + random() * 3,
    metrics: {
      waitingQueueSize: odd() ? special() : Math.floor(random() * 9),
      kvCacheUsagePercent: odd() ? special() : random(),
      updateTime: NOW - random() * 250,
    },
  }));
}

function addEvaluation(digest, evaluation, endpoints, indexOf) {
  for (const key of ["saturation", "mean", "capped", "weighted", "max"])
    digest.add(evaluation[key]);
  for (const key of ["fresh", "stale", "unusable", "validUntil"]) digest.add(evaluation[key]);
  for (const score of evaluation.scores) digest.add(score);
  for (const candidate of evaluation.candidates) digest.add(indexOf(candidate));
  digest.add(endpoints.length);
}

/**
 * Decides with the built package.
 *
 * @param core the exports of `plimsoll`. @param telemetry those of `plimsoll/telemetry`.
 * @returns the digest, as text.
 */
export function decide(core, telemetry) {
  const digest = new Digest();
  const endpoints = makeEndpoints(seededRandom(11));
  for (const stalenessPolicy of ["saturated", "ignore", "hold"]) {
    for (const aggregation of ["mean", "weighted", "max", "capped"]) {
      const config = { stalenessPolicy, aggregation, holdFor: "30ms", headroom: 0.2 };
      const clock = () => NOW;
      const thresholdsOf = ({ weight }) => ({ weight });
      const detector = new core.UtilizationDetector(config, { clock, thresholdsOf });
      const judged = detector.evaluate(endpoints);
      addEvaluation(digest, judged, endpoints, (endpoint) => endpoints.indexOf(endpoint));
      const pool = new core.EndpointPool(config, { clock });
      for (const { id, weight, metrics } of endpoints) {
        pool.add(id, { weight });
        pool.report(id, metrics);
      }
      addEvaluation(digest, pool.evaluate(), endpoints, ({ id }) => Number(id.slice(9)));
    }
  }
  const page = 'vllm:num_requests_waiting{engine="0"} 3\nvllm:kv_cache_usage_perc 0.1\n';
  const { sample } = telemetry.readExposition(new TextEncoder().encode(page));
  digest.add(sample.waitingQueueSize);
  digest.add(sample.kvCacheUsagePercent);
  return digest.toString();
}
