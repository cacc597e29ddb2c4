/**
 * Owns: what a change of a text file looks like: a unified diff of bounded size, made in bounded time. Pure.
 * Not here: reading and writing the file (text-file.ts).
 */
import { FILE_HEADERS_ONLY, formatPatch, structuredPatch, type StructuredPatchHunk } from "diff";
import type { FileDiff } from "../machine/message.ts";
import { DIFF_BYTES, jsonBytes } from "../machine/size.ts";
import { isHidden } from "./path.ts";

/** What a file held before it was written. */
export type Before =
  | { readonly kind: "nothing" }
  | { readonly kind: "text"; readonly text: string }
  /** It was binary, too large, or could not be read. */
  | { readonly kind: "unknown" };

const CONTEXT_LINES = 3;
/** The shortest diff is looked for up to so many added and removed lines: the time for it grows with their square. */
const MAX_EDIT_LENGTH = 500;
/** UTF-16 code units of both sides together up to which it is looked for at all. */
const MAX_COMPARED = 512 * 1024;
/** Bytes of a line "@@ -1,2 +3,4 @@", with numbers for any file. */
const HUNK_HEADER_BYTES = 64;
const NO_NEWLINE = "\\ No newline at end of file";

/**
 * How a write changed a file; empty if its content is the same as before. Of the server's own files no line is shown.
 *
 * @param file absolute and without links
 * @param hidden the server's own folders
 */
export function diffsOf(
  file: string,
  before: Before,
  text: string,
  { hidden = [] }: { readonly hidden?: readonly string[] },
): readonly FileDiff[] {
  // This is what an encoder writes for half of a surrogate pair.
  const after = text.toWellFormed();
  if (before.kind === "text" && before.text === after) return [];
  const change = before.kind === "nothing" ? "created" : "modified";
  const old = before.kind === "text" ? before.text : "";
  const isShown = before.kind !== "unknown" && !isHidden(file, hidden) && !isBinary(old) && !isBinary(after);
  return [
    isShown
      ? diffOf(file, change, old, after)
      : { path: file, change, diff: "", addedLines: 0, removedLines: 0, truncated: true },
  ];
}

function diffOf(path: string, change: FileDiff["change"], old: string, after: string): FileDiff {
  const { hunks, addedLines, removedLines } = compare(old, after);
  const oldFileName = change === "created" ? "/dev/null" : path;
  const format = (shown: StructuredPatchHunk[]): string =>
    formatPatch(
      { oldFileName, newFileName: path, oldHeader: "", newHeader: "", hunks: shown },
      FILE_HEADERS_ONLY,
    );
  const { kept, truncated } = cut(hunks, DIFF_BYTES - jsonBytes(format([])));
  const diff = kept.length === 0 ? "" : format(kept);
  return { path, change, diff, addedLines, removedLines, truncated };
}

const isBinary = (text: string): boolean => text.includes("\0");

type Comparison = {
  readonly hunks: readonly StructuredPatchHunk[];
  readonly addedLines: number;
  readonly removedLines: number;
};

/** The shortest diff or, where looking for it would take long, one that replaces all lines from the first to the last change. */
function compare(before: string, after: string): Comparison {
  const region = regionOf(before, after);
  const { firstLine, above, removed, added, below } = region;
  const isWhole = removed === "" || added === "" || removed.length + added.length > MAX_COMPARED;
  const patch = isWhole
    ? undefined
    : structuredPatch("", "", above + removed + below, above + added + below, "", "", {
        context: CONTEXT_LINES,
        maxEditLength: MAX_EDIT_LENGTH,
      });
  if (patch === undefined) {
    return {
      hunks: [wholeHunk(region)],
      addedLines: countLines(added),
      removedLines: countLines(removed),
    };
  }
  const lines = patch.hunks.flatMap((hunk) => hunk.lines);
  return {
    hunks: patch.hunks.map((hunk) => ({
      ...hunk,
      oldStart: hunk.oldStart + firstLine - 1,
      newStart: hunk.newStart + firstLine - 1,
    })),
    addedLines: countMarked(lines, "+"),
    removedLines: countMarked(lines, "-"),
  };
}

/** Whole lines: those from the first change to the last, on both sides, and the context around them. */
type Region = {
  /** The number of the first line of `above`, or of the first changed line if there is none. */
  readonly firstLine: number;
  readonly above: string;
  readonly removed: string;
  readonly added: string;
  readonly below: string;
};

