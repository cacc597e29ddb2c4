/** Owns: the `keyword_search` tool: the files that have most of several terms, with their best lines. */
import { z } from "zod";
import { boundedLines } from "./bounded-lines.ts";
import { readablePath } from "./path.ts";
import { bestLines, rankFiles, weigh, type RankedFile } from "./ranking.ts";
import { excerpt, parseEvent, type FoundLine } from "./rg-event.ts";
import {
  answerSearch,
  findPlace,
  globBelow,
  search,
  shown,
  WHERE,
  type Glob,
  type Place,
  type SearchEnd,
} from "./ripgrep.ts";
import { defineTool, type ToolContext } from "./tool.ts";

const MAX_TERMS = 10;
const MAX_FILES = 20;
const LINES_A_FILE = 3;
const MAX_LINE_CHARS = 200;
const MAX_CHARS = 20 * 1024;
/** A term that more files have than this tells nothing. */
const MAX_FILES_A_TERM = 20_000;
/** Matching lines of a file among which the best are chosen. */
const MAX_LINES_READ = 1_000;

export const keywordSearch = defineTool({
  name: "keyword_search",
  description: `Find the files that are about something: give several terms (names, words, parts of messages) and get at most ${MAX_FILES} files, those with the most and the rarest of the terms first, each with its best lines. Upper and lower case are the same; a term is a text, not an expression. Use it to find where to begin, and grep for every place of one name. Hidden files are searched; .git, binary files and what .gitignore leaves out are not. Works in both modes.`,
  input: z.strictObject({
    terms: z
      .array(
        z
          .string()
          .max(200)
          .regex(/^[^\r\n]*\S[^\r\n]*$/, "must be one line, and not empty"),
      )
      .min(1)
      .max(MAX_TERMS)
      .describe("The terms, each of one line"),
    ...WHERE,
  }),
  async run({ terms: given, path, glob }, context) {
    const terms = [...new Map(given.map((term) => [term.trim().toLowerCase(), term.trim()])).values()];
    const place = await findPlace(path, context);
    const wanted = globBelow(place, glob);
    const found = await Promise.all(terms.map((term) => countLines(term, place, wanted, context)));
    const counts = found.map(({ files }) => files);
    const ranked = rankFiles(terms, counts);
    const best = await existing(ranked.slice(0, MAX_FILES), context);
    const lines = await linesOf(best, terms, weigh(counts), place, context);
    const report = boundedLines(Infinity, MAX_CHARS);
    const kept = best.filter(({ path, counts }) =>
      report.add(
        [`${shown(place, path)} (${describe(terms, counts)})`, ...(lines.get(path) ?? [])].join("\n"),
      ),
    );
    const left = ranked.length - kept.length;
    const notes = [
      ...(left > 0 ? [`[… ${left} more files have some of the terms …]`] : []),
      ...found
        .filter((term) => term.isTooCommon)
        .map(({ term }) => `[${quote(term)} is in too many files to count]`),
      ...found
        .filter(({ files, isTooCommon }) => files.size === 0 && !isTooCommon && ranked.length > 0)
        .map(({ term }) => `[no file has ${quote(term)}]`),
    ];
    const text = [report.text(), ...notes].filter((part) => part !== "").join("\n");
    return answerSearch(worst(found.map(({ end }) => end)), text, "No matches.");
  },
});

const quote = (term: string): string => JSON.stringify(term);

/** How many lines of each file have a term. */
async function countLines(term: string, place: Place, glob: Glob, context: ToolContext) {
  const files = new Map<string, number>();
  let begun = "";
  const onLine = (line: string | null): boolean => {
    const text = begun + (line ?? "");
    const [, file, count] = /^(.*):(\d+)$/s.exec(text) ?? [];
    // A path may hold newlines.
    begun = file === undefined ? `${text}\n` : "";
    if (file !== undefined && glob.matches(file)) files.set(file, Number(count));
    return files.size <= MAX_FILES_A_TERM;
  };
  const args = [...linesWith([term]), "--count", "--with-filename", ...glob.args];
  const end = await search({ args, place, onLine }, context);
  if (files.size <= MAX_FILES_A_TERM) return { term, files, isTooCommon: false, end };
  // Only a part of the files would be worse than none: it would be the first of them, not the best.
  files.clear();
  return { term, files, isTooCommon: true, end: WHOLE };
}

const WHOLE: SearchEnd = { kind: "whole", note: null };

const linesWith = (terms: readonly string[]): string[] => [
  "--ignore-case",
  "--fixed-strings",
  ...terms.map((term) => `--regexp=${term}`),
];

/** The files whose path leads to the file itself: a name with a newline in it may look like a path to elsewhere. */
async function existing(files: readonly RankedFile[], context: ToolContext): Promise<RankedFile[]> {
  const real = await Promise.all(files.map(({ path }) => readablePath(path, context).catch(() => null)));
  return files.filter(({ path }, n) => real[n] === path);
}

/** The best lines of each file, as they are shown. */
async function linesOf(
  files: readonly RankedFile[],
  terms: readonly string[],
  weights: readonly number[],
  place: Place,
  context: ToolContext,
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (files.length === 0) return new Map();
  const byFile = new Map<string, FoundLine[]>(files.map(({ path }) => [path, []]));
  const onLine = (json: string | null): boolean => {
    const line = json === null ? null : parseEvent(json);
    if (line?.kind !== "line") return true;
    byFile.get(line.path)?.push({ ...line, text: excerpt(line.text, line.matchAt, MAX_LINE_CHARS) });
    return true;
  };
  const args = [...linesWith(terms), "--json", `--max-count=${MAX_LINES_READ}`];
  await search({ args, place, paths: [...byFile.keys()], onLine }, context);
  return new Map(
    [...byFile].map(([path, lines]) => [
      path,
      bestLines(terms, weights, lines, LINES_A_FILE).map(({ number, text }) => `  ${number}: ${text.trim()}`),
    ]),
  );
}

function describe(terms: readonly string[], counts: readonly number[]): string {
  const there = terms.flatMap((term, n) => {
    const count = counts[n] ?? 0;
    return count === 0 ? [] : [`${quote(term)} ${count}`];
  });
  return `${there.length} of ${terms.length} terms; lines: ${there.join(", ")}`;
}

/** The end to report for several searches at once. */
function worst(ends: readonly SearchEnd[]): SearchEnd {
  return (
    ends.find(({ kind }) => kind === "interrupted") ??
    ends.find(({ kind }) => kind === "partial") ??
    ends.find((end) => end.kind === "whole" && end.note !== null) ??
    WHOLE
  );
}
