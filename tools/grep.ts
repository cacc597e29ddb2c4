/** Owns: the `grep` tool: lines that match a regular expression. */
import { z } from "zod";
import { boundedLines } from "./bounded-lines.ts";
import { listFiles } from "./find.ts";
import { excerpt, parseEvent } from "./rg-event.ts";
import {
  answerSearch,
  findPlace,
  globBelow,
  search,
  shown,
  WHERE,
  type Glob,
  type Place,
} from "./ripgrep.ts";
import { defineTool, type ToolContext, type ToolRun } from "./tool.ts";

const MAX_MATCHES = 250;
const MAX_CHARS = 30 * 1024;
const MAX_LINE_CHARS = 500;
const MAX_COUNTED = 20_000;
const MAX_CONTEXT = 10;

export const grep = defineTool({
  name: "grep",
  description: `Search in files for lines that match a regular expression (ripgrep's: no look-around, no back-references; a match lies within one line). Returns for each file its path and the lines with their numbers. Hidden files are searched; .git, binary files and what .gitignore leaves out are not, unless path names it. At most ${MAX_MATCHES} matching lines; longer ones than ${MAX_LINE_CHARS} characters are cut around the match. A note says what was left out. Works in both modes.`,
  input: z.strictObject({
    pattern: z.string().min(1).describe("The regular expression"),
    ...WHERE,
    ignoreCase: z.boolean().optional().describe("Upper and lower case are the same; default false"),
    literal: z.boolean().optional().describe("The pattern is a text, not an expression; default false"),
    context: z
      .int()
      .min(0)
      .max(MAX_CONTEXT)
      .optional()
      .describe(`Lines to show before and after each match; default 0, at most ${MAX_CONTEXT}`),
    filesOnly: z.boolean().optional().describe("Only the paths of the files with a match; default false"),
  }),
  async run({ pattern, path, glob, ignoreCase, literal, context: around = 0, filesOnly }, context) {
    const place = await findPlace(context.cwd, path);
    const wanted = globBelow(place, glob);
    const args = [
      `--regexp=${pattern}`,
      "--crlf",
      ...(ignoreCase === true ? ["--ignore-case"] : []),
      ...(literal === true ? ["--fixed-strings"] : []),
    ];
    if (filesOnly === true) return listFiles(place, wanted, [...args, "--files-with-matches"], context);
    return listLines(place, wanted, [...args, "--json", `--context=${around}`], around > 0, context);
  },
});

async function listLines(
  place: Place,
  glob: Glob,
  args: readonly string[],
  showGaps: boolean,
  context: ToolContext,
): Promise<ToolRun> {
  const lines = boundedLines(Infinity, MAX_CHARS);
  const last = { path: "", number: 0 };
  let [count, left, files, unread] = [0, 0, 0, 0];
  const onLine = (json: string | null): boolean => {
    if (json === null) unread++;
    const line = json === null ? null : parseEvent(json);
    if (line === null || !glob.matches(line.path)) return true;
    const isNewFile = line.path !== last.path;
    if (isNewFile) files++;
    const isAfterGap = showGaps && line.number > last.number + 1;
    const head = isNewFile ? [shown(place, line.path)] : isAfterGap ? ["--"] : [];
    Object.assign(last, line);
    if (line.isMatch) count++;
    const text = excerpt(line.text, line.matchAt, MAX_LINE_CHARS);
    const mark = line.isMatch ? ":" : "-";
    const isShown = count <= MAX_MATCHES && lines.add([...head, `${line.number}${mark}${text}`].join("\n"));
    if (line.isMatch && !isShown) left++;
    return count < MAX_COUNTED;
  };
  const end = await search({ args: [...args, ...glob.args], place, onLine }, context);
  const notes = [
    ...(left > 0
      ? [`[… ${end.kind === "partial" ? "at least " : ""}${left} more matches; ${files} files match …]`]
      : []),
    ...(unread > 0 ? [`[… ${unread} matching lines that are too long to show …]`] : []),
  ];
  return answerSearch(end, [lines.text(), ...notes].filter((part) => part !== "").join("\n"), "No matches.");
}
