/** Owns: the rows of a unified diff, with their line numbers. Pure. Not here: making a diff (tools/diff.ts). */
import { parsePatch } from "diff";

export type DiffRow = {
  readonly kind: "context" | "added" | "removed";
  /** From 1 on; null: the line is not on that side. */
  readonly oldLine: number | null;
  readonly newLine: number | null;
  /** Without the sign and the newline. */
  readonly text: string;
  /** No newline follows: it is the last line of its file. */
  readonly endsFile: boolean;
};

export type DiffHunk = { readonly header: string; readonly rows: readonly DiffRow[] };

/**
 * The hunks of a diff of one file; none for "".
 *
 * @returns null: it is no unified diff
 */
export function hunksOf(diff: string): readonly DiffHunk[] | null {
  try {
    return parsePatch(diff).flatMap(({ hunks }) =>
      hunks.map(({ oldStart, oldLines, newStart, newLines, lines }) => ({
        header: `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`,
        rows: rowsOf(lines, oldStart, newStart),
      })),
    );
  } catch {
    return null;
  }
}

function rowsOf(lines: readonly string[], oldStart: number, newStart: number): readonly DiffRow[] {
  const rows: DiffRow[] = [];
  let oldLine = oldStart;
  let newLine = newStart;
  for (const line of lines) {
    const [sign = " "] = line;
    const last = rows.at(-1);
    if (sign === "\\") {
      if (last !== undefined) rows[rows.length - 1] = { ...last, endsFile: true };
      continue;
    }
    const kind = sign === "+" ? "added" : sign === "-" ? "removed" : "context";
    rows.push({
      kind,
      oldLine: kind === "added" ? null : oldLine++,
      newLine: kind === "removed" ? null : newLine++,
      text: line.slice(1),
      endsFile: false,
    });
  }
  return rows;
}
