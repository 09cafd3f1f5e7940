// The rules R1 to R8 once more, written from their text alone: slow, plain, one endpoint at a time.
// Everything that the kernel answers is compared with this, bit for bit.

/** One endpoint as the oracle sees it. */
export interface OracleRow {
  readonly waiting: number;
  readonly kv: number;
  readonly q: number;
  readonly k: number;
  readonly queueLimit: number;
  readonly kvLimit: number;
  readonly updateTime: number;
  readonly weight: number;
}

/** What the clock and the policy say. */
export interface OracleRules {
  readonly staleness: number;
  readonly policy: "saturated" | "ignore" | "hold";
  readonly holdFor: number;
}

/** The whole answer. */
export interface OracleAnswer {
  readonly mean: number;
  readonly capped: number;
  readonly weighted: number;
  readonly max: number;
  readonly fresh: number;
  readonly stale: number;
  readonly unusable: number;
  readonly candidates: number[];
  readonly scores: number[];
}

/** R1. */
export function isUsable(row: OracleRow): boolean {
  const readings = [row.waiting, row.kv];
  return readings.every((v) => Number.isFinite(v) && v >= 0) && Number.isFinite(row.updateTime);
}

/** R2. */
export function isFresh(row: OracleRow, rules: OracleRules, now: number): boolean {
  return isUsable(row) && Math.abs(now - row.updateTime) <= rules.staleness;
}

/** Whether its load counts: fresh, or held (R5). */
export function isScored(row: OracleRow, rules: OracleRules, now: number): boolean {
  if (isFresh(row, rules, now)) return true;
  const age = now - row.updateTime;
  const until = rules.staleness + rules.holdFor;
  return rules.policy === "hold" && isUsable(row) && age > rules.staleness && age <= until;
}

/** R4's order of addition. `undefined` leaves the sum. */
function add(values: readonly (number | undefined)[]): number {
  const whole = 4 * Math.floor(values.length / 4);
  const partial = [0, 0, 0, 0];
  values.slice(0, whole).forEach((value, i) => {
    if (value !== undefined) partial[i % 4] = (partial[i % 4] ?? 0) + value;
  });
  const [s0 = 0, s1 = 0, s2 = 0, s3 = 0] = partial;
  let sum = s0 + s2 + (s1 + s3);
  for (const value of values.slice(whole)) if (value !== undefined) sum += value;
  return sum;
}

/** R1 to R8 over a list of endpoints. */
export function judge(rows: readonly OracleRow[], rules: OracleRules, now: number): OracleAnswer {
  const scores = rows.map((row) =>
    isScored(row, rules, now) ? Math.max(row.waiting / row.q, row.kv / row.k) : 1,
  );
  const counts = rows.map((row) => rules.policy !== "ignore" || isScored(row, rules, now));
  const counted = scores.map((score, i) => (counts[i] ? score : undefined));
  const n = counts.filter(Boolean).length;
  const none = rows.length === 0 ? 1 : 0;
  const share = (values: (number | undefined)[]) => (n === 0 ? none : add(values) / n);
  const weights = add(rows.map((row, i) => (counts[i] ? row.weight : undefined)));
  const weightedSum = add(
    rows.map((row, i) => (counts[i] ? (scores[i] ?? 0) * row.weight : undefined)),
  );
  const max = counted.reduce<number>((a, b) => (b === undefined ? a : Math.max(a, b)), 0);
  const usable = rows.filter(isUsable).length;
  const fresh = rows.filter((row) => isFresh(row, rules, now)).length;
  return {
    mean: share(counted),
    capped: share(counted.map((s) => (s === undefined ? undefined : Math.min(s, 1)))),
    weighted: n === 0 ? none : weights < Number.POSITIVE_INFINITY ? weightedSum / weights : max,
    max: n === 0 ? none : max,
    fresh,
    stale: usable - fresh,
    unusable: rows.length - usable,
    scores,
    candidates: rows.flatMap((row, i) => {
      const passes = row.waiting < row.queueLimit && row.kv < row.kvLimit;
      return isFresh(row, rules, now) && passes ? [i] : [];
    }),
  };
}

/** The bits of a double, so that -0 and NaN compare as they are. */
export function bits(value: number): bigint {
  return new BigUint64Array(Float64Array.of(value).buffer)[0] ?? 0n;
}
