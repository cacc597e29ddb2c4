/**
 * Owns: whether a figure got worse. The last three runs on this machine are the measure: a figure is worse if it is
 * beyond the worst of them by more than they differ among themselves.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname } from "node:path";
import type { Row } from "./stats.ts";

/** The figures of one run, by what was measured. */
export type Run = Readonly<Record<string, number>>;

const RUNS = 3;

/** A figure that can be compared, smaller is better. */
const figuresOf = (rows: readonly Row[]): Run =>
  Object.fromEntries(
    rows.flatMap(({ what, compared }) => (compared === undefined ? [] : [[what, compared]])),
  );

/** In one line. @param past runs, the last ones last */
export function verdict(past: readonly Run[], now: Run): string {
  const last = past.slice(-RUNS);
  if (last.length < RUNS) return `Nothing to compare with: ${last.length} of ${RUNS} earlier runs are there.`;
  const worse = Object.entries(now).flatMap(([what, figure]) => {
    const before = last.flatMap((run) => run[what] ?? []);
    if (before.length < RUNS) return [];
    const [best, worst] = [Math.min(...before), Math.max(...before)];
    return figure > worst + (worst - best)
      ? [`${what} (${shown(before)} before, now ${shown([figure])})`]
      : [];
  });
  return worse.length === 0
    ? "Nothing got worse by more than the noise of the last three runs."
    : `Worse than the last three runs and their noise: ${worse.join("; ")}.`;
}

const shown = (figures: readonly number[]): string =>
  figures.map((figure) => figure.toPrecision(3)).join(", ");

/** Compares with the earlier runs in the file, and adds this one. Other machines' runs are not counted. */
export function compareAndKeep(file: string, rows: readonly Row[]): string {
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? "?"}`;
  const all = read(file);
  const past = all[machine] ?? [];
  const now = figuresOf(rows);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify({ ...all, [machine]: [...past, now].slice(-RUNS) }, null, 2));
  return verdict(past, now);
}

function read(file: string): Readonly<Record<string, readonly Run[]>> {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Readonly<Record<string, readonly Run[]>>;
  } catch {
    return {};
  }
}
