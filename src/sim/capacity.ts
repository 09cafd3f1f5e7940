// Closed forms of the engine model: what an engine can do, and fitting the model to measurements.

import type { EngineModel } from "./presets";

/** Mean lengths of a traffic, in tokens. */
export interface MeanLengths {
  readonly prompt: number;
  readonly output: number;
}

/**
 * Requests per second that an engine can serve for ever, with as many sequences in the batch as its
 * limits allow and everything else at its mean. An estimate: real traffic is not at its mean.
 *
 * rate = B / (output * step),
 * step = a + d * B * (prompt + output / 2) / 1000 + c * B + p * B * prompt / output
 */
export function capacityOf(model: EngineModel, lengths: MeanLengths): number {
  const { prompt, output } = lengths;
  const { a, c, d, p, kvBlocks, blockSize, maxNumSeqs, maxNumBatchedTokens } = model;
  const context = prompt + output / 2;
  const promptPerToken = prompt / output;
  const batch = Math.max(
    1,
    Math.min(
      maxNumSeqs,
      (kvBlocks * blockSize) / context,
      maxNumBatchedTokens / (1 + promptPerToken),
    ),
  );
  const step = a + (d * batch * context) / 1000 + c * batch + p * batch * promptPerToken;
  return (1000 * batch) / (output * step);
}

/**
 * Time per output token of an engine whose prompts cost nothing and whose batch is as large as the
 * traffic makes it, in ms; Infinity where it cannot keep up.
 *
 * TPOT = a / (1 - d * rate * (output - 1) * (prompt + output / 2))
 *
 * @param ratePerS requests per second.
 */
export function expectedTpotMs(
  step: { readonly a: number; readonly d: number },
  ratePerS: number,
  lengths: MeanLengths,
): number {
  const busy = (step.d / 1000) * contextPerTpot(ratePerS, lengths);
  return busy < 1 ? step.a / (1 - busy) : Number.POSITIVE_INFINITY;
}

/** A measured run of one engine at a steady rate. */
export interface MeasuredRun extends MeanLengths {
  /** Requests per second. */
  readonly rate: number;
  /** Mean time per output token, in ms. */
  readonly tpotMs: number;
}

/**
 * Fits `a` and `d` of a step to measured runs, by least squares: the mean context in the batch is
 * rate * (output - 1) * TPOT * (prompt + output / 2) by Little's law, and TPOT = a + d * context.
 * `c` is folded into `d`.
 *
 * @returns a in ms, d in ms per 1,000 tokens. With one run, or several of the same load, d is 0.
 */
export function fitStep(runs: readonly MeasuredRun[]): { readonly a: number; readonly d: number } {
  const points = runs.map((run) => ({
    x: (contextPerTpot(run.rate, run) * run.tpotMs) / 1000,
    y: run.tpotMs,
  }));
  const mean = (of: (point: { x: number; y: number }) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const x = mean((point) => point.x);
  const y = mean((point) => point.y);
  const spread = mean((point) => (point.x - x) ** 2);
  const d = spread === 0 ? 0 : mean((point) => (point.x - x) * (point.y - y)) / spread;
  return { a: y - d * x, d };
}

/** Tokens of context in the batch for each ms that a token takes. */
function contextPerTpot(ratePerS: number, { prompt, output }: MeanLengths): number {
  return (ratePerS / 1000) * (output - 1) * (prompt + output / 2);
}
