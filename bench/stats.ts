/** Owns: figures from samples, and the table that shows them beside their goals. */

/** The value below which a share `q` of the samples lies; the samples need not be sorted. */
export function quantile(samples: readonly number[], q: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

export type Row = {
  readonly what: string;
  readonly figures: string;
  readonly goal: string;
  /** What later runs are compared with (past-runs.ts): smaller is better. */
  readonly compared?: number;
};

/** Least squares. */
export function fitLine(points: readonly (readonly [number, number])[]): {
  readonly slope: number;
  /** 1: all points lie on it. */
  readonly r2: number;
} {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [mx, my] = [mean(points.map(([x]) => x)), mean(points.map(([, y]) => y))];
  const sum = (of: (x: number, y: number) => number) =>
    points.reduce((all, [x, y]) => all + of(x - mx, y - my), 0);
  const slope = sum((x, y) => x * y) / sum((x) => x * x);
  return { slope, r2: sum((x, y) => x * y) ** 2 / (sum((x) => x * x) * sum((_, y) => y * y)) };
}

export const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;

/** `p50 12 ms, p90 20 ms`; the quantile 1 is `max`. */
export const spread = (samples: readonly number[], qs: readonly number[] = [0.5, 0.9]): string =>
  qs.map((q) => `${q === 1 ? "max" : `p${Math.round(q * 100)}`} ${ms(quantile(samples, q))}`).join(", ");

export function table(rows: readonly Row[]): string {
  const lines = rows.map(({ what, figures, goal }) => `| ${what} | ${figures} | ${goal} |`);
  return ["| measured | figures | goal |", "| --- | --- | --- |", ...lines].join("\n");
}
