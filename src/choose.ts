// Which endpoint a request goes to: the least rank among those that pass, ties at random, affinity
// only for one that is not full, and the least bad when nobody passes.

import { type Board, List } from "./board";
import type { Endpoint } from "./endpoint";
import { RESULT } from "./kernel";
import { hasId, type LeaseRequest, type Pick, type PickReason } from "./pick";

/** Ranks that differ by less than this share are a tie. */
const TIE = 0.001;

/**
 * Chooses for `request`.
 *
 * @param tokens its size, estimated where the caller did not say.
 * @param wanted what an endpoint must pass.
 * @param judge makes the board's list for a filter.
 */
export function choose(
  endpoints: readonly Endpoint[],
  board: Board,
  request: LeaseRequest,
  tokens: number,
  random: () => number,
  wanted: List,
  judge: (list: List) => void,
): Pick | undefined {
  const search = new Search(endpoints, board, request, tokens, random);
  const preferred = search.preferred(judge);
  if (preferred !== undefined) return preferred;
  judge(wanted);
  const count = board.result[RESULT.candidates] as number; // the block has it
  for (let i = 0; i < count; i++) search.consider(board.candidates[i] as number);
  const picked = search.best(false);
  if (picked !== undefined) return picked;
  return search.leastBad(judge);
}

/** One search. Short-lived: it never outlives the call. */
class Search {
  readonly #endpoints: readonly Endpoint[];
  readonly #board: Board;
  readonly #request: LeaseRequest;
  readonly #tokens: number;
  readonly #random: () => number;
  #index = -1;
  #least = 0;
  #ties = 0;

  constructor(
    endpoints: readonly Endpoint[],
    board: Board,
    request: LeaseRequest,
    tokens: number,
    random: () => number,
  ) {
    this.#endpoints = endpoints;
    this.#board = board;
    this.#request = request;
    this.#tokens = tokens;
    this.#random = random;
  }

  /** The preferred endpoint, when it comes into question and is under both limits. */
  preferred(judge: (list: List) => void): Pick | undefined {
    const { prefer } = this.#request;
    if (prefer === undefined) return undefined;
    judge(List.Limits);
    const count = this.#board.result[RESULT.candidates] as number; // the block has it
    for (let i = 0; i < count; i++) {
      const index = this.#board.candidates[i] as number;
      if (this.#endpoints[index]?.id !== prefer) continue;
      return this.#isOut(prefer) ? undefined : this.#pick(index, false, "preferred");
    }
    return undefined;
  }

  /** Looks at one endpoint that passed. */
  consider(index: number): void {
    const { exclude, among, score } = this.#request;
    let rank = this.#board.rank(index, this.#tokens);
    if (exclude !== undefined || among !== undefined || score !== undefined) {
      const endpoint = this.#endpoints[index] as Endpoint; // an index of the board
      if (this.#isOut(endpoint.id)) return;
      if (score !== undefined) rank = score(endpoint, rank);
    }
    if (!(rank < Number.POSITIVE_INFINITY)) return;
    const slack = Math.abs(this.#least) * TIE;
    if (this.#ties === 0 || rank < this.#least - slack) {
      this.#least = rank;
      this.#index = index;
      this.#ties = 1;
    } else if (rank <= this.#least + slack) {
      // Each of k equals ends up chosen with the same chance.
      this.#ties++;
      if (this.#random() * this.#ties < 1) this.#index = index;
    }
  }

  /** The best of those considered; undefined when there was none. */
  best(failedOpen: boolean): Pick | undefined {
    if (this.#index < 0) return undefined;
    const endpoint = this.#endpoints[this.#index] as Endpoint; // an index that was considered
    const isOver = !(this.#board.waiting(this.#index) < endpoint.queueLimit);
    const reason = isOver ? "over-queue-limit" : "least-rank";
    return this.#pick(this.#index, failedOpen, failedOpen ? "failed-open" : reason);
  }

  /** Nobody passes: the least rank among the fresh, and when none is fresh, among all. */
  leastBad(judge: (list: List) => void): Pick | undefined {
    judge(List.Fresh);
    const count = this.#board.result[RESULT.candidates] as number; // the block has it
    for (let i = 0; i < count; i++) this.consider(this.#board.candidates[i] as number);
    if (this.#index < 0) {
      for (let i = 0; i < this.#endpoints.length; i++) this.consider(i);
    }
    return this.best(true);
  }

  #isOut(id: string): boolean {
    const { exclude, among } = this.#request;
    return (
      (exclude !== undefined && hasId(exclude, id)) || (among !== undefined && !hasId(among, id))
    );
  }

  #pick(index: number, failedOpen: boolean, reason: PickReason): Pick {
    const endpoint = this.#endpoints[index] as Endpoint; // an index of the board
    return { endpoint, rank: this.#board.rank(index, this.#tokens), failedOpen, reason };
  }
}
