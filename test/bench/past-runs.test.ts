/** When a benchmark says that something got worse. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { compareAndKeep, verdict } from "../../bench/past-runs.ts";
import { fitLine, type Row } from "../../bench/stats.ts";

const past = [{ round: 50 }, { round: 54 }, { round: 52 }];

test("a figure beyond the worst of three runs by more than they differ is worse", () => {
  expect(verdict(past, { round: 58.1 })).toBe(
    "Worse than the last three runs and their noise: round (50.0, 54.0, 52.0 before, now 58.1).",
  );
  expect(verdict(past, { round: 58 })).toMatch(/^Nothing got worse/);
  expect(verdict(past, { round: 10 })).toMatch(/^Nothing got worse/);
});

test("three runs are needed, of the figure too; the newest count", () => {
  expect(verdict(past.slice(1), { round: 500 })).toMatch(/^Nothing to compare with: 2 of 3/);
  expect(verdict(past, { turn: 500 })).toMatch(/^Nothing got worse/);
  expect(verdict([{ round: 900 }, ...past], { round: 100 })).toMatch(/^Worse/);
});

test("runs are kept for the next one; rows without a figure to compare are not", () => {
  const folder = mkdtempSync(join(tmpdir(), "bedrock-runs-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "reports", "bench.json");
  const rows = (compared: number): readonly Row[] => [
    { what: "a round", figures: "", goal: "", compared },
    { what: "said only", figures: "", goal: "" },
  ];
  const said = [50, 51, 52, 53, 90].map((figure) => compareAndKeep(file, rows(figure)));
  expect(said.map((line) => line.split(":")[0])).toEqual([
    ...["Nothing to compare with", "Nothing to compare with", "Nothing to compare with"],
    "Nothing got worse by more than the noise of the last three runs.",
    "Worse than the last three runs and their noise",
  ]);
});

test("a line is fitted to points, and says how well", () => {
  expect(
    fitLine([
      [0, 1],
      [1, 3],
      [2, 5],
    ]),
  ).toEqual({ slope: 2, r2: 1 });
  expect(
    fitLine([
      [0, 0],
      [1, 3],
      [2, 0],
    ]).r2,
  ).toBeCloseTo(0);
});
