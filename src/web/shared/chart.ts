// A line chart over time, by uPlot, in the page's colours, with its figures as text for those who do
// not see it.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

/** A line of a chart. */
export interface Line {
  readonly label: string;
  /** A custom property of the style sheet, such as `--water`. */
  readonly colour: string;
  readonly dashed?: boolean;
}

/** How a chart is drawn. */
export interface ChartOptions {
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly Line[];
  /** Draws values from 1 to 100,000 evenly. */
  readonly isLog?: boolean;
  /** A mark across the chart, such as the load line. */
  readonly mark?: number;
}

/** Values of the lines; the first array is the time in seconds. */
export type ChartData = readonly (readonly (number | null)[])[];

const HEIGHT = 170;

/** A chart inside an element of fixed height. */
export class Chart {
  readonly #host: HTMLElement;
  readonly #options: ChartOptions;
  #plot: uPlot | undefined;
  #data: ChartData = [[]];
  #range: readonly [number, number] = [0, 1];
  #end = 1;
  #cursor = -1;

  constructor(host: HTMLElement, options: ChartOptions) {
    this.#host = host;
    this.#options = options;
    host.setAttribute("role", "img");
    new ResizeObserver(() => {
      const width = host.clientWidth;
      if (this.#plot !== undefined && this.#plot.width !== width) {
        this.#plot.setSize({ width, height: HEIGHT });
      }
    }).observe(host);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
  }

  /**
   * Shows other data.
   *
   * @param range of the values, and @param end of the time in seconds, so that charts side by side
   * can have the same.
   * @param summary the figures in words.
   */
  setData(data: ChartData, range: readonly [number, number], end: number, summary: string): void {
    this.#data = data;
    this.#end = end;
    this.#range = range;
    this.#host.setAttribute("aria-label", `${this.#options.title}: ${summary}`);
    this.#draw();
  }

  /** Marks the time with this index. */
  setCursor(index: number): void {
    if (index === this.#cursor || this.#plot === undefined) return;
    this.#cursor = index;
    const left = this.#plot.valToPos(this.#data[0]?.[index] ?? 0, "x");
    this.#plot.setCursor({ left, top: 0 }, false);
  }

  #draw(): void {
    this.#plot?.destroy();
    this.#host.replaceChildren();
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const { lines, isLog = false, mark, unit } = this.#options;
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 } };
    const [min, max] = this.#range;
    const series = lines.map(({ label, colour: name, dashed }) => ({
      label,
      stroke: colour(name),
      width: 1.5,
      spanGaps: true,
      points: { show: false },
      ...(dashed ? { dash: [4, 3] } : {}),
    }));
    const marks: uPlot.Hooks.Arrays =
      mark === undefined ? {} : { draw: [(plot) => drawMark(plot, mark, colour("--mark"))] };
    this.#plot = new uPlot(
      {
        width: Math.max(100, this.#host.clientWidth),
        height: HEIGHT,
        scales: {
          x: { time: false, range: [0, this.#end] },
          y: { range: [min, max], ...(isLog ? { distr: 3 as const } : {}) },
        },
        axes: [
          { ...axis, size: 26, values: (_, ticks) => ticks.map((tick) => `${tick} s`) },
          {
            ...axis,
            size: 58,
            values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : label(tick, unit))),
          },
        ],
        series: [{}, ...series],
        hooks: marks,
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      },
      this.#data as uPlot.AlignedData, // arrays of numbers and nulls, as it wants them
      this.#host,
    );
    this.#cursor = -1;
  }
}

/** A value of the axis; 1,000 ms and more are seconds. */
function label(value: number, unit: string): string {
  return unit === "ms" && value >= 1000 ? `${value / 1000} s` : `${value} ${unit}`;
}

function drawMark(plot: uPlot, value: number, colour: string): void {
  const { ctx, bbox } = plot;
  const y = plot.valToPos(value, "y", true);
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}
