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
    const place = await findPlace(path, context);
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
  let file = "";
  let [count, left, files] = [0, 0, 0];
  const show = (isMatch: boolean, number: number, text: string): void => {
    const isNewFile = file !== last.path;
    if (isNewFile) files++;
    const isAfterGap = showGaps && number > last.number + 1;
    const head = isNewFile ? [shown(place, file)] : isAfterGap ? ["--"] : [];
    Object.assign(last, { path: file, number });
    if (isMatch) count++;
    const isShown = count <= MAX_MATCHES && lines.add([...head, text].join("\n"));
    if (isMatch && !isShown) left++;
  };
  const onLine = (json: string | null): boolean => {
    const event = json === null ? null : parseEvent(json);
    if (event?.kind === "file") file = event.path;
    if (!glob.matches(file)) return true;
    if (json === null) show(true, last.number, "[… a line that is too long to show …]");
    if (event?.kind === "line") {
      const mark = event.isMatch ? ":" : "-";
      const text = excerpt(event.text, event.matchAt, MAX_LINE_CHARS);
      show(event.isMatch, event.number, `${event.number}${mark}${text}`);
    }
    return count < MAX_COUNTED;
  };
  const end = await search({ args: [...args, ...glob.args], place, onLine }, context);
  const notes = [
    ...(left > 0
      ? [`[… ${end.kind === "partial" ? "at least " : ""}${left} more matches; ${files} files match …]`]
      : []),
  ];
  return answerSearch(end, [lines.text(), ...notes].filter((part) => part !== "").join("\n"), "No matches.");
}
