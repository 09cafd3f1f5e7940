// Rendezvous hashing: each session has its own order of preference over all endpoints, so that one
// endpoint that comes or goes moves only the sessions that were, or will be, its own.

/** An endpoint that a session may prefer. */
export interface Choice {
  readonly id: string;
  /** Its share of the sessions, > 0. */
  readonly weight: number;
}

/** FNV-1a over UTF-16 code units, 32 bits. http://www.isthe.com/chongo/tech/comp/fnv/ */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return hash >>> 0;
}

/** Mixes the bits of two hashes into one, by the finalizer of MurmurHash3. */
function mix(a: number, b: number): number {
  let hash = a ^ Math.imul(b, 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Hashes of endpoint ids, kept: an id is hashed once. */
export class Rendezvous<E extends Choice> {
  readonly #hashes = new WeakMap<E, number>();

  /**
   * The endpoint that a session prefers, or undefined when there is none.
   *
   * Weighted: the greatest `-weight / ln(u)`, where u in (0, 1) is the hash of session and endpoint.
   *
   * @param isOut endpoints that are out of the question.
   */
  choose(session: string, among: Iterable<E>, isOut: (endpoint: E) => boolean): E | undefined {
    const key = hashText(session);
    let best: E | undefined;
    let most = Number.NEGATIVE_INFINITY;
    for (const endpoint of among) {
      if (isOut(endpoint)) continue;
      const u = (mix(key, this.#hashOf(endpoint)) + 0.5) / 2 ** 32;
      const draw = -endpoint.weight / Math.log(u);
      if (draw > most) {
        most = draw;
        best = endpoint;
      }
    }
    return best;
  }

  #hashOf(endpoint: E): number {
    let hash = this.#hashes.get(endpoint);
    if (hash === undefined) {
      hash = hashText(endpoint.id);
      this.#hashes.set(endpoint, hash);
    }
    return hash;
  }
}
