/** Owns: making a text the whole content of a file, as the tools `write` and `patch` do it. */
import { diffsOf } from "./diff.ts";
import { resolvePath } from "./path.ts";
import { overwriteFile } from "./text-file.ts";
import { completed, type ToolContext, type ToolRun } from "./tool.ts";

/** Creates or replaces a file. Throws a ToolError, and changes no file, if that is impossible. */
export async function writeFile(path: string, content: string, context: ToolContext): Promise<ToolRun> {
  const { file, before, bytes } = await overwriteFile(resolvePath(context.cwd, path), content, context);
  const done = before.kind === "nothing" ? "Created" : "Replaced";
  return {
    ...completed(`${done} ${file} (${bytes} bytes).`),
    diffs: diffsOf(file, before, content, context),
  };
}
