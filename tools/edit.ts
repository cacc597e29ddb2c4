/** Owns: the `edit` tool: one text of a file for another. */
import { z } from "zod";
import { editFile } from "./edit-file.ts";
import { completed, defineTool, DISABLED_WHEN_RESTRICTED, wellFormed } from "./tool.ts";

export const edit = defineTool({
  name: "edit",
  description: `Replace one text in a file by another. The old text must match exactly, whitespace included (the line numbers of read are not part of it), and stand in the file once: give enough of the lines around it, or set replaceAll. Line endings and a byte order mark of the file are kept. For several changes of one file use patch.`,
  whenRestricted: DISABLED_WHEN_RESTRICTED,
  input: z.strictObject({
    path: z.string().min(1).describe("Absolute, or relative to the working directory"),
    oldText: wellFormed().min(1).describe("The text to replace, exactly as it stands in the file"),
    newText: wellFormed().describe("What is to stand there instead; empty to delete"),
    replaceAll: z
      .boolean()
      .optional()
      .describe("Replace every occurrence; default false: the old text must occur once"),
  }),
  async run({ path, ...replacement }, context) {
    const edits = [{ operation: "replace" as const, ...replacement }];
    const { file, summary, diffs } = await editFile(path, edits, context);
    return { ...completed(`Edited ${file}: ${summary}.`), diffs };
  },
});
