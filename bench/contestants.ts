// biome-ignore-all lint/complexity/useMathMinMax: comparisons were measured 5 % faster here
// biome-ignore-all lint/suspicious/noSelfCompare: the fastest test for NaN

// The best plain-JavaScript rivals of the kernel, each doing the same work: the four aggregates in
// R4's order of addition, the counts, validUntil, and on request the list of candidates. They know
// the policy "saturated" only, which makes them faster than they would be otherwise.

/** f64 per row: waiting, kv, Q, K, queueLimit, kvLimit, updateTime, weight. */
export const ROW = 8;

/** mean, capped, weighted, max, fresh, stale, unusable, count, validUntil. */
export const RESULT_LENGTH = 9;

/** A contestant over a fixed number of endpoints. */
export interface Contestant {
  readonly name: string;
  /** Overwrites one endpoint's row. */
  write(i: number, row: Float64Array): void;
  /** Judges at `now`; with `list`, `candidates` too. */
  judge(now: number, list: boolean): void;
  readonly result: Float64Array;
  readonly candidates: Uint32Array;
}

/** Keeps scores on write, reduces on read: the kernel's own plan, in JavaScript. */
export class ScoreOnWrite implements Contestant {
  readonly name: string = "typed arrays, score kept on write";
  readonly result = new Float64Array(RESULT_LENGTH);
  readonly candidates: Uint32Array;
  protected readonly scores: Float64Array;
  protected readonly passes: Uint8Array;
  protected readonly times: Float64Array;
  protected readonly weights: Float64Array;
  protected readonly n: number;
  readonly #staleness: number;

  constructor(n: number, stalenessMs: number) {
    this.n = n;
    this.#staleness = stalenessMs;
    this.candidates = new Uint32Array(n);
    this.scores = new Float64Array(n);
    this.passes = new Uint8Array(n);
    this.times = new Float64Array(n);
    this.weights = new Float64Array(n);
  }

  write(i: number, row: Float64Array): void {
    this.score(i, row, 0);
  }

  protected score(i: number, rows: Float64Array, at: number): void {
    const waiting = rows[at] as number;
    const kv = rows[at + 1] as number;
    const time = rows[at + 6] as number;
    const usable = waiting >= 0 && kv >= 0 && waiting < 1 / 0 && kv < 1 / 0 && time - time === 0;
    const q = waiting / (rows[at + 2] as number);
    const k = kv / (rows[at + 3] as number);
    this.scores[i] = usable ? (q > k ? q : k) : 1;
    const under = waiting < (rows[at + 4] as number) && kv < (rows[at + 5] as number);
    this.passes[i] = usable && under ? 1 : 0;
    this.times[i] = usable ? time : Number.NaN;
    this.weights[i] = rows[at + 7] as number;
  }

  judge(now: number, list: boolean): void {
    const { scores, passes, times, weights, candidates, n, result } = this;
    const staleness = this.#staleness;
    const whole = n & ~3;
    let s0 = 0;
    let s1 = 0;
    let s2 = 0;
    let s3 = 0;
    let c0 = 0;
    let c1 = 0;
    let c2 = 0;
    let c3 = 0;
    let w0 = 0;
    let w1 = 0;
    let w2 = 0;
    let w3 = 0;
    let v0 = 0;
    let v1 = 0;
    let v2 = 0;
    let v3 = 0;
    let max = 0;
    let stale = 0;
    let unusable = 0;
    let count = 0;
    let oldest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < whole; i += 4) {
      let a = 1;
      let b = 1;
      let c = 1;
      let d = 1;
      const timeA = times[i] as number;
      const ageA = now - timeA;
      if (ageA <= staleness && ageA >= -staleness) {
        a = scores[i] as number;
        if (timeA < oldest) oldest = timeA;
        if (passes[i] === 1) {
          if (list) candidates[count] = i;
          count++;
        }
      } else if (timeA === timeA) stale++;
      else unusable++;
      const timeB = times[i + 1] as number;
      const ageB = now - timeB;
      if (ageB <= staleness && ageB >= -staleness) {
        b = scores[i + 1] as number;
        if (timeB < oldest) oldest = timeB;
        if (passes[i + 1] === 1) {
          if (list) candidates[count] = i + 1;
          count++;
        }
      } else if (timeB === timeB) stale++;
      else unusable++;
      const timeC = times[i + 2] as number;
      const ageC = now - timeC;
      if (ageC <= staleness && ageC >= -staleness) {
        c = scores[i + 2] as number;
        if (timeC < oldest) oldest = timeC;
        if (passes[i + 2] === 1) {
          if (list) candidates[count] = i + 2;
          count++;
        }
      } else if (timeC === timeC) stale++;
      else unusable++;
      const timeD = times[i + 3] as number;
      const ageD = now - timeD;
      if (ageD <= staleness && ageD >= -staleness) {
        d = scores[i + 3] as number;
        if (timeD < oldest) oldest = timeD;
        if (passes[i + 3] === 1) {
          if (list) candidates[count] = i + 3;
          count++;
        }
      } else if (timeD === timeD) stale++;
      else unusable++;
      const wa = weights[i] as number;
      const wb = weights[i + 1] as number;
      const wc = weights[i + 2] as number;
      const wd = weights[i + 3] as number;
      s0 += a;
      s1 += b;
      s2 += c;
      s3 += d;
      c0 += a < 1 ? a : 1;
      c1 += b < 1 ? b : 1;
      c2 += c < 1 ? c : 1;
      c3 += d < 1 ? d : 1;
      w0 += a * wa;
      w1 += b * wb;
      w2 += c * wc;
      w3 += d * wd;
      v0 += wa;
      v1 += wb;
      v2 += wc;
      v3 += wd;
      if (a > max) max = a;
      if (b > max) max = b;
      if (c > max) max = c;
      if (d > max) max = d;
    }
    let sum = s0 + s2 + (s1 + s3);
    let capped = c0 + c2 + (c1 + c3);
    let weighted = w0 + w2 + (w1 + w3);
    let weight = v0 + v2 + (v1 + v3);
    for (let i = whole; i < n; i++) {
      const time = times[i] as number;
      const age = now - time;
      let score = 1;
      if (age <= staleness && age >= -staleness) {
        score = scores[i] as number;
        if (time < oldest) oldest = time;
        if (passes[i] === 1) {
          if (list) candidates[count] = i;
          count++;
        }
      } else if (age === age) stale++;
      else unusable++;
      sum += score;
      capped += score < 1 ? score : 1;
      weighted += score * (weights[i] as number);
      weight += weights[i] as number;
      if (score > max) max = score;
    }
    result[0] = sum / n;
    result[1] = capped / n;
    result[2] = weighted / weight;
    result[3] = max;
    result[4] = n - stale - unusable;
    result[5] = stale;
    result[6] = unusable;
    result[7] = count;
    result[8] = oldest + staleness;
  }
}

