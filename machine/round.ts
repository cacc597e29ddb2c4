/**
 * Owns: the calls of one response, answered one after the other in the order requested (REQ-BED-004). Every call gets
 * exactly one tool message. This file decides whether a call runs, the machine answers it, or it cannot run.
 */
import {
  checkSpawn,
  checkSubmit,
  checkUpgrade,
  SPAWN_TOOL,
  SUBMIT_TOOL,
  UPGRADE_TOOL,
  WRITING_TOOLS,
} from "./control-tools.ts";
import type { CallDefect, CompletedCall, Round, ToolCall } from "./conversation.ts";
import type { Draft } from "./draft.ts";
import type { Block, Decided, FileDiff, ToolStatus } from "./message.ts";
import { completeSubAgent, requestLlm } from "./run.ts";
import { DIFFS_BYTES, firstWithin } from "./size.ts";
import { spawnChildren } from "./children.ts";
import { toModel } from "./wording.ts";

const DEFECTS: Record<CallDefect, string> = {
  malformed_json: toModel.malformedJson,
  truncated: toModel.truncated,
  too_long: toModel.tooLong,
};

/** Starts the calls of a response. */
export function startRound(draft: Draft, calls: readonly ToolCall[]): void {
  draft.setRun({ upgradeDenied: false, truncations: 0 });
  advance(draft, { remaining: calls, completed: [] });
}

/** Goes on to the next call of the round that runs or waits; if none is left, to the next request. */
export function advance(draft: Draft, round: Round): void {
  let completed = round.completed;
  for (const [index, call] of round.remaining.entries()) {
    const problem = begin(draft, call, { remaining: round.remaining.slice(index + 1), completed });
    if (problem === null) return;
    completed = [...completed, answerCall(draft, call, "failed", problem)];
  }
  requestLlm(draft, 1);
}

/** Starts the call, or lets it wait, and returns null; otherwise returns the reason why it cannot run. */
function begin(draft: Draft, call: ToolCall, rest: Round): string | null {
  const { context, conversation } = draft;
  if (call.defect !== undefined) return DEFECTS[call.defect];
  if (!context.tools.includes(call.name)) return toModel.unknownTool(call.name);
  switch (call.name) {
    case UPGRADE_TOOL:
      return beginUpgrade(draft, call, rest);
    case SPAWN_TOOL: {
      const tasks = checkSpawn(call.input);
      if (!tasks.ok) return toModel.invalidInput(call.name, tasks.problem);
      spawnChildren(draft, call, tasks.value, rest);
      return null;
    }
    case SUBMIT_TOOL: {
      const submission = checkSubmit(call.input);
      if (!submission.ok) return toModel.invalidInput(call.name, submission.problem);
      answerCall(draft, call, "completed", toModel.submitted);
      skipAll(draft, rest.remaining, toModel.skippedAfterSubmit);
      completeSubAgent(draft, submission.value);
      return null;
    }
    default: {
      if (conversation.mode === "restricted" && WRITING_TOOLS.includes(call.name)) {
        return toModel.disabledInRestricted(call.name, context.isSubAgent);
      }
      const operationId = draft.newId();
      draft.setState({ kind: "tool_executing", current: call, operationId, startedAt: draft.time, ...rest });
      draft.start({ kind: "execute_tool", operationId, call, mode: conversation.mode });
      return null;
    }
  }
}

/** REQ-BED-015. */
function beginUpgrade(draft: Draft, call: ToolCall, rest: Round): string | null {
  const request = checkUpgrade(call.input);
  if (draft.conversation.mode === "unrestricted") return toModel.alreadyUnrestricted;
  if (draft.conversation.run?.upgradeDenied === true) return toModel.upgradeDenied();
  if (!request.ok) return toModel.invalidInput(call.name, request.problem);
  draft.setState({ kind: "awaiting_mode_approval", reason: request.value.reason, toolCall: call, ...rest });
  return null;
}

/** What is known of a call besides its output. */
export type CallRun = {
  readonly durationMs: number;
  readonly diffs?: readonly FileDiff[];
  /** Ids, in the order of the call's tasks. */
  readonly subAgents?: readonly string[];
  readonly decided?: Decided;
};

const NEVER_RAN: CallRun = { durationMs: 0 };

/** Stores the one result of a call. `output` is a text or the tool's blocks. */
export function answerCall(
  draft: Draft,
  call: ToolCall,
  status: ToolStatus,
  output: string | readonly Block[],
  { durationMs, diffs = [], subAgents, decided }: CallRun = NEVER_RAN,
): CompletedCall {
  const blocks: readonly Block[] = typeof output === "string" ? [{ type: "text", text: output }] : output;
  const kept = firstWithin(diffs, DIFFS_BYTES);
  draft.append({
    type: "tool",
    actor: "system",
    content: [{ toolCallId: call.id, name: call.name, status, output: blocks, durationMs }],
    ...(kept.length === 0 ? {} : { display: { diffs: kept } }),
    ...(subAgents === undefined ? {} : { display: { subAgents } }),
    ...(decided === undefined ? {} : { display: { decided } }),
  });
  return { toolCallId: call.id, status };
}

export function skipAll(draft: Draft, calls: readonly ToolCall[], why: string): void {
  for (const call of calls) answerCall(draft, call, "skipped", why);
}
