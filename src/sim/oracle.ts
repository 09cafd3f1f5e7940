// The policy to compare with: it sees every engine as it is, and everything that any router has sent,
// and ranks with the very same formula as the live projection.

import { BATCH, kvPenalty, TOKEN_BUDGET } from "../projection";
import type { Fleet, Member } from "./fleet";
import type { PolicyRequest } from "./policies";
import type { EngineModel } from "./presets";
import type { Random } from "./random";

/** Prompt that stands for all when engines are compared by how fast they are. */
const TYPICAL_PROMPT = 512;

/** The oracle of one router. All routers' oracles see the same. */
export class Oracle {
  readonly #members: readonly Member[];
  readonly #random: Random;
  readonly #kvLimit: number;
  readonly #medianMs: number;

  constructor(fleet: Fleet, random: Random, kvLimit: number) {
    this.#members = fleet.members;
    this.#random = random;
    this.#kvLimit = kvLimit;
    const times = fleet.members.map(({ spec }) => unloadedMs(spec.model)).sort((a, b) => a - b);
    this.#medianMs = times[times.length >> 1] ?? 1;
  }

  /** The least rank among those that are up and not full, else among those that are up. */
  choose(request: PolicyRequest): string | undefined {
    return (
      this.#least(request, ({ engine }) => engine.health === "up" && engine.kv < this.#kvLimit) ??
      this.#least(request, ({ engine }) => engine.health === "up") ??
      this.#least(request, () => true)
    );
  }

  #least({ tokens, exclude }: PolicyRequest, passes: (member: Member) => boolean) {
    let best: string | undefined;
    let least = Number.POSITIVE_INFINITY;
    let ties = 0;
    for (const member of this.#members) {
      if (exclude.has(member.id) || !passes(member)) continue;
      const rank = this.#rank(member, tokens);
      if (rank > least) continue;
      ties = rank < least ? 1 : ties + 1;
      if (ties > 1 && this.#random.next() * ties >= 1) continue;
      least = rank;
      best = member.id;
    }
    return best;
  }

  #rank({ engine, spec, inFlight, pendingTokens }: Member, tokens: number): number {
    const slow = (unloadedMs(spec.model) / this.#medianMs) * engine.slowness;
    const work = 1 + (pendingTokens + tokens) / TOKEN_BUDGET + inFlight / BATCH;
    return slow * work + kvPenalty(engine.kv);
  }
}

/** How long an idle engine takes for a token and for a typical prompt: their geometric mean, in ms. */
function unloadedMs({ a, d, p }: EngineModel): number {
  const token = a + (d * TYPICAL_PROMPT) / 1000;
  return Math.sqrt(token * (token + p * TYPICAL_PROMPT));
}