/** Keeps rows only, and scores all of them on every call. */
export class TypedArrayLoop extends ScoreOnWrite {
  override readonly name = "typed arrays";
  readonly #rows: Float64Array;

  constructor(n: number, stalenessMs: number) {
    super(n, stalenessMs);
    this.#rows = new Float64Array(n * ROW);
  }

  override write(i: number, row: Float64Array): void {
    this.#rows.set(row, i * ROW);
  }

  override judge(now: number, list: boolean): void {
    for (let i = 0; i < this.n; i++) this.score(i, this.#rows, i * ROW);
    super.judge(now, list);
  }
}

/** One endpoint as an object. */
export interface EndpointObject {
  waiting: number;
  kv: number;
  q: number;
  k: number;
  queueLimit: number;
  kvLimit: number;
  time: number;
  weight: number;
}

/** The rules over objects, one pass. The sums go in index order modulo four, as R4 wants. */
export class ObjectLoop implements Contestant {
  readonly name = "objects";
  readonly result = new Float64Array(RESULT_LENGTH);
  readonly candidates: Uint32Array;
  readonly #endpoints: EndpointObject[];
  readonly #staleness: number;
  readonly #sums = new Float64Array(16);

  constructor(n: number, stalenessMs: number) {
    this.#staleness = stalenessMs;
    this.candidates = new Uint32Array(n);
    this.#endpoints = Array.from({ length: n }, () => ({
      waiting: 0,
      kv: 0,
      q: 1,
      k: 1,
      queueLimit: 1,
      kvLimit: 1,
      time: 0,
      weight: 1,
    }));
  }

  write(i: number, row: Float64Array): void {
    const endpoint = this.#endpoints[i];
    if (endpoint === undefined) throw new RangeError(`no endpoint ${i}`);
    const [waiting = 0, kv = 0, q = 1, k = 1, queueLimit = 1, kvLimit = 1, time = 0, weight = 1] =
      row;
    Object.assign(endpoint, { waiting, kv, q, k, queueLimit, kvLimit, time, weight });
  }

  judge(now: number, list: boolean): void {
    const { candidates, result } = this;
    const endpoints = this.#endpoints;
    const staleness = this.#staleness;
    const sums = this.#sums.fill(0);
    const n = endpoints.length;
    const whole = n & ~3;
    let max = 0;
    let stale = 0;
    let unusable = 0;
    let count = 0;
    let oldest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < n; i++) {
      const { waiting, kv, q, k, queueLimit, kvLimit, time, weight } = endpoints[
        i
      ] as EndpointObject;
      const age = now - time;
      let score = 1;
      if (!(waiting >= 0 && kv >= 0 && waiting < 1 / 0 && kv < 1 / 0 && time - time === 0)) {
        unusable++;
      } else if (!(age <= staleness && age >= -staleness)) {
        stale++;
      } else {
        const queueRatio = waiting / q;
        const kvRatio = kv / k;
        score = queueRatio > kvRatio ? queueRatio : kvRatio;
        if (time < oldest) oldest = time;
        if (waiting < queueLimit && kv < kvLimit) {
          if (list) candidates[count] = i;
          count++;
        }
      }
      if (i === whole) fold(sums);
      const lane = i < whole ? i & 3 : 0;
      sums[lane] = (sums[lane] as number) + score;
      sums[lane + 4] = (sums[lane + 4] as number) + (score < 1 ? score : 1);
      sums[lane + 8] = (sums[lane + 8] as number) + score * weight;
      sums[lane + 12] = (sums[lane + 12] as number) + weight;
      if (score > max) max = score;
    }
    if (whole === n) fold(sums);
    result[0] = (sums[0] as number) / n;
    result[1] = (sums[4] as number) / n;
    result[2] = (sums[8] as number) / (sums[12] as number);
    result[3] = max;
    result[4] = n - stale - unusable;
    result[5] = stale;
    result[6] = unusable;
    result[7] = count;
    result[8] = oldest + staleness;
  }
}

function fold(sums: Float64Array): void {
  for (let at = 0; at < 16; at += 4) {
    const even = (sums[at] as number) + (sums[at + 2] as number);
    sums[at] = even + ((sums[at + 1] as number) + (sums[at + 3] as number));
  }
}