function regionOf(before: string, after: string): Region {
  const shorter = Math.min(before.length, after.length);
  let same = 0;
  while (same < shorter && before.charCodeAt(same) === after.charCodeAt(same)) same++;
  const start = same === 0 ? 0 : before.lastIndexOf("\n", same - 1) + 1;
  let tail = 0;
  const fromEnd = (text: string): number => text.charCodeAt(text.length - 1 - tail);
  while (tail < shorter - start && fromEnd(before) === fromEnd(after)) tail++;
  // The common end begins with a whole line on both sides.
  const beginsLine = (text: string): boolean => startsLine(text, text.length - tail);
  if (!beginsLine(before) || !beginsLine(after)) {
    const newline = before.indexOf("\n", before.length - tail);
    tail = newline === -1 ? 0 : before.length - newline - 1;
  }
  const end = before.length - tail;
  const top = lineUp(before, start, CONTEXT_LINES);
  return {
    firstLine: countNewlines(before, top) + 1,
    above: before.slice(top, start),
    removed: before.slice(start, end),
    added: after.slice(start, after.length - tail),
    below: before.slice(end, lineDown(before, end, CONTEXT_LINES)),
  };
}

const startsLine = (text: string, at: number): boolean => at === 0 || text[at - 1] === "\n";

/** The beginning of the line that lies `count` lines above the one that begins at `at`. */
function lineUp(text: string, at: number, count: number): number {
  let begin = at;
  for (let n = 0; n < count && begin > 0; n++) begin = begin < 2 ? 0 : text.lastIndexOf("\n", begin - 2) + 1;
  return begin;
}

/** The end of the line that lies `count` lines below `at`. */
function lineDown(text: string, at: number, count: number): number {
  let end = at;
  for (let n = 0; n < count && end < text.length; n++) {
    const newline = text.indexOf("\n", end);
    end = newline === -1 ? text.length : newline + 1;
  }
  return end;
}

/** All lines of the region are removed, and added. */
function wholeHunk({ firstLine, above, removed, added, below }: Region): StructuredPatchHunk {
  return recount({ oldStart: firstLine, newStart: firstLine }, [
    ...marked(" ", above),
    ...marked("-", removed),
    ...marked("+", added),
    ...marked(" ", below),
  ]);
}

/** The lines of a text, each with a mark. More of them than a diff may have are left out: they would be cut in any case. */
function marked(mark: string, text: string): string[] {
  if (text === "") return [];
  const lines = text
    .slice(0, DIFF_BYTES)
    .split("\n")
    .map((line) => mark + line);
  if (text.endsWith("\n") && text.length <= DIFF_BYTES) lines.pop();
  else lines.push(NO_NEWLINE);
  return lines;
}

/** The first lines of the hunks that have at most `room` bytes as JSON. */
function cut(
  hunks: readonly StructuredPatchHunk[],
  room: number,
): { readonly kept: StructuredPatchHunk[]; readonly truncated: boolean } {
  const kept: StructuredPatchHunk[] = [];
  let left = room;
  for (const hunk of hunks) {
    left -= HUNK_HEADER_BYTES;
    const lines: string[] = [];
    for (const line of hunk.lines) {
      // Its quotes count for the newline after it.
      left -= jsonBytes(line);
      if (left < 0) break;
      lines.push(line);
    }
    if (countMarked(lines, "+") + countMarked(lines, "-") > 0) kept.push(recount(hunk, lines));
    if (left < 0) return { kept, truncated: true };
  }
  return { kept, truncated: false };
}

/** A hunk of these lines: a reader refuses one whose header counts others. */
function recount(
  { oldStart, newStart }: Pick<StructuredPatchHunk, "oldStart" | "newStart">,
  lines: string[],
): StructuredPatchHunk {
  const context = countMarked(lines, " ");
  return {
    ...{ oldStart, newStart, lines },
    oldLines: context + countMarked(lines, "-"),
    newLines: context + countMarked(lines, "+"),
  };
}

const countMarked = (lines: readonly string[], mark: string): number =>
  lines.filter((line) => line.startsWith(mark)).length;

const countLines = (text: string): number =>
  countNewlines(text, text.length) + (text === "" || text.endsWith("\n") ? 0 : 1);

/** The newlines before `end`. */
function countNewlines(text: string, end: number): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1 && at < end; at = text.indexOf("\n", at + 1)) count++;
  return count;
}
