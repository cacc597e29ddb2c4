/**
 * Owns: edits of a file, all of them or none: the file is read, changed and written, and the changes are summarised.
 */
import type { FileDiff } from "../machine/message.ts";
import { diffsOf } from "./diff.ts";
import { applyChanges, listed, planEdits, type Edit } from "./edits.ts";
import { resolvePath } from "./path.ts";
import { MAX_FILE_BYTES, readTextFile, replaceTextFile } from "./text-file.ts";
import { ToolError, type ToolContext } from "./tool.ts";

/**
 * Applies edits to a file. Returns its path, and a summary: how many changes were made, at which of its old lines.
 * Throws a ToolError, and writes nothing, if any of them does not apply.
 */
export async function editFile(
  path: string,
  edits: readonly Edit[],
  context: ToolContext,
): Promise<{ readonly file: string; readonly summary: string; readonly diffs: readonly FileDiff[] }> {
  const file = await readTextFile(resolvePath(context.cwd, path));
  const plan = planEdits(file.text, edits);
  if (!plan.ok) throw new ToolError(`${file.path} was not changed: ${describe(plan.problems, edits.length)}`);
  const { changes, lines } = plan;
  const size = changes.reduce(
    (sum, { start, end, text }) => sum + text.length - (end - start),
    file.text.length,
  );
  if (size > MAX_FILE_BYTES) {
    throw new ToolError(`${file.path} was not changed: it would become larger than ${MAX_FILE_BYTES} bytes.`);
  }
  const text = applyChanges(file.text, changes);
  await replaceTextFile(file, text, context);
  const [count, s] = [changes.length, changes.length === 1 ? "" : "s"];
  return {
    file: file.path,
    summary: `${count} change${s}, at line${s} ${listed(lines)}`,
    diffs: diffsOf(file.path, { kind: "text", text: file.text }, text, context),
  };
}

function describe(problems: ReadonlyMap<number, string>, count: number): string {
  if (count === 1) return [...problems.values()].join("");
  return [...problems].map(([edit, problem]) => `\nEdit ${edit + 1}: ${problem}`).join("");
}
