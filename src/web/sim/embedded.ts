// Reports that `plimsoll sim --html` has written into the page.

import { POLICY_NAMES } from "../../sim/policy-names";
import type { Report } from "../../sim/report";
import { SCENARIO_NAMES } from "../../sim/scenarios";
import { FIRST_STATE, type PageState } from "./page-state";
import type { Tree } from "./tree";

/** What was written into the page. */
export interface Embedded {
  readonly reports: readonly Report[];
  readonly scenario: Tree;
  /** What each report is called; without them, by its policy. */
  readonly titles?: readonly string[];
}

/** What was written into this page, if anything was. */
export function readEmbedded(): Embedded | undefined {
  const text = document.getElementById("plimsoll-reports")?.textContent;
  if (!text) return undefined;
  const data = JSON.parse(text) as Embedded; // embedReports wrote it
  return data.reports.length > 0 ? data : undefined;
}

/** What each report is called. */
export function titlesOf({ reports, titles }: Embedded): readonly string[] {
  return reports.map(({ policy }, i) => titles?.[i] ?? policy);
}

/** The state that runs again what these two reports show. */
export function stateOf(scenario: Tree, a: Report, b: Report): PageState {
  const { policy: _, ...tree } = scenario;
  const policyOf = (report: Report, side: "a" | "b") =>
    POLICY_NAMES.find((name) => name === report.policy) ?? FIRST_STATE[side];
  const base = SCENARIO_NAMES.find((name) => name === a.scenario) ?? FIRST_STATE.base;
  return { base, tree, a: policyOf(a, "a"), b: policyOf(b, "b"), seed: a.seed };
}
