// Writes an endpoint's load as it is now, sample and ledger together, into the board: its row at once,
// its rank when the next pick wants it. The one place where the projection meets the rows.

import type { Board } from "./board";
import type { Endpoint } from "./endpoint";
import type { Leases } from "./leases";
import { factorOf, kvPenalty, projectKv, projectWaiting, projectWork, workOf } from "./projection";

/** The writer of one pool. */
export class LoadWriter {
  readonly #board: Board;
  readonly #leases: Leases;
  readonly #isLive: boolean;
  /** Endpoints whose load was written since they were ranked. */
  readonly #unranked: Endpoint[] = [];

  /** @param isLive samples are corrected by what this router has sent. */
  constructor(board: Board, leases: Leases, isLive: boolean) {
    this.#board = board;
    this.#leases = leases;
    this.#isLive = isLive;
  }

  /** Writes thresholds and weight of an endpoint, and its load. */
  writeLimits(endpoint: Endpoint, now: number): void {
    const { index, engines, kvCacheUtilThreshold, headroom, weight } = endpoint;
    const q = endpoint.queueDepthThreshold * engines;
    this.#board.writeLimits(index, q, kvCacheUtilThreshold, headroom, weight);
    this.write(endpoint, now);
  }

  /** Writes an endpoint's load, and with that its score. */
  write(endpoint: Endpoint, now: number): void {
    const { index, updateTime } = endpoint;
    const isProjected = this.#isLive && endpoint.ledger.hasNews;
    const waiting = isProjected ? projectWaiting(endpoint, now) : endpoint.waiting;
    const kv = isProjected ? projectKv(endpoint, now) : endpoint.kv;
    // No reading of the KV cache: the queue alone decides.
    this.#board.writeLoad(index, waiting, Number.isNaN(kv) ? 0 : kv, updateTime);
    if (endpoint.isRankStale) return;
    endpoint.isRankStale = true;
    this.#unranked.push(endpoint);
  }

  /** Ranks what has changed since the last pick; many changes of an endpoint cost one ranking. */
  rank(): void {
    for (const endpoint of this.#unranked) {
      endpoint.isRankStale = false;
      if (endpoint.index >= 0) this.#rankOne(endpoint);
    }
    this.#unranked.length = 0;
  }

  /** Work that lies before a request of `tokens` that is sent now; 1 = an idle endpoint. */
  workFor(endpoint: Endpoint, tokens: number | undefined): number {
    if (!this.#isLive) return 1;
    const { meanPrompt } = this.#leases;
    return projectWork(endpoint, meanPrompt) + workOf(this.#leases.sizeOf(tokens));
  }

  #rankOne(endpoint: Endpoint): void {
    const { index } = endpoint;
    if (!this.#isLive) {
      this.#board.writeRank(index, endpoint.sampledScore, 0);
      return;
    }
    const factor = factorOf(endpoint);
    const work = projectWork(endpoint, this.#leases.meanPrompt);
    const penalty = endpoint.queueOnly ? 0 : kvPenalty(this.#board.kv(index));
    this.#board.writeRank(index, factor * work + penalty, factor * workOf(1));
  }
}
