// The simulator's page: the scenario on one side, two runs of it on the other.

import { stringify } from "yaml";
import { ConfigError } from "../../errors";
import type { Report } from "../../sim/report";
import { reportCsv } from "../../sim/report-text";
import type { PolicyName } from "../../sim/scenario";
import { resolveScenario } from "../../sim/scenario-reader";
import { SCENARIO_NAMES } from "../../sim/scenarios";
import { readTrace } from "../../sim/traces";
import "../shared/base.css";
import "./page.css";
import { Column, type Ranges } from "./column";
import { showFigures } from "./figures";
import { ScenarioForm } from "./form";
import type { Fault, FromWorker, ToWorker } from "./messages";
import { builtIn, fromHash, type PageState, toHash } from "./page-state";
import { Player } from "./player";
import { type Tree, withValue } from "./tree";
import SimWorker from "./worker?worker&inline";

const SIDES = ["a", "b"] as const;

function byId<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T; // all of them stand in index.html
}

/** The page. */
class Page {
  #state: PageState = fromHash(location.hash);
  #reports: (Report | undefined)[] = [undefined, undefined];
  #workers: Worker[] = [];
  readonly #scenario = byId<HTMLSelectElement>("scenario");
  readonly #seed = byId<HTMLInputElement>("seed");
  readonly #stop = byId<HTMLButtonElement>("stop");
  readonly #columns = SIDES.map(
    (side) => new Column(document.querySelector(`[data-side="${side}"]`) as HTMLElement, side),
  );
  readonly #form = new ScenarioForm(byId("groups"), byId("faults"), {
    changed: (tree) => this.#setState({ tree }),
    traceChosen: (tenant, file) => void this.#takeTrace(tenant, file),
  });
  readonly #player = new Player(
    { button: byId("play"), slider: byId("time"), clock: byId("clock") },
    (step) => {
      for (const column of this.#columns) column.showStep(step);
    },
  );

  constructor() {
    this.#scenario.append(...SCENARIO_NAMES.map((name) => new Option(name, name)));
    this.#scenario.addEventListener("change", () => {
      const base = this.#scenario.value;
      this.#setState({ base, tree: builtIn(base) });
      this.#showState();
      this.run();
    });
    this.#seed.addEventListener("change", () => this.#setState({ seed: this.#seed.valueAsNumber }));
    for (const [i, side] of SIDES.entries()) {
      const select = this.#columns[i]?.policy;
      select?.addEventListener("change", () => {
        this.#setState({ [side]: select.value as PolicyName }); // its options are the policies
        this.run();
      });
    }
    byId("controls").addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
    });
    this.#stop.addEventListener("click", () => this.#endRuns());
    addEventListener("hashchange", () => {
      if (location.hash.slice(1) === toHash(this.#state)) return;
      this.#state = fromHash(location.hash);
      this.#showState();
      this.run();
    });
    this.#wireExports();
    this.#showState();
  }

  /** Runs both policies on the same traffic. */
  run(): void {
    this.#endRuns();
    this.#form.showFaults([]);
    this.#reports = [undefined, undefined];
    this.#enableExports();
    this.#stop.disabled = false;
    const { tree, seed } = this.#state;
    const kinds = this.#check(tree);
    if (kinds === undefined) return;
    this.#workers = SIDES.map((side, i) => {
      const worker = new SimWorker();
      this.#columns[i]?.clear(kinds);
      worker.addEventListener("message", ({ data }: MessageEvent<FromWorker>) =>
        this.#hear(i, data),
      );
      worker.addEventListener("error", ({ message }) => this.#fail([{ path: "", rule: message }]));
      const order: ToWorker = { tree: { ...tree, policy: this.#state[side] }, seed };
      worker.postMessage(order);
      return worker;
    });
  }

  /** Shows reports that were made elsewhere. */
  showReports(reports: readonly Report[], tree: Tree): void {
    const [a, b = a] = reports;
    if (a === undefined) return;
    this.#state = { ...this.#state, tree };
    this.#form.show(tree);
    byId("description").textContent = `${a.scenario}: a report that was made with plimsoll sim.`;
    for (const [i, report] of [a, b].entries()) {
      const policy = this.#columns[i]?.policy;
      if (policy !== undefined && report !== undefined) policy.value = report.policy;
    }
    this.#reports = [a, b];
    this.#showBoth();
  }

  /** The kinds of the engines; undefined when there are faults, which are shown. */
  #check(tree: Tree): readonly string[] | undefined {
    try {
      return resolveScenario(tree).endpoints.map(({ kind }) => kind);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#fail(error.faults);
      return undefined;
    }
  }

  #hear(i: number, message: FromWorker): void {
    if (message.kind === "progress") this.#columns[i]?.setProgress(message.share);
    else if (message.kind === "faults") this.#fail(message.faults);
    else {
      this.#reports[i] = message.report;
      this.#columns[i]?.setProgress(1);
      if (this.#reports.every((report) => report !== undefined)) {
        this.#endRuns();
        this.#showBoth();
      }
    }
  }

  #fail(faults: readonly Fault[]): void {
    this.#endRuns();
    this.#form.showFaults(faults);
  }

  #endRuns(): void {
    for (const worker of this.#workers) worker.terminate();
    this.#workers = [];
    this.#stop.disabled = true;
  }

  #showBoth(): void {
    const reports = this.#reports.filter((report) => report !== undefined);
    const ranges = rangesOf(reports);
    for (const [i, report] of reports.entries()) this.#columns[i]?.show(report, ranges);
    showFigures(byId("figures"), this.#reports);
    this.#enableExports();
    const steps = Math.max(...reports.map(({ series }) => series.timesMs.length));
    this.#player.load(steps, reports[0]?.series.stepMs ?? 1);
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.#player.play();
    document.body.dataset.done = String(Number(document.body.dataset.done ?? 0) + 1);
  }

  #setState(change: Partial<PageState>): void {
    this.#state = { ...this.#state, ...change };
    history.replaceState(null, "", `#${toHash(this.#state)}`);
  }

  #showState(): void {
    const { base, tree, seed } = this.#state;
    this.#scenario.value = base;
    this.#seed.value = String(seed);
    for (const [i, side] of SIDES.entries()) {
      const policy = this.#columns[i]?.policy;
      if (policy !== undefined) policy.value = this.#state[side];
    }
    byId("description").textContent = String(tree.description ?? "");
    this.#form.show(tree);
    showFigures(byId("figures"), [undefined, undefined]);
  }

  async #takeTrace(tenant: number, file: File): Promise<void> {
    try {
      const { requests } = readTrace(await file.text(), { name: file.name });
      const at = `traffic.${tenant}`;
      let tree = withValue(this.#state.tree, `${at}.trace`, requests);
      tree = withValue(tree, `${at}.arrival`, { process: "trace" });
      for (const part of ["prompt", "output"]) tree = withValue(tree, `${at}.${part}`, undefined);
      tree = withValue(tree, "duration", Math.ceil(requests.at(-1)?.timeMs ?? 0) + 1);
      this.#setState({ tree });
      this.#form.show(tree);
      this.#form.showFaults([]);
    } catch (error) {
      this.#form.showFaults([
        { path: file.name, rule: error instanceof Error ? error.message : String(error) },
      ]);
    }
  }

  #wireExports(): void {
    const csv = (i: number) => () => {
      const report = this.#reports[i];
      if (report !== undefined)
        download(`${report.scenario}-${report.policy}.csv`, reportCsv(report), "text/csv");
    };
    byId("export-csv-a").addEventListener("click", csv(0));
    byId("export-csv-b").addEventListener("click", csv(1));
    byId("export-json").addEventListener("click", () => {
      download("plimsoll-reports.json", JSON.stringify(this.#reports), "application/json");
    });
    byId("export-yaml").addEventListener("click", () => {
      download("scenario.yaml", stringify(this.#state.tree), "text/yaml");
    });
  }

  #enableExports(): void {
    const isMissing = this.#reports.some((report) => report === undefined);
    for (const id of ["export-json", "export-csv-a", "export-csv-b"]) {
      byId<HTMLButtonElement>(id).disabled = isMissing;
    }
  }
}

/** Ranges that hold both runs. */
function rangesOf(reports: readonly Report[]): Ranges {
  const most = (of: (report: Report) => readonly (number | null)[]) =>
    Math.max(...reports.flatMap((report) => of(report).map((value) => value ?? 0)), 0);
  const least = (of: (report: Report) => readonly (number | null)[]) =>
    Math.min(
      ...reports.flatMap((report) => of(report).map((value) => value ?? Number.POSITIVE_INFINITY)),
    );
  const saturation = Math.max(
    1.5,
    most(({ series }) => series.saturation),
    most(({ series }) => series.trueSaturation),
  );
  const top = most(({ series }) => series.ttftMaxMs);
  const bottom = least(({ series }) => series.ttftMeanMs);
  const decade = (value: number, round: (x: number) => number) => 10 ** round(Math.log10(value));
  const low = Number.isFinite(bottom) && bottom > 0 ? decade(bottom, Math.floor) : 1;
  const end = Math.max(...reports.map(({ series }) => (series.timesMs.at(-1) ?? 0) / 1000), 1);
  return {
    end,
    saturation: [0, saturation * 1.05],
    ttft: [low, Math.max(low * 10, decade(top || 10, Math.ceil))],
  };
}

function download(name: string, text: string, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

const page = new Page();
const embedded = document.getElementById("plimsoll-reports")?.textContent;
if (embedded) {
  const { reports, scenario } = JSON.parse(embedded) as { reports: Report[]; scenario: Tree }; // plimsoll sim --html writes it
  page.showReports(reports, scenario);
} else page.run();
