// Puts reports into the simulator's page, which then shows them without running anything.

import type { Report } from "../sim/report";

/** What the page is given. */
export interface PageData {
  readonly reports: readonly Report[];
  /** The scenario as it was run. */
  readonly scenario: unknown;
  /** What each report is called, where its policy does not tell it from the others. */
  readonly titles?: readonly string[];
}

/** The page with `data` in it; `<` is escaped, so that nothing in it can end the script element. */
export function embedReports(html: string, data: PageData): string {
  const json = JSON.stringify(data).replaceAll("<", "\\u003c");
  const script = `<script type="application/json" id="plimsoll-reports">${json}</script>`;
  const at = html.lastIndexOf("</body>");
  return at < 0 ? html + script : html.slice(0, at) + script + html.slice(at);
}
