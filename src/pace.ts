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

  /** Twice per some requests, so it makes no garbage. */
  #compare(): void {
    const { size } = this.#members;
    if (this.#firstByte.length !== size) {
      this.#firstByte = new Float64Array(size);
      this.#token = new Float64Array(size);
      this.#sorted = new Float64Array(size);
    }
    const members = this.#members;
    const knowsFirstByte = pacesInto(this.#firstByte, this.#sorted, members, readFirstByte);
    const knowsToken = pacesInto(this.#token, this.#sorted, members, readToken);
    const kinds = Math.max(1, (knowsFirstByte ? 1 : 0) + (knowsToken ? 1 : 0));
    let i = 0;
    for (const member of members) {
      const firstByte = knowsFirstByte ? (this.#firstByte[i] as number) : 0; // one for each member
      const token = knowsToken ? (this.#token[i] as number) : 0;
      i++;
      const slow = stableExp((firstByte + token) / kinds);
      const isMedian = slow < SNAP && slow > 1 / SNAP;
      member.slow = isMedian ? 1 : Math.min(SLOWEST, Math.max(1 / SLOWEST, slow));
    }
  }
}

function blend(mean: number, value: number, count: number): number {
  // The first observations are averaged, so that the very first one does not linger.
  return mean + (value - mean) * Math.max(SHARE, 1 / (count + 1));
}

/** One kind of observation of a member: how many, and the logarithm of their mean. */
interface Observed {
  count(member: EndpointPace): number;
  log(member: EndpointPace): number;
}

const readFirstByte: Observed = {
  count: ({ firstBytes }) => firstBytes,
  log: ({ firstByteLog }) => firstByteLog,
};
const readToken: Observed = {
  count: ({ tokens }) => tokens,
  log: ({ tokenLog }) => tokenLog,
};

/**
 * Writes logarithms of the paces against their median, in one kind of observation. What is not known
 * yet is taken for as fast as the fastest, so that it is tried: else a router that knows one fast
 * endpoint would stay with it.
 *
 * @param sorted scratch of the same length.
 * @returns whether anything is known.
 */
function pacesInto(
  logs: Float64Array,
  sorted: Float64Array,
  members: ReadonlySet<EndpointPace>,
  { count, log }: Observed,
): boolean {
  let fastest = Number.POSITIVE_INFINITY;
  for (const member of members) if (count(member) > 0) fastest = Math.min(fastest, log(member));
  if (fastest === Number.POSITIVE_INFINITY) return false;
  let i = 0;
  for (const member of members) {
    const belief = count(member) / (count(member) + HALF_BELIEVED);
    logs[i++] = belief === 0 ? fastest : fastest + belief * (log(member) - fastest);
  }
  sorted.set(logs);
  sorted.sort();
  const median = sorted[sorted.length >> 1] ?? 0;
  for (let j = 0; j < logs.length; j++) logs[j] = (logs[j] as number) - median; // below the length
  return true;
}
