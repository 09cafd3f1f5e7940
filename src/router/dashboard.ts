// What the dashboard sees of a router: its snapshot, and what its journal has noted of requests.

import { type Drop, Journal } from "../dashboard/journal";
import type { EndpointPool } from "../pool";
import type { Gates } from "./gates";
import type { Ended, Outcome, ProxyObserver } from "./proxy";

/** A journal of the pool and its gates; `start` starts it. */
export function journalOf(pool: EndpointPool, gates: Gates): Journal {
  return new Journal(() => {
    const stats = gates.stats();
    let queued = 0;
    for (const endpoint of pool) queued += endpoint.waiting || 0; // NaN before the first reading
    return {
      saturation: pool.saturation(),
      gateSaturation: Math.max(...stats.map((gate) => gate.saturation)),
      held: stats.reduce((sum, gate) => sum + gate.waiting, 0),
      queued,
    };
  });
}

/** An observer that passes everything on to `next`, and notes in the journal what a dashboard shows. */
export function noteIn(journal: Journal, now: () => number, next: ProxyObserver): ProxyObserver {
  return {
    onAdmitted: (model, band, waitedMs) => next.onAdmitted(model, band, waitedMs),
    onAnswer: (endpoint, status) => next.onAnswer(endpoint, status),
    onFirstByte: (ms) => {
      journal.addTtft(ms);
      next.onFirstByte(ms);
    },
    onTried: (ms) => next.onTried(ms),
    onRefused: (reason, isRetried) => next.onRefused(reason, isRetried),
    onEnd: (outcome, request) => {
      if (outcome !== "answered") journal.drops.add(dropOf(outcome, request, now()));
      next.onEnd(outcome, request);
    },
  };
}

function dropOf(reason: Outcome, { ownAnswer, asked, startedAt }: Ended, now: number): Drop {
  return {
    time: now,
    reason,
    status: ownAnswer?.status ?? null,
    message: ownAnswer?.message ?? WORDS[reason] ?? "",
    model: asked?.gate.model ?? null,
    band: asked?.band ?? null,
    lastedMs: Math.round(now - startedAt),
  };
}

/** Where nothing was answered, or only a part. */
const WORDS: Partial<Record<Outcome, string>> = {
  "client-gone": "the client went away before its answer was complete",
  "client-stalled": "the client did not read its answer",
  "upstream-cut": "the endpoint's answer ended early",
};
