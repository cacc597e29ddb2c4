/** Owns: the `find` tool: files by their names, and the listing of files that it shares with grep. */
import { z } from "zod";
import { boundedLines } from "./bounded-lines.ts";
import {
  answerSearch,
  findPlace,
  globBelow,
  MAX_GLOB_CHARS,
  search,
  shown,
  type Glob,
  type Place,
} from "./ripgrep.ts";
import { defineTool, failed, type ToolContext, type ToolRun } from "./tool.ts";

const MAX_SHOWN = 1_000;
const MAX_CHARS = 30 * 1024;
const MAX_COUNTED = 20_000;

export const find = defineTool({
  name: "find",
  description: `Find files by a glob, in alphabetical order of their paths. "*.ts" is for names at any depth, "src/**/*.test.ts" for paths from the searched directory on; {a,b}, ? and [a-z] work too, and ! before a glob turns it around. Hidden files are found, those in .git and those that .gitignore leaves out are not; directories are not listed, use ls for them. At most ${MAX_SHOWN} paths, relative to the working directory. Works in both modes.`,
  input: z.strictObject({
    pattern: z.string().min(1).max(MAX_GLOB_CHARS).describe('The glob, for example "*.ts"'),
    path: z
      .string()
      .min(1)
      .optional()
      .describe("The directory to search, absolute or relative; default: the working directory"),
  }),
  async run({ pattern, path }, context) {
    const place = await findPlace(path, context);
    if (!place.isDirectory) return failed(`${place.path} is a file, not a directory to search.`);
    return listFiles(place, globBelow(place, pattern), ["--files"], context);
  },
});

/** Runs ripgrep so that it prints paths, and answers with those that the glob matches. */
export async function listFiles(
  place: Place,
  glob: Glob,
  args: readonly string[],
  context: ToolContext,
): Promise<ToolRun> {
  const paths = boundedLines(MAX_SHOWN, MAX_CHARS);
  let [count, left] = [0, 0];
  const onLine = (line: string | null): boolean => {
    // With --crlf, ripgrep ends its own lines with CRLF, too.
    const path = line?.replace(/\r$/, "");
    if (path === undefined || !glob.matches(path)) return true;
    count++;
    if (!paths.add(shown(place, path))) left++;
    return count < MAX_COUNTED;
  };
  const end = await search({ args: [...args, ...glob.args], place, onLine }, context);
  const more = end.kind === "partial" ? "at least " : "";
  return answerSearch(end, paths.text() + (left > 0 ? `\n[… ${more}${left} more files …]` : ""), "No files.");
}
