/**
 * Owns: changes of a text: where an edit applies, what is wrong if it does not, and several edits at once. Pure.
 *
 * Line endings: old text without carriage returns also matches lines that end with CRLF, because the model reads them
 * without. The new text then gets the line endings of the place. If the old text has a carriage return, everything is
 * taken literally.
 */
import { Source, type LineEnding, type Range } from "./source-text.ts";

type Replace = {
  readonly operation: "replace";
  readonly oldText: string;
  readonly newText: string;
  readonly replaceAll?: boolean | undefined;
};

/** Inserts whole lines after a line of the text as it was; by default at its end. */
type Insert = {
  readonly operation: "insert";
  readonly afterLine?: number | undefined;
  readonly text: string;
};

export type Edit = Replace | Insert;

/** `text` replaces what is in the range. An empty range takes nothing out. */
export type Change = Range & { readonly text: string };

export type Plan =
  | {
      readonly ok: true;
      /** In order, none overlapping with another. */
      readonly changes: readonly Change[];
      /** The line of each change, in the text as it was. */
      readonly lines: readonly number[];
    }
  /** By the edit's position. */
  | { readonly ok: false; readonly problems: ReadonlyMap<number, string> };

type Planned =
  | { readonly ok: true; readonly changes: readonly Change[] }
  | { readonly ok: false; readonly problem: string };

const bad = (problem: string): Planned => ({ ok: false, problem });

/** More than anyone means to replace at once; each costs memory. */
const MAX_OCCURRENCES = 100_000;
const LINES_NAMED = 20;

/**
 * Plans all the edits, or none. Each is meant for the text as it is, not as the others leave it, so they must not
 * overlap.
 */
export function planEdits(text: string, edits: readonly Edit[]): Plan {
  const source = new Source(text);
  const problems = new Map<number, string>();
  const changes: (Change & { readonly edit: number })[] = [];
  for (const [edit, operation] of edits.entries()) {
    const planned =
      operation.operation === "replace" ? replace(source, operation) : insert(source, operation);
    if (!planned.ok) problems.set(edit, planned.problem);
    else for (const change of planned.changes) changes.push({ ...change, edit });
  }
  // The sort keeps the order of insertions at one place.
  changes.sort((a, b) => a.start - b.start || a.end - b.end);
  let last: (typeof changes)[number] | undefined;
  for (const change of changes) {
    if (last !== undefined && change.start < last.end && !problems.has(change.edit)) {
      problems.set(
        change.edit,
        `it overlaps with edit ${last.edit + 1} at line ${source.lineAt(change.start)}. Make them one edit.`,
      );
    }
    if (last === undefined || change.end > last.end) last = change;
  }
  if (problems.size > 0) return { ok: false, problems };
  return { ok: true, changes, lines: changes.map(({ start }) => source.lineAt(start)) };
}

/** @param changes in order, none overlapping with another */
export function applyChanges(text: string, changes: readonly Change[]): string {
  const parts: string[] = [];
  let position = 0;
  for (const change of changes) {
    parts.push(text.slice(position, change.start), change.text);
    position = change.end;
  }
  parts.push(text.slice(position));
  return parts.join("");
}

function replace(source: Source, { oldText, newText, replaceAll = false }: Replace): Planned {
  if (oldText === newText) return bad("the old text and the new text are the same.");
  const found = source.find(oldText, { overlapping: !replaceAll, limit: MAX_OCCURRENCES });
  if (found.length === 0) return bad(`the old text is not in the file.${hint(source, oldText)}`);
  if (found.length > MAX_OCCURRENCES) return bad(`the old text is there more than ${MAX_OCCURRENCES} times.`);
  if (!replaceAll && found.length > 1) {
    const lines = listed(found.map(({ start }) => source.lineAt(start)));
    return bad(
      `the old text is there ${found.length} times, at lines ${lines}. Give more of the text around the one that is meant, or set replaceAll.`,
    );
  }
  if (oldText.includes("\r"))
    return { ok: true, changes: found.map((range) => ({ ...range, text: newText })) };
  const written = withLineEndings(newText);
  return {
    ok: true,
    changes: found.map((range) => ({ ...range, text: written[source.lineEndingAt(range.start)] })),
  };
}

function hint(source: Source, oldText: string): string {
  const similar = source.findIgnoringWhitespace(oldText);
  if (similar === null) return " Read the file again: it must match exactly.";
  const { first, last, text } = similar;
  return ` With other whitespace it is at line${first === last ? "" : "s"} ${first}${first === last ? "" : `-${last}`}:\n${text}`;
}

function insert(source: Source, { afterLine = source.lineCount, text }: Insert): Planned {
  if (afterLine > source.lineCount) {
    return bad(`the file has ${source.lineCount} lines; there is no line ${afterLine} to insert after.`);
  }
  const position = source.endOfLine(afterLine);
  const ending = source.lineEndingAt(position);
  const lines = withLineEndings(text.endsWith("\n") ? text : `${text}\n`)[ending];
  // After a last line without a newline, the file still ends without one.
  const isAfterOpenEnd = afterLine > 0 && !source.endsLine(position);
  const written = isAfterOpenEnd ? ending + lines.replace(/\r?\n$/, "") : lines;
  return { ok: true, changes: [{ start: position, end: position, text: written }] };
}

/** A text for places with either line ending. It keeps the carriage returns that it already has. */
const withLineEndings = (text: string): Record<LineEnding, string> => ({
  "\n": text,
  "\r\n": text.replace(/(?<!\r)\n/g, "\r\n"),
});

/** Numbers for a person: each once, and not too many. */
export function listed(numbers: readonly number[]): string {
  const unique = [...new Set(numbers)];
  const more = unique.length - LINES_NAMED;
  return unique.slice(0, LINES_NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
