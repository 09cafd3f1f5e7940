// Tables of plain text, for the command line and for reports.

/** Columns under their titles; numbers to the right. */
export function table(
  columns: readonly { readonly title: string; readonly right?: boolean }[],
  rows: readonly (readonly string[])[],
): string[] {
  const widths = columns.map(({ title }, i) =>
    Math.max(title.length, ...rows.map((row) => (row[i] ?? "").length)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => {
        const width = widths[i] ?? 0;
        return columns[i]?.right ? cell.padStart(width) : cell.padEnd(width);
      })
      .join("  ")
      .trimEnd();
  return [line(columns.map(({ title }) => title)), ...rows.map(line)];
}
