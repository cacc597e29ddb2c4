/** Owns: the `write` tool: a whole file at once. */
import { z } from "zod";
import { defineTool, DISABLED_WHEN_RESTRICTED } from "./tool.ts";
import { writeFile } from "./write-file.ts";

export const write = defineTool({
  name: "write",
  description: `Write a text file: creates it, and the directories above it, or replaces its whole content. To change a part of a file use edit or patch.`,
  whenRestricted: DISABLED_WHEN_RESTRICTED,
  input: z.strictObject({
    path: z.string().min(1).describe("Absolute, or relative to the working directory"),
    content: z.string().describe("The whole content of the file"),
  }),
  run: ({ path, content }, context) => writeFile(path, content, context),
});
