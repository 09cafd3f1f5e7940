// "Did you mean": the known word that is fewest edits away. Apart, because options, engine names and
// commands all ask for it.

/** The nearest of `known`, or `undefined` where none is near enough to be a slip of the pen. */
export function nearestKey(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const key of known) {
    const edits = countEdits(word.toLowerCase(), key.toLowerCase());
    if (edits < least && edits <= Math.max(2, key.length / 3)) {
      least = edits;
      best = key;
    }
  }
  return best;
}

/** Levenshtein distance, with the first 64 characters of each word. */
function countEdits(from: string, to: string): number {
  const a = from.slice(0, 64);
  const b = to.slice(0, 64);
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const swap = (row[j] ?? 0) + (a[i] === b[j] ? 0 : 1);
      next.push(Math.min(swap, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
