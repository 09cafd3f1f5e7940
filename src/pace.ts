// How fast each endpoint is against the others, learned from this router's own requests: the time to
// the first byte and the time per token, each divided by the work that lay before the request, so
// that a loaded endpoint is not taken for a slow one. On mixed GPUs this is worth a factor.

import { stableExp, stableLog } from "./stable-math";

/** An observation moves the running (geometric) mean by this share. */
const SHARE = 1 / 16;
/** An endpoint's observations weigh n / (n + this): a slow one must show early, a lucky one not. */
const HALF_BELIEVED = 0.5;
/** While an endpoint is new, its first observations count nearly at once. */
const FIRST = 8;
/** A pace within this factor of the pool's median is taken for the median. */
const SNAP = 1.2;
/** Bounds, so that one odd hour cannot shut an endpoint out for ever. */
const SLOWEST = 32;

/** What is known of one endpoint's pace. */
export class EndpointPace {
  /** How many times slower than the pool's median; 1 where it is about as fast, or not known. */
  slow = 1;
  /** Time per token as seen, in ms; NaN before the first. */
  msPerToken = Number.NaN;
  /** Logarithms of running means, and how many observations they rest on. */
  firstByteLog = 0;
  firstBytes = 0;
  tokenLog = 0;
  tokens = 0;
}

/** The paces of a pool. */
export class Pace {
  readonly #members = new Set<EndpointPace>();
  #observations = 0;
  #firstByte = new Float64Array(0);
  #token = new Float64Array(0);
  #sorted = new Float64Array(0);

  /** An endpoint joins. */
  add(member: EndpointPace): void {
    this.#members.add(member);
  }

  /** An endpoint leaves. */
  remove(member: EndpointPace): void {
    this.#members.delete(member);
  }

  /**
   * A first byte came after `ms`, with `work` before it (1 = an idle endpoint).
   *
   * @returns whether paces were compared anew.
   */
  learnFirstByte(member: EndpointPace, ms: number, work: number): boolean {
    const log = stableLog(Math.max(ms, 0.01) / work);
    member.firstByteLog = blend(member.firstByteLog, log, member.firstBytes++);
    return this.#count(member.firstBytes);
  }

  /**
   * An answer was generated at `ms` per token, with `work` before it.
   *
   * @returns whether paces were compared anew.
   */
  learnToken(member: EndpointPace, ms: number, work: number): boolean {
    if (!(ms > 0)) return false;
    member.msPerToken = Number.isNaN(member.msPerToken)
      ? ms
      : member.msPerToken + (ms - member.msPerToken) * SHARE;
    member.tokenLog = blend(member.tokenLog, stableLog(ms / work), member.tokens++);
    return this.#count(member.tokens);
  }

  /** Comparing costs a sort, so later it is done once per as many observations as endpoints. */
  #count(seen: number): boolean {
    this.#observations++;
    const { size } = this.#members;
    const enough = seen > FIRST ? Math.max(16, size) : size / 32;
    if (this.#observations < enough) return false;
    this.#observations = 0;
    this.#compare();
    return true;
  }

  /** Often enough to be felt, so it makes no garbage. */
  #compare(): void {
    const members = this.#members;
    const { size } = members;
    if (this.#sorted.length !== size) {
      this.#firstByte = new Float64Array(size);
      this.#token = new Float64Array(size);
      this.#sorted = new Float64Array(size);
    }
    const kinds =
      pacesInto(this.#firstByte, this.#sorted, members, "firstBytes", "firstByteLog") +
      pacesInto(this.#token, this.#sorted, members, "tokens", "tokenLog");
    let i = 0;
    for (const member of members) {
      const sum = (this.#firstByte[i] as number) + (this.#token[i++] as number); // one for each
      const slow = stableExp(sum / Math.max(1, kinds));
      const isMedian = slow < SNAP && slow > 1 / SNAP;
      member.slow = isMedian ? 1 : Math.min(SLOWEST, Math.max(1 / SLOWEST, slow));
    }
  }
}

function blend(mean: number, value: number, count: number): number {
  // The first observations are averaged, so that the very first one does not linger.
  return mean + (value - mean) * Math.max(SHARE, 1 / (count + 1));
}

/**
 * Writes logarithms of the paces against their median, in one kind of observation. What is not known
 * yet is taken for as fast as the fastest, so that it is tried: else a router that knows one fast
 * endpoint would stay with it.
 *
 * @param sorted scratch of the same length.
 * @returns how many kinds this is that are known: 1, or 0 and zeros.
 */
function pacesInto(
  logs: Float64Array,
  sorted: Float64Array,
  members: ReadonlySet<EndpointPace>,
  count: "firstBytes" | "tokens",
  log: "firstByteLog" | "tokenLog",
): number {
  let fastest = Number.POSITIVE_INFINITY;
  for (const member of members) if (member[count] > 0) fastest = Math.min(fastest, member[log]);
  if (fastest === Number.POSITIVE_INFINITY) {
    logs.fill(0);
    return 0;
  }
  let i = 0;
  for (const member of members) {
    const belief = member[count] / (member[count] + HALF_BELIEVED);
    logs[i++] = belief === 0 ? fastest : fastest + belief * (member[log] - fastest);
  }
  sorted.set(logs);
  sorted.sort();
  const median = sorted[sorted.length >> 1] ?? 0;
  for (let j = 0; j < logs.length; j++) logs[j] = (logs[j] as number) - median; // below the length
  return 1;
}
