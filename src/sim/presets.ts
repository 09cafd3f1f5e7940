// Engines to choose from: step-time coefficients of models on GPUs. "measured-fit" ones were fitted on
// published runs of vLLM on H100; "derived" ones were scaled from those and are measured nowhere.

/** Where the coefficients of a preset come from. */
export type PresetKind = "measured-fit" | "derived";

/** What an engine is. A step takes `a + d * kvTokens / 1000 + c * batch + p * prefillTokens` ms. */
export interface EngineModel {
  /** Base of a step, in ms; > 0. */
  readonly a: number;
  /** What 1,000 tokens of context in the batch add to a step, in ms. */
  readonly d: number;
  /** What each sequence in the batch adds, in ms. */
  readonly c: number;
  /** What each prompt token that is computed in the step adds, in ms. */
  readonly p: number;
  /** Constant part of the time to first byte outside of steps (HTTP, tokens, sampling), in ms. */
  readonly ttftConst: number;
  /** Blocks of the KV cache; > 0. */
  readonly kvBlocks: number;
  /** Tokens of one block; > 0. Default 16. */
  readonly blockSize: number;
  /** Sequences in one batch at the most. Default 128. */
  readonly maxNumSeqs: number;
  /** Tokens that one step may compute. Default 2048. */
  readonly maxNumBatchedTokens: number;
  /** Prompts longer than the rest of a step are computed in pieces. Default true. */
  readonly chunkedPrefill: boolean;
  /** Prompts share the blocks of what they begin with. Default true. */
  readonly prefixCache: boolean;
  /** The metrics page shows nothing newer than this, in ms. Default 0. */
  readonly publishingLag: number;
}

/** An engine that is offered by name. */
export interface Preset extends EngineModel {
  readonly kind: PresetKind;
}

/** What presets share. */
export const ENGINE_DEFAULTS = {
  blockSize: 16,
  maxNumSeqs: 128,
  maxNumBatchedTokens: 2048,
  chunkedPrefill: true,
  prefixCache: true,
  publishingLag: 0,
} as const;

function preset(
  kind: PresetKind,
  [a, d, c, p]: readonly [number, number, number, number],
  ttftConst: number,
  kvBlocks: number,
): Preset {
  return Object.freeze({ ...ENGINE_DEFAULTS, kind, a, d, c, p, ttftConst, kvBlocks });
}

/**
 * Presets by name: model / GPU / tensor parallelism. In the measured ones `c` is folded into `d` (at
 * about 700 tokens per sequence) and prompts cost nothing, since theirs were cached. Their KV sizes,
 * but for llama-2-7b, are computed from the memory that the weights leave.
 */
export const PRESETS: Readonly<Record<string, Preset>> = Object.freeze({
  "llama-3.1-8b/H100/tp1": preset("derived", [6.7, 0.045, 0.012, 0.019], 15, 29205),
  "llama-3.1-70b/H100/tp4": preset("derived", [16.5, 0.028, 0.033, 0.0764], 28, 30400),
  "llama-3.1-8b/A100/tp1": preset("derived", [11, 0.074, 0.02, 0.048], 18, 29205),
  "llama-3.1-8b/L4/tp1": preset("derived", [57, 0.5, 0.08, 0.15], 25, 1900),
  "llama-2-7b/H100/tp1": preset("measured-fit", [6.1, 0.1832, 0, 0], 14.5, 7187),
  "llama-2-70b/H100/tp4": preset("measured-fit", [16.41, 0.0752, 0, 0], 28, 30400),
  "codellama-34b/H100/tp2": preset("measured-fit", [13.59, 0.0577, 0, 0], 23.3, 24000),
  "mixtral-8x7b/H100/tp2": preset("measured-fit", [17.66, 0.0413, 0, 0], 34, 23900),
});
