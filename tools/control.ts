/**
 * Owns: the descriptions, for the model, of the tools that the state machine itself answers; they are never run here.
 * The machine checks their inputs by guards of its own (machine/control-tools.ts).
 */
import { z } from "zod";
import {
  MAX_PARALLEL_SUB_AGENTS,
  MAX_SUB_AGENTS_A_CALL,
  MAX_TIMEOUT_SECONDS,
  SPAWN_TOOL,
  SUBMIT_TOOL,
  UPGRADE_TOOL,
} from "../machine/control-tools.ts";
import type { Limits } from "../machine/context.ts";
import { toJsonSchema, type Tool } from "./tool.ts";

/** The limits that descriptions name. */
export type ToolLimits = Pick<Limits, "subAgentTimeoutSeconds">;

export type ToolDescription = Pick<Tool, "name" | "description" | "inputSchema">;

/** REQ-BED-015. Not for sub-agents (REQ-BED-018). */
export const requestModeUpgrade: ToolDescription = {
  name: UPGRADE_TOOL,
  description:
    "Request upgrade from Restricted to Unrestricted mode. Only available in Restricted mode. The user must approve the request; until then you wait. After a denial, go on without write access.",
  inputSchema: toJsonSchema(
    z.strictObject({ reason: z.string().min(1).describe("Explanation of why write access is needed") }),
  ),
};

/** REQ-BED-008. Not for sub-agents (REQ-BED-009). */
export const spawnAgents = ({ subAgentTimeoutSeconds }: ToolLimits): ToolDescription => ({
  name: SPAWN_TOOL,
  description: `Give independent tasks to sub-agents and get all their results. They work in the same directory, ${MAX_PARALLEL_SUB_AGENTS} at a time, know nothing of this conversation, always work in Restricted mode where it is available, and cannot ask back: say in each task all that it needs and what to report.`,
  inputSchema: toJsonSchema(
    z.strictObject({
      tasks: z
        .array(
          z.strictObject({
            task: z
              .string()
              .min(1)
              .describe("The whole task, with everything that it needs to be understood"),
            model: z.string().min(1).optional().describe("A model id; default: this conversation's model"),
            timeoutSeconds: z
              .number()
              .positive()
              .max(MAX_TIMEOUT_SECONDS)
              .optional()
              .describe(
                `Seconds after which it is stopped, and what it had found is lost; default ${subAgentTimeoutSeconds}, at most ${MAX_TIMEOUT_SECONDS}`,
              ),
          }),
        )
        .min(1)
        .max(MAX_SUB_AGENTS_A_CALL)
        .describe("One for each sub-agent"),
    }),
  ),
});

/** REQ-BED-008, 009: for sub-agents only. */
export const submitResult: ToolDescription = {
  name: SUBMIT_TOOL,
  description: "Submit the final result of your task. This ends your work: no further call is executed.",
  inputSchema: toJsonSchema(
    z.strictObject({
      result: z.string().describe("Final result to return to the parent conversation"),
      success: z.boolean().optional().describe("Whether the task was completed successfully; default true"),
    }),
  ),
};
