// One run on the page: its policy, its endpoints as vessels, and its charts.

import type { Report } from "../../sim/report";
import { Chart, type ChartData } from "../shared/chart";
import { type VesselName, type VesselState, Vessels } from "../shared/vessels";
import { POLICY_OPTIONS } from "./fields";
import type { Ranges } from "./ranges";

/** So many times the fair share, and at least this many, are a herd. */
const HERD_FACTOR = 3;
const LEAST_HERD = 8;

/** One of the two runs. */
export class Column {
  readonly policy: HTMLSelectElement;
  readonly #reportChoice: HTMLSelectElement;
  readonly #progress: HTMLProgressElement;
  readonly #headline: readonly HTMLElement[];
  readonly #vessels: Vessels;
  readonly #saturation: Chart;
  readonly #ttft: Chart;
  #report: Report | undefined;

  constructor(host: HTMLElement, side: "a" | "b") {
    const name = side.toUpperCase();
    host.innerHTML = `
      <h2 id="title-${side}">Run ${name}</h2>
      <label class="report-choice" hidden>Report shown as run ${name} <select></select></label>
      <label>Policy of run ${name} <select></select></label>
      <progress max="1" value="0" aria-label="Progress of run ${name}"></progress>
      <dl class="headline">
        <div><dt>TTFT p99</dt><dd>-</dd></div>
        <div><dt>Goodput</dt><dd>-</dd></div>
        <div><dt>Largest herd</dt><dd>-</dd></div>
      </dl>
      <ul class="vessels" aria-label="Endpoints of run ${name}: level is the load, the dashed line is the ideal; above it, requests just sent"></ul>
      <h3>Saturation</h3>
      <div class="chart"></div>
      <p class="key"><span><i style="border-color: var(--water)"></i>as the routers see it</span><span><i style="border-color: var(--soft); border-top-style: dashed"></i>as it is</span></p>
      <h3>Time to first token</h3>
      <div class="chart"></div>
      <p class="key"><span><i style="border-color: var(--water)"></i>mean</span><span><i style="border-color: var(--soft); border-top-style: dashed"></i>longest</span></p>`;
    const find = <T extends Element>(selector: string) => host.querySelector<T>(selector) as T; // made above
    [this.#reportChoice, this.policy] = [
      find<HTMLSelectElement>(".report-choice select"),
      find<HTMLSelectElement>("label:not(.report-choice) select"),
    ];
    this.policy.append(...POLICY_OPTIONS.map(({ value, label }) => new Option(label, value)));
    this.#progress = find<HTMLProgressElement>("progress");
    this.#headline = [...host.querySelectorAll<HTMLElement>("dd")];
    this.#vessels = new Vessels(find("ul"));
    const [saturation, ttft] = host.querySelectorAll<HTMLElement>(".chart");
    const colours = { colour: "--water" };
    const dashed = { colour: "--soft", dashed: true };
    this.#saturation = new Chart(saturation as HTMLElement, {
      title: `Saturation of run ${name} over time`,
      unit: "",
      mark: 1,
      lines: [
        { label: "as it is", ...dashed },
        { label: "as the routers see it", ...colours },
      ],
    });
    this.#ttft = new Chart(ttft as HTMLElement, {
      title: `Time to first token of run ${name} over time`,
      unit: "ms",
      isLog: true,
      lines: [
        { label: "longest", ...dashed },
        { label: "mean", ...colours },
      ],
    });
  }

  /** Nothing has been run; `kinds` are the engines that will be. */
  clear(kinds: readonly string[]): void {
    this.#vessels.setNames(kinds.map(nameOf));
    this.#vessels.show(kinds.map(() => ({ score: 0 })));
    this.#report = undefined;
    this.setProgress(0);
    for (const cell of this.#headline) cell.textContent = "-";
    this.#saturation.setData(
      [
        [0, 1],
        [null, null],
        [null, null],
      ],
      [0, 1.5],
      60,
      "not run yet",
    );
    this.#ttft.setData(
      [
        [0, 1],
        [null, null],
        [null, null],
      ],
      [10, 1000],
      60,
      "not run yet",
    );
  }

  /** Lets people choose which of many reports is shown here. */
  offerReports(titles: readonly string[], chosen: number, choose: (index: number) => void): void {
    const select = this.#reportChoice;
    select.replaceChildren(...titles.map((title, i) => new Option(title, String(i))));
    select.value = String(chosen);
    select.onchange = () => choose(Number(select.value));
    select.parentElement?.removeAttribute("hidden");
  }

  /** The page shows its own runs from now on. */
  withdrawReports(): void {
    this.#reportChoice.parentElement?.setAttribute("hidden", "");
  }

  setProgress(share: number): void {
    this.#progress.value = share;
  }

  /** Shows a report. */
  show(report: Report, ranges: Ranges): void {
    this.#report = report;
    this.setProgress(1);
    const { series, ttftMs, goodput, herd, endpoints } = report;
    const texts = [
      ttftMs.p99 === null ? "-" : `${Math.round(ttftMs.p99)} ms`,
      `${(100 * goodput).toFixed(1)} %`,
      `${herd.size} of ${Math.round(herd.fairSize * endpoints.length)}`,
    ];
    for (const [i, cell] of this.#headline.entries()) cell.textContent = texts[i] ?? "";
    this.#vessels.setNames(endpoints.map(({ kind }, i) => nameOf(kind, i)));
    const seconds = series.timesMs.map((time) => time / 1000);
    const most = (values: readonly number[]) => Math.max(0, ...values).toFixed(2);
    const data: ChartData = [seconds, series.trueSaturation, series.saturation];
    this.#saturation.setData(
      data,
      ranges.saturation,
      ranges.end,
      `at most ${most(series.saturation)}, in truth ${most(series.trueSaturation)}`,
    );
    const times: ChartData = [seconds, series.ttftMaxMs, series.ttftMeanMs];
    this.#ttft.setData(
      times,
      ranges.ttft,
      ranges.end,
      `p50 ${Math.round(ttftMs.p50 ?? 0)} ms, p99 ${texts[0]}, longest ${Math.round(ttftMs.max ?? 0)} ms`,
    );
  }

  /** Shows the run at one of its steps. */
  showStep(index: number): void {
    const report = this.#report;
    if (report === undefined) return;
    const { endpoints } = report.series;
    const at = Math.min(index, report.series.timesMs.length - 1);
    const total = endpoints.reduce((sum, { sent }) => sum + (sent[at] ?? 0), 0);
    const herd = Math.max(LEAST_HERD, (HERD_FACTOR * total) / endpoints.length);
    const states: VesselState[] = endpoints.map(({ score, sent }) => {
      const count = index < report.series.timesMs.length ? (sent[at] ?? 0) : 0;
      return { score: score[at] ?? 0, sent: count, isHerd: endpoints.length > 1 && count >= herd };
    });
    this.#vessels.show(states);
    this.#saturation.setCursor(at);
    this.#ttft.setCursor(at);
  }
}

/** What stands under a vessel: its number, and the GPU, which tells mixed engines apart. */
function nameOf(kind: string, i: number): VesselName {
  return { name: String(i), detail: kind.split("/")[1] ?? "" };
}
