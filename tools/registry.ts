/** Owns: which conversation has which tools, and finding the one to run. */
import type { Json } from "../machine/message.ts";
import { bash } from "./bash.ts";
import {
  requestModeUpgrade,
  spawnAgents,
  submitResult,
  type ToolDescription,
  type ToolLimits,
} from "./control.ts";
import { edit } from "./edit.ts";
import { find } from "./find.ts";
import { grep } from "./grep.ts";
import { keywordSearch } from "./keyword-search.ts";
import { ls } from "./ls.ts";
import { patch } from "./patch.ts";
import { read } from "./read.ts";
import { think } from "./think.ts";
import { type ByReader, failed, type Tool, type ToolContext, type ToolRun } from "./tool.ts";
import { write } from "./write.ts";

const RUNNABLE: ReadonlyMap<string, Tool> = new Map(
  [bash, read, write, edit, patch, ls, grep, find, keywordSearch, think].map((tool) => [tool.name, tool]),
);

const standardFor = (reader: keyof ByReader): readonly ToolDescription[] =>
  [...RUNNABLE.values()].map(({ name, description, whenRestricted, inputSchema }) => ({
    name,
    description: whenRestricted === undefined ? description : `${description} ${whenRestricted[reader]}`,
    inputSchema,
  }));

/** The descriptions of a conversation's tools for the model, control tools included. */
export type ToolsFor = (conversation: { readonly isSubAgent: boolean }) => readonly ToolDescription[];

/** The tools are the same in both modes and for the whole conversation (REQ-BED-009, 017, 018). */
export function describeTools(limits: ToolLimits): ToolsFor {
  const forUsers = [...standardFor("user"), requestModeUpgrade, spawnAgents(limits)];
  const forSubAgents = [...standardFor("subAgent"), submitResult];
  return ({ isSubAgent }) => (isSubAgent ? forSubAgents : forUsers);
}

/** Whether a call of this name can run; any other name is an invention of the model's. */
export const isRunnable = (name: string): boolean => RUNNABLE.has(name);

/** Runs a tool once. Never rejects: an unknown tool or bad input is a failed result. */
export async function runTool(name: string, input: Json, context: ToolContext): Promise<ToolRun> {
  const tool = RUNNABLE.get(name);
  return tool === undefined ? failed(`There is no tool named "${name}".`) : tool.run(input, context);
}
