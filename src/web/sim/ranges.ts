// Ranges of the charts, which hold both runs, so that they can be compared by eye.

import type { Report } from "../../sim/report";

/** Ranges of both charts, the same for both runs. */
export interface Ranges {
  readonly saturation: readonly [number, number];
  readonly ttft: readonly [number, number];
  /** When the longer one ends, in seconds. */
  readonly end: number;
}

/** Ranges that hold all these reports. */
export function rangesOf(reports: readonly Report[]): Ranges {
  const saturations = reports.flatMap(({ series }) => [
    ...series.saturation,
    ...series.trueSaturation,
  ]);
  const means = reports.flatMap(({ series }) => observed(series.ttftMeanMs));
  const longest = reports.flatMap(({ series }) => observed(series.ttftMaxMs));
  const ends = reports.map(({ series }) => (series.timesMs.at(-1) ?? 0) / 1000);
  // Series may be long: Math.max would spread them over the stack.
  const most = (values: readonly number[], least: number) =>
    values.reduce((a, b) => Math.max(a, b), least);
  const bottom = means.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const isKnown = Number.isFinite(bottom) && bottom > 0;
  const low = isKnown ? 10 ** Math.floor(Math.log10(bottom)) : 1;
  const high = 10 ** Math.ceil(Math.log10(most(longest, 10)));
  return {
    end: most(ends, 1),
    saturation: [0, most(saturations, 1.5) * 1.05],
    ttft: [low, Math.max(low * 10, high)],
  };
}

function observed(values: readonly (number | null)[]): number[] {
  return values.filter((value) => value !== null);
}
