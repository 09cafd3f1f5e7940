// What can be taken away from the page as files.

import { stringify } from "yaml";
import type { Report } from "../../sim/report";
import { reportCsv } from "../../sim/report-text";
import type { Tree } from "./tree";

/** Where the files come from, asked when a button is pressed. */
export interface ExportSource {
  reports(): readonly (Report | undefined)[];
  tree(): Tree;
}

/** Buttons of the reports; the scenario's can always be pressed. */
const REPORT_BUTTONS = ["export-json", "export-csv-a", "export-csv-b"] as const;

/** Wires the buttons. */
export function wireExports({ reports, tree }: ExportSource): void {
  const csv = (i: number) => () => {
    const report = reports()[i];
    if (report === undefined) return;
    download(`${report.scenario}-${report.policy}.csv`, reportCsv(report), "text/csv");
  };
  const json = () => download("plimsoll-reports.json", JSON.stringify(reports()), JSON_TYPE);
  const yaml = () => download("scenario.yaml", stringify(tree()), "text/yaml");
  button("export-csv-a").addEventListener("click", csv(0));
  button("export-csv-b").addEventListener("click", csv(1));
  button("export-json").addEventListener("click", json);
  button("export-yaml").addEventListener("click", yaml);
}

/** The reports' buttons can be pressed once there are reports. */
export function enableExports(areThere: boolean): void {
  for (const id of REPORT_BUTTONS) button(id).disabled = !areThere;
}

const JSON_TYPE = "application/json";

/** How long a file's address is kept: some browsers read it only after the click has ended. */
const KEPT_MS = 10_000;

function download(name: string, text: string, type: string): void {
  const link = document.createElement("a");
  const { href } = Object.assign(link, {
    href: URL.createObjectURL(new Blob([text], { type })),
    download: name,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(href), KEPT_MS);
}

function button(id: string): HTMLButtonElement {
  return document.getElementById(id) as HTMLButtonElement; // all of them stand in sim.html
}
