// How fast each endpoint is against the others, learned from this router's own requests: the time to
// the first byte and the time per token, each divided by the work that lay before the request, so
// that a loaded endpoint is not taken for a slow one. On mixed GPUs this is worth a factor.

/** An observation moves the running (geometric) mean by this share. */
const SHARE = 1 / 16;
/** Fewer observations than this say nothing. */
const ENOUGH = 8;
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
    const log = Math.log(Math.max(ms, 0.01) / work);
    member.firstByteLog = blend(member.firstByteLog, log, member.firstBytes++);
    return this.#count();
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
    member.tokenLog = blend(member.tokenLog, Math.log(ms / work), member.tokens++);
    return this.#count();
  }

  /** Comparing costs a sort, so it is done once per as many observations as there are endpoints. */
  #count(): boolean {
    if (++this.#observations < Math.max(16, this.#members.size)) return false;
    this.#observations = 0;
    this.#compare();
    return true;
  }

  #compare(): void {
    const members = [...this.#members];
    const firstByte = medianOf(members, "firstBytes", "firstByteLog");
    const token = medianOf(members, "tokens", "tokenLog");
    for (const member of members) {
      let sum = 0;
      let kinds = 0;
      if (member.firstBytes >= ENOUGH) {
        sum += member.firstByteLog - firstByte;
        kinds++;
      }
      if (member.tokens >= ENOUGH) {
        sum += member.tokenLog - token;
        kinds++;
      }
      const slow = kinds === 0 ? 1 : Math.exp(sum / kinds);
      const isMedian = slow < SNAP && slow > 1 / SNAP;
      member.slow = isMedian ? 1 : Math.min(SLOWEST, Math.max(1 / SLOWEST, slow));
    }
  }
}

function blend(mean: number, value: number, count: number): number {
  // The first observations are averaged, so that the very first one does not linger.
  return mean + (value - mean) * Math.max(SHARE, 1 / (count + 1));
}

function medianOf(
  members: readonly EndpointPace[],
  count: "firstBytes" | "tokens",
  log: "firstByteLog" | "tokenLog",
): number {
  const logs = members.filter((m) => m[count] >= ENOUGH).map((m) => m[log]);
  logs.sort((a, b) => a - b);
  return logs[logs.length >> 1] ?? 0;
}
