/** Owns: flame graphs (SVG): which functions take a process's time, below those that called them. */
import { writeFileSync } from "node:fs";
import * as charts from "echarts";

/** From the outermost function to the one that ran, and for how long, in any unit. */
export type Stack = { readonly frames: readonly string[]; readonly weight: number };

type Box = { readonly name: string; weight: number; readonly below: Map<string, Box> };

const WIDTH = 1200;
const ROW = 15;
const MARGIN = { top: 44, side: 12, bottom: 12 };
/** What takes a smaller share of the time is left out. */
const LEAST = 0.004;
const MOST_ROWS = 48;
/** Pixels of a letter, about. */
const LETTER = 6;

/** Draws the picture. It can be read on white and on black. */
export function drawFlame(title: string, stacks: readonly Stack[], file: string): void {
  const root = treeOf(stacks);
  const boxes: (readonly [row: number, from: number, to: number, name: string])[] = [];
  const place = (box: Box, row: number, from: number): void => {
    if (box.weight < LEAST * root.weight || row >= MOST_ROWS) return;
    boxes.push([row, from, from + box.weight, box.name]);
    let at = from;
    for (const next of [...box.below.values()].sort((a, b) => b.weight - a.weight)) {
      place(next, row + 1, at);
      at += next.weight;
    }
  };
  place(root, 0, 0);
  const rows = Math.max(...boxes.map(([row]) => row)) + 1;
  const height = rows * ROW + MARGIN.top + MARGIN.bottom;
  const renderItem: NonNullable<charts.CustomSeriesOption["renderItem"]> = ({ dataIndex }, api) => {
    const [row = 0, from = 0, to = 0, name = ""] = boxes[dataIndex] ?? [];
    const [x = 0, y = 0] = api.coord([from, row]);
    const share = (to - from) / root.weight;
    const width = share * (WIDTH - 2 * MARGIN.side);
    const letters = Math.floor((width - 4) / LETTER);
    const text = letters < 4 ? "" : `${name} ${(100 * share).toFixed(0)} %`.slice(0, letters);
    return {
      type: "rect",
      shape: { x, y, width: Math.max(0.5, width - 0.5), height: ROW - 1 },
      style: { fill: colorOf(name) },
      textContent: { type: "text", style: { text, fontSize: 10, fill: "#24292f" } },
      textConfig: { position: "insideLeft", distance: 3 },
    };
  };
  const chart = charts.init(null, null, { renderer: "svg", ssr: true, width: WIDTH, height });
  chart.setOption({
    animation: false,
    backgroundColor: "#ffffff",
    title: { text: title, textStyle: { fontSize: 14, color: "#24292f" }, left: 8, top: 6 },
    grid: { left: MARGIN.side, right: MARGIN.side, top: MARGIN.top, bottom: MARGIN.bottom },
    xAxis: { type: "value", min: 0, max: root.weight, show: false },
    yAxis: { type: "value", min: 0, max: rows, inverse: true, show: false },
    series: [
      {
        ...{ type: "custom", renderItem, encode: { x: [1, 2], y: 0 } },
        data: boxes.map(([row, from, to]) => [row, from, to]),
      },
    ],
  });
  writeFileSync(file, chart.renderToSVGString());
  chart.dispose();
}

function treeOf(stacks: readonly Stack[]): Box {
  const root: Box = { name: "all", weight: 0, below: new Map() };
  for (const { frames, weight } of stacks) {
    root.weight += weight;
    let box = root;
    for (const name of frames) {
      const next = box.below.get(name) ?? { name, weight: 0, below: new Map<string, Box>() };
      box.below.set(name, next);
      next.weight += weight;
      box = next;
    }
  }
  return root;
}

/** The same for the same name, so that two graphs can be compared. */
function colorOf(name: string): string {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) % 997;
  return `hsl(${20 + (hash % 40)} 85% ${70 + (hash % 13)}%)`;
}
