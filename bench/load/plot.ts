/** Owns: figures as pictures (SVG), for docs/performance.md. */
import { writeFileSync } from "node:fs";
import * as charts from "echarts";

export type Plot = {
  readonly title: string;
  readonly x: { readonly name: string; readonly isLogarithmic?: true };
  /** Of all lines. */
  readonly y: string;
  readonly lines: readonly {
    readonly name: string;
    readonly points: readonly (readonly [number, number])[];
  }[];
};

const SIZE = { width: 640, height: 360 };
const TEXT = "#57606a";

/** Writes the picture. It can be read on white and on black. */
export function draw({ title, x, y, lines }: Plot, file: string): void {
  const chart = charts.init(null, null, { renderer: "svg", ssr: true, ...SIZE });
  const grid = { lineStyle: { color: "#8c959f55" } };
  chart.setOption({
    animation: false,
    backgroundColor: "#ffffff",
    title: { text: title, textStyle: { fontSize: 14, color: "#24292f" }, left: 8, top: 6 },
    legend: { bottom: 4, textStyle: { color: TEXT } },
    grid: { left: 64, right: 24, top: 48, bottom: 72 },
    xAxis: {
      type: x.isLogarithmic ? "log" : "value",
      name: x.name,
      ...{ nameLocation: "middle", nameGap: 26, splitLine: grid, axisLabel: { color: TEXT } },
    },
    yAxis: { type: "value", name: y, min: 0, splitLine: grid, axisLabel: { color: TEXT } },
    series: lines.map(({ name, points }) => ({
      ...{ type: "line", name, symbolSize: 5, data: points.map((point) => [...point]) },
    })),
  });
  writeFileSync(file, chart.renderToSVGString());
  chart.dispose();
}
