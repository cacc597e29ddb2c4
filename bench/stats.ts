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
};

export const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;

/** `p50 12 ms, p90 20 ms`; the quantile 1 is `max`. */
export const spread = (samples: readonly number[], qs: readonly number[] = [0.5, 0.9]): string =>
  qs.map((q) => `${q === 1 ? "max" : `p${Math.round(q * 100)}`} ${ms(quantile(samples, q))}`).join(", ");

export function table(rows: readonly Row[]): string {
  const lines = rows.map(({ what, figures, goal }) => `| ${what} | ${figures} | ${goal} |`);
  return ["| measured | figures | goal |", "| --- | --- | --- |", ...lines].join("\n");
}
