// Numbers and names for people.

/** What stands where a value is unknown. */
export const UNKNOWN = "-";

/** A number with at most so many decimals. */
export function decimal(value: number | null, digits = 0): string {
  return value === null ? UNKNOWN : value.toFixed(digits);
}

/** A fraction as percent. */
export function percent(value: number | null): string {
  return value === null ? UNKNOWN : `${(100 * value).toFixed(0)} %`;
}

/** A time span: ms, from a second on seconds, from two minutes on minutes. */
export function span(ms: number | null): string {
  if (ms === null) return UNKNOWN;
  if (ms < 999.5) return `${ms.toFixed(0)} ms`;
  if (ms < 119_950) return `${(ms / 1000).toFixed(ms < 9950 ? 1 : 0)} s`;
  return `${(ms / 60_000).toFixed(0)} min`;
}

/** A count with thin groups of thousands. */
export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** Without the scheme, which all have. */
export function withoutScheme(id: string): string {
  return id.replace(/^https?:\/\//, "");
}

/** What tells names from each other: without the beginning and the end that all have, up to a separator. */
export function shortNames(ids: readonly string[]): string[] {
  const names = ids.map(withoutScheme);
  const [first = ""] = names;
  if (names.length < 2) return names;
  let start = 0;
  let end = 0;
  const isShared = (at: (name: string) => string | undefined) =>
    names.every((name) => at(name) !== undefined && at(name) === at(first));
  while (isShared((name) => name[start])) start++;
  while (isShared((name) => (name.length - end > start ? name.at(-1 - end) : undefined))) end++;
  while (start > 0 && !isSeparator(first[start - 1])) start--;
  while (end > 0 && !isSeparator(first.at(-end))) end--;
  return names.map((name) => name.slice(start, name.length - end) || name);
}

function isSeparator(char: string | undefined): boolean {
  return char !== undefined && /[^\p{L}\p{N}]/u.test(char);
}
