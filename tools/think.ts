/** Owns: the `think` tool: a place for a thought between calls. */
import { z } from "zod";
import { completed, defineTool } from "./tool.ts";

export const think = defineTool({
  name: "think",
  description: `Write down a thought: a plan, what a result means, what to check next. Nothing is run, read or changed; the thought stays in the conversation. Use it before a step that is hard to take back, and when results contradict each other. Works in both modes.`,
  input: z.strictObject({ thought: z.string().min(1).describe("The thought") }),
  run: () => Promise.resolve(completed("Noted.")),
});
