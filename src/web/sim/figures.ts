// The figures of both runs side by side; the better one is marked, in words too.

import type { Report } from "../../sim/report";
import { reportRows } from "../../sim/report-text";

/** Fills `host` with a table; the columns are called by `titles`, or else by their policies. */
export function showFigures(
  host: HTMLElement,
  reports: readonly (Report | undefined)[],
  titles: readonly string[] = reports.map((report) => report?.policy ?? "-"),
): void {
  // It scrolls sideways where it is narrow, so the keyboard must reach it.
  host.tabIndex = 0;
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  head.append(headerCell("Figure", "col"));
  for (const [i, title] of titles.entries()) head.append(headerCell(`${"AB"[i]}: ${title}`, "col"));
  const body = table.createTBody();
  for (const { title, cell, value, better } of reportRows(
    reports.filter((report) => report !== undefined),
  )) {
    const row = body.insertRow();
    row.append(headerCell(title, "row"));
    const values = reports.map((report) =>
      report === undefined ? null : (value?.(report) ?? null),
    );
    const best = bestOf(values, better);
    for (const [i, report] of reports.entries()) {
      const td = row.insertCell();
      td.textContent = report === undefined ? "-" : cell(report);
      if (best !== i) continue;
      td.className = "better";
      td.append(" ✓");
      td.title = "the better of the two";
    }
  }
  host.replaceChildren(table);
}

/** Which is better by more than a per cent; -1: neither. */
function bestOf(values: readonly (number | null)[], better: "low" | "high" | undefined): number {
  const [a = null, b = null] = values;
  if (better === undefined || a === null || b === null) return -1;
  if (Math.abs(a - b) <= 0.01 * Math.max(Math.abs(a), Math.abs(b))) return -1;
  return a < b === (better === "low") ? 0 : 1;
}

function headerCell(text: string, scope: string): HTMLTableCellElement {
  const cell = document.createElement("th");
  cell.scope = scope;
  cell.textContent = text;
  return cell;
}
