/** The rows of a diff: they lead from the old text to the new one. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { diffsOf } from "../../../tools/diff.ts";
import { hunksOf, type DiffHunk } from "../../../web/text/diff-rows.ts";

/** The new text, made of the old one and what the rows show. Throws if the rows do not fit the old text. */
function applyRows(old: string, hunks: readonly DiffHunk[]): string {
  const oldLines = old.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const result: string[] = [];
  let at = 0;
  for (const row of hunks.flatMap(({ rows }) => rows)) {
    const line = row.endsFile ? row.text : `${row.text}\n`;
    if (row.oldLine !== null) {
      while (at < row.oldLine - 1) result.push(oldLines[at++] ?? "");
      expect(line).toBe(oldLines[at]);
      at++;
    }
    if (row.newLine !== null) {
      // Lines without a change lie between the hunks.
      while (result.length < row.newLine - 1) result.push(oldLines[at++] ?? "");
      result.push(line);
    }
  }
  return [...result, ...oldLines.slice(at)].join("");
}

const line = fc.constantFrom(
  "a",
  "b",
  "",
  " ",
  "--- a",
  "+++ b",
  "-",
  "+",
  "@@ -1 +1 @@",
  "\\ No newline",
  "a\r",
  "\t",
  "ü😀",
);
const text = fc
  .tuple(fc.array(line, { maxLength: 40 }), fc.constantFrom("", "\n"))
  .map(([lines, end]) => lines.join("\n") + end);

describe("property: the rows of a diff", () => {
  test("make the new text of the old one, and count its lines", () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        for (const { diff, addedLines, removedLines, truncated } of diffsOf(
          "/f",
          { kind: "text", text: before },
          after,
          {},
        )) {
          expect(truncated).toBe(false);
          const hunks = hunksOf(diff);
          expect(hunks).not.toBeNull();
          if (hunks === null) return;
          expect(applyRows(before, hunks)).toBe(after);
          const rows = hunks.flatMap((hunk) => hunk.rows);
          expect(rows.filter(({ kind }) => kind === "added")).toHaveLength(addedLines);
          expect(rows.filter(({ kind }) => kind === "removed")).toHaveLength(removedLines);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("of a small change in a long file do the same", () => {
    fc.assert(
      fc.property(fc.nat(400), fc.nat(400), line, (first, second, changed) => {
        const lines = Array.from({ length: 400 }, (_, at) => `line ${at}`);
        const after = lines.with(first % 400, changed);
        after.splice(second, 1);
        const before = `${lines.join("\n")}\n`;
        const [diff] = diffsOf("/f", { kind: "text", text: before }, `${after.join("\n")}\n`, {});
        expect(applyRows(before, hunksOf(diff?.diff ?? "") ?? [])).toBe(`${after.join("\n")}\n`);
      }),
    );
  });

  test("of a new file are all its lines", () => {
    fc.assert(
      fc.property(text, (after) => {
        const [diff] = diffsOf("/f", { kind: "nothing" }, after, {});
        expect(applyRows("", hunksOf(diff?.diff ?? "") ?? [])).toBe(after);
      }),
    );
  });
});

test("a diff that was cut shows its beginning", () => {
  const after = Array.from({ length: 20_000 }, (_, at) => `line ${at}`).join("\n");
  const [diff] = diffsOf("/f", { kind: "nothing" }, after, {});
  expect(diff?.truncated).toBe(true);
  const rows = (hunksOf(diff?.diff ?? "") ?? []).flatMap((hunk) => hunk.rows);
  expect(rows[0]).toEqual({ kind: "added", oldLine: null, newLine: 1, text: "line 0", endsFile: false });
  expect(rows.length).toBeGreaterThan(100);
});

test("rows are numbered, and the last line of a file without a newline says so", () => {
  const [diff] = diffsOf("/f", { kind: "text", text: "a\nb" }, "a\nc\n", {});
  expect(hunksOf(diff?.diff ?? "")).toEqual([
    {
      header: "@@ -1,2 +1,2 @@",
      rows: [
        { kind: "context", oldLine: 1, newLine: 1, text: "a", endsFile: false },
        { kind: "removed", oldLine: 2, newLine: null, text: "b", endsFile: true },
        { kind: "added", oldLine: null, newLine: 2, text: "c", endsFile: false },
      ],
    },
  ]);
});

test("an empty diff has no hunks, and what is no diff is not taken for one", () => {
  expect(hunksOf("")).toEqual([]);
  expect(hunksOf("@@ -1,2 +1 @@\n a\n")).toBeNull();
  expect(hunksOf("--- a\n")).toBeNull();
});
