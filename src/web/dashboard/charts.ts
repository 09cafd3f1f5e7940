// Saturation, time to first token and queues over the last minutes.

import { HISTORY_STEPS, type HistoryPoint, STEP_MS } from "../../dashboard/journal";
import { Chart, type ChartOptions, type Line } from "../shared/chart";
import { element } from "./dom";
import { count, decimal, span } from "./text";

const STEP_S = STEP_MS / 1000;
/** Seconds from the last point, for each place of the history. */
const TIMES = Array.from({ length: HISTORY_STEPS }, (_, i) => (i + 1 - HISTORY_STEPS) * STEP_S);
/** How far back the charts go, in seconds: as far as there is something to show. */
const SPANS = [60, 120, 180, HISTORY_STEPS * STEP_S];
const TIME_STEPS = [15, 30, 60, 120];

type Column = 0 | 1 | 2 | 3 | 4 | 5;

interface ChartKind extends Omit<ChartOptions, "lines" | "timeText"> {
  /** Two columns of the history: the dashed line first, so that the other lies above it. */
  readonly lines: readonly (readonly [column: Column, label: string])[];
  /** It says nothing where requests are not counted. */
  readonly isOfRequests?: boolean;
  readonly range: (most: number) => readonly [number, number];
  readonly text: (value: number | null) => string;
}

const KINDS: readonly ChartKind[] = [
  {
    ...{ title: "Saturation", unit: "", mark: 1 },
    lines: [
      [1, "as the gate sees it"],
      [0, "pool"],
    ],
    range: (most) => [0, roundUp(Math.max(1.5, most))],
    text: (value) => decimal(value, 2),
  },
  {
    ...{ title: "Time to first token", unit: "ms", isLog: true, hasDots: true, isOfRequests: true },
    lines: [
      [3, "longest"],
      [2, "mean"],
    ],
    range: (most) => [1, 10 ** Math.ceil(Math.log10(Math.max(1000, most)))],
    text: span,
  },
  {
    ...{ title: "Queue", unit: "" },
    lines: [
      [5, "at the endpoints"],
      [4, "held in the router"],
    ],
    range: (most) => [0, roundUp(Math.max(10, most))],
    text: (value) => (value === null ? decimal(null) : count(value)),
  },
];

const LOOKS: readonly Omit<Line, "label">[] = [
  { colour: "--soft", dashed: true },
  { colour: "--water" },
];

/** The charts. */
export class Charts {
  readonly #charts: readonly { chart: Chart; kind: ChartKind; values: HTMLElement[] }[];

  constructor(host: HTMLElement) {
    this.#charts = KINDS.map((kind) => {
      const { title, lines } = kind;
      const values = lines.map(() => element("b", { class: "number" }));
      const keys = lines.map(([, label], i) =>
        element("span", {}, [
          element("i", { class: LOOKS[i]?.dashed ? "dashed" : "line" }),
          document.createTextNode(`${label} `),
          values[i] as HTMLElement, // one for each line
        ]),
      );
      const area = element("div", { class: "chart" });
      host.append(
        element("article", { class: kind.isOfRequests ? "panel of-requests" : "panel" }, [
          element("h2", { text: title }),
          area,
          element("p", { class: "key" }, keys.reverse()),
        ]),
      );
      const chart = new Chart(area, {
        ...kind,
        title: `${title} over the last minutes`,
        lines: lines.map(([, label], i) => ({ label, ...(LOOKS[i] ?? { colour: "--ink" }) })),
        timeSteps: TIME_STEPS,
        timeText,
      });
      return { chart, kind, values };
    });
  }

  /** Shows the points, oldest first. */
  show(points: readonly HistoryPoint[]): void {
    const missing = HISTORY_STEPS - points.length;
    const seconds = points.length * STEP_S;
    const start = -(SPANS.find((span) => seconds <= span) ?? seconds);
    for (const { chart, kind, values } of this.#charts) {
      const columns = kind.lines.map(([column]) =>
        TIMES.map((_, i) => points[i - missing]?.[column] ?? null),
      );
      const most = Math.max(...columns.map((values) => Math.max(...values.map(Number))));
      const last = kind.lines.map(([column]) => kind.text(points.at(-1)?.[column] ?? null));
      for (const [i, text] of last.entries()) (values[i] as HTMLElement).textContent = text;
      const summary = kind.lines.map(([, label], i) => `${label} ${last[i]}`).join(", ");
      chart.setData([TIMES, ...columns], kind.range(most), 0, `now ${summary}`, start);
    }
  }
}

function timeText(seconds: number): string {
  if (seconds === 0) return "now";
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;
}

/** The next of 1, 1.5, 2, 3, 5 and their decades, so that an axis seldom changes. */
function roundUp(value: number): number {
  const decade = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.5, 2, 3, 5, 10].find((factor) => value <= factor * decade);
  return (step ?? 10) * decade;
}
