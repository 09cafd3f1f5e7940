// Small helpers for text in a terminal.

/** Writes colours where the stream has them. */
export type Paint = (style: keyof typeof STYLES, text: string) => string;

const STYLES = { bold: "1", dim: "2", red: "31", green: "32", yellow: "33" };

/** Colours for a stream; NO_COLOR and FORCE_COLOR count, as Node reads them. */
export function paintFor(stream: { hasColors?(): boolean }): Paint {
  if (stream.hasColors?.() !== true) return (_, text) => text;
  return (style, text) => `\x1b[${STYLES[style]}m${text}\x1b[0m`;
}

/** What comes from elsewhere may not steer the terminal: control and direction marks become "?". */
export function clean(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to remove
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g, "?");
}

/** Cut to a width, with a mark where it was cut. */
export function clip(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

const BLOCKS = "▁▂▃▄▅▆▇█";

/** A line of bars, one per value; `top` is a full bar. NaN is a gap. */
export function sparkline(values: readonly number[], top: number): string {
  return values
    .map((value) => {
      if (Number.isNaN(value)) return " ";
      const step = Math.floor((Math.min(value, top) / top) * BLOCKS.length);
      return BLOCKS[Math.min(step, BLOCKS.length - 1)];
    })
    .join("");
}
