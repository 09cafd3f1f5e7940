// The KV cache of one engine: blocks in use, blocks that only the prefix cache holds, and empty ones.
// Private blocks are only counted; shared ones are known by the chunk of prompt that they hold.

/** A chunk of a prompt that the cache holds. */
export interface Chunk {
  readonly hash: number;
  readonly blocks: number;
  /** Requests that use it now; 0: only the cache holds it. */
  users: number;
}

/** Blocks of one engine. */
export class BlockPool {
  readonly total: number;
  #empty: number;
  #idle = 0;
  /** Chunks in the cache; those without users in the order in which they are evicted. */
  readonly #chunks = new Map<number, Chunk>();
  readonly #evictable = new Map<number, Chunk>();

  constructor(total: number) {
    this.total = total;
    this.#empty = total;
  }

  /** Blocks that can be had: empty ones, and those that only the cache holds. */
  get free(): number {
    return this.#empty + this.#idle;
  }

  /** Blocks that requests hold. */
  get used(): number {
    return this.total - this.free;
  }

  /** Blocks that only the cache holds. */
  get cached(): number {
    return this.#idle;
  }

  /** Takes `n` private blocks, evicting cached ones where needed. False when there are too few. */
  take(n: number): boolean {
    if (n > this.free) return false;
    while (this.#empty < n) this.#evictOldest();
    this.#empty -= n;
    return true;
  }

  /** Gives private blocks back. */
  give(n: number): void {
    this.#empty += n;
  }

  /** Chunk `hash`, if the cache holds it. */
  find(hash: number): Chunk | undefined {
    return this.#chunks.get(hash);
  }

  /** One more request uses a chunk. */
  use(chunk: Chunk): void {
    if (chunk.users++ > 0) return;
    this.#evictable.delete(chunk.hash);
    this.#idle -= chunk.blocks;
  }

  /** One request uses a chunk no more; it stays cached until its blocks are needed. */
  leave(chunk: Chunk): void {
    if (--chunk.users > 0) return;
    this.#evictable.set(chunk.hash, chunk);
    this.#idle += chunk.blocks;
  }

  /**
   * Turns `blocks` private blocks of one request into a cached chunk that it uses. Undefined when
   * another request was quicker: then its own copy stays private.
   */
  share(hash: number, blocks: number): Chunk | undefined {
    if (this.#chunks.has(hash)) return undefined;
    const chunk: Chunk = { hash, blocks, users: 1 };
    this.#chunks.set(hash, chunk);
    return chunk;
  }

  /** Everything is lost. */
  clear(): void {
    this.#empty = this.total;
    this.#idle = 0;
    this.#chunks.clear();
    this.#evictable.clear();
  }

  #evictOldest(): void {
    for (const [hash, chunk] of this.#evictable) {
      this.#evictable.delete(hash);
      this.#chunks.delete(hash);
      this.#idle -= chunk.blocks;
      this.#empty += chunk.blocks;
      return;
    }
    throw new Error("BlockPool: its counts of idle blocks are wrong"); // a fault of this file
  }
}
