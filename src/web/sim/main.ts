// The simulator's page: the scenario on one side, two runs of it on the other.

import { ConfigError } from "../../errors";
import type { Report } from "../../sim/report";
import type { PolicyName } from "../../sim/scenario";
import { resolveScenario } from "../../sim/scenario-reader";
import { SCENARIO_NAMES } from "../../sim/scenarios";
import { readTrace } from "../../sim/traces";
import "../shared/base.css";
import "./page.css";
import { Column } from "./column";
import { type Embedded, readEmbedded, stateOf, titlesOf } from "./embedded";
import { enableExports, wireExports } from "./exports";
import { showFigures } from "./figures";
import { ScenarioForm } from "./form";
import type { Fault, FromWorker, ToWorker } from "./messages";
import { builtIn, fromHash, type PageState, toHash } from "./page-state";
import { Player } from "./player";
import { rangesOf } from "./ranges";
import { type Tree, withValue } from "./tree";
import SimWorker from "./worker?worker&inline";

const SIDES = ["a", "b"] as const;

function byId<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T; // all of them stand in sim.html
}

/** The page. */
class Page {
  #state: PageState = fromHash(location.hash);
  #reports: (Report | undefined)[] = [undefined, undefined];
  #workers: Worker[] = [];
  /** What the columns are called; undefined: by their policies. */
  #titles: readonly string[] | undefined;
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
    { button: byId("play"), slider: byId("time"), speed: byId("speed"), clock: byId("clock") },
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
    wireExports({ reports: () => this.#reports, tree: () => this.#state.tree });
    this.#showState();
  }

  /** Runs both policies on the same traffic. */
  run(): void {
    this.#endRuns();
    const { tree, seed } = this.#state;
    // What is wrong is said beside its field, and the runs that are shown stay.
    const kinds = this.#check(tree);
    if (kinds === undefined) return;
    this.#form.showFaults([]);
    this.#forgetReports(kinds);
    for (const column of this.#columns) column.withdrawReports();
    this.#stop.disabled = false;
    this.#workers = SIDES.map((side, i) => {
      const worker = new SimWorker();
      worker.addEventListener("message", ({ data }: MessageEvent<FromWorker>) =>
        this.#hear(i, data),
      );
      worker.addEventListener("error", ({ message }) => this.#fail([{ path: "", rule: message }]));
      const order: ToWorker = { tree: { ...tree, policy: this.#state[side] }, seed };
      worker.postMessage(order);
      return worker;
    });
  }

  /** Shows reports that were made elsewhere; of more than two, any two. */
  showEmbedded(data: Embedded): void {
    const titles = titlesOf(data);
    const chosen = [0, Math.min(1, titles.length - 1)];
    const show = () => {
      this.#endRuns();
      const [a, b] = chosen.map((i) => data.reports[i]);
      if (a === undefined || b === undefined) return;
      this.#state = stateOf(data.scenario, a, b);
      this.#showState();
      byId("description").textContent =
        `${a.scenario}: made with plimsoll sim. Run repeats the first one's scenario here.`;
      this.#reports = [a, b];
      this.#titles = chosen.map((i) => titles[i] ?? "");
      this.#showBoth();
    };
    if (titles.length > 2) {
      for (const [side, column] of this.#columns.entries()) {
        column.offerReports(titles, chosen[side] ?? 0, (i) => {
          chosen[side] = i;
          show();
        });
      }
    }
    show();
  }

  #forgetReports(kinds: readonly string[]): void {
    this.#reports = [undefined, undefined];
    this.#titles = undefined;
    for (const column of this.#columns) column.clear(kinds);
    showFigures(byId("figures"), this.#reports);
    enableExports(false);
    this.#player.load(0, 1);
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
    showFigures(byId("figures"), this.#reports, this.#titles);
    enableExports(true);
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
    this.#form.showFaults([]);
    this.#forgetReports([]);
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
}

const page = new Page();
const embedded = readEmbedded();
if (embedded === undefined) page.run();
else page.showEmbedded(embedded);
