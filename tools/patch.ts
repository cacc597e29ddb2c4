/** Owns: the `patch` tool: several edits of one file at once, all or none. */
import { z } from "zod";
import { editFile } from "./edit-file.ts";
import type { Edit } from "./edits.ts";
import { completed, defineTool, DISABLED_WHEN_RESTRICTED, failed, wellFormed } from "./tool.ts";
import { writeFile } from "./write-file.ts";

const MAX_EDITS = 100;

const replace = z.strictObject({
  operation: z.literal("replace").describe("Replace one text by another"),
  oldText: wellFormed()
    .min(1)
    .describe("The text to replace, exactly as it stands in the file, and only once"),
  newText: wellFormed().describe("What is to stand there instead; empty to delete"),
  replaceAll: z.boolean().optional().describe("Replace every occurrence; default false"),
});

const insert = z.strictObject({
  operation: z.literal("insert").describe("Insert whole lines"),
  afterLine: z
    .int()
    .min(0)
    .optional()
    .describe(
      "The line to insert after, as numbered before the patch; 0: at the beginning; default: at the end",
    ),
  text: wellFormed().describe("The lines to insert"),
});

const overwrite = z.strictObject({
  operation: z.literal("overwrite").describe("Replace the whole content, or create the file; the only edit"),
  content: wellFormed().describe("The whole content of the file"),
});

/** REQ-PATCH-009. */
export const patch = defineTool({
  name: "patch",
  description: `Change one file by several edits at once: all of them are made, or, if any does not apply, none. Every edit is meant for the file as it is before the patch, so that edits must not overlap. "replace" needs the exact old text, which must stand in the file once (or replaceAll); "insert" puts lines after a line number; "overwrite" replaces the whole file or creates it. Line endings and a byte order mark of the file are kept by replace and insert.`,
  whenRestricted: DISABLED_WHEN_RESTRICTED,
  input: z.strictObject({
    path: z.string().min(1).describe("Absolute, or relative to the working directory"),
    edits: z
      .array(z.discriminatedUnion("operation", [replace, insert, overwrite]))
      .min(1)
      .max(MAX_EDITS)
      .describe("The edits, in any order"),
  }),
  async run({ path, edits }, context) {
    const [first] = edits;
    if (edits.length === 1 && first?.operation === "overwrite")
      return writeFile(path, first.content, context);
    const partial: Edit[] = edits.filter((edit) => edit.operation !== "overwrite");
    if (partial.length < edits.length) {
      return failed("Nothing was changed: overwrite replaces the whole file, so it must be the only edit.");
    }
    const { file, summary, diffs } = await editFile(path, partial, context);
    return { ...completed(`Patched ${file}: ${summary}.`), diffs };
  },
});
