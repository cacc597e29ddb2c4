/** Owns: builders of conversations in each of the states. */
import { newConversation, NO_TOKENS } from "../../machine/conversation.ts";
import type {
  Conversation,
  QueuedMessage,
  Run,
  State,
  StateOf,
  ToolCall,
} from "../../machine/conversation.ts";
import type { TokenUsage } from "../../machine/message.ts";

export const usage = (inputTokens = 1_000): TokenUsage => ({ ...NO_TOKENS, inputTokens });

export const RUN: Run = { cycleId: "root", requests: 1, truncations: 0, reminders: 0, upgradeDenied: false };

/** A conversation in this state, ten messages old, Restricted; with a run where the state belongs to one. */
export function conversationIn(state: State, change: Partial<Conversation> = {}): Conversation {
  const resting = ["idle", "error", "context_exhausted", "completed", "failed"].includes(state.kind);
  return {
    ...newConversation("restricted", 100_000),
    sequence: 10,
    hasMessages: true,
    run: resting ? null : RUN,
    state,
    ...change,
  };
}

export const call = (id: string, name = "bash", input: ToolCall["input"] = { command: "ls" }): ToolCall => ({
  id,
  name,
  input,
});
export const upgradeCall = (id: string): ToolCall => call(id, "request_mode_upgrade", { reason: "to write" });
export const spawnCall = (id: string, ...tasks: string[]): ToolCall =>
  call(id, "spawn_agents", { tasks: tasks.map((task) => ({ task })) });
export const submitCall = (id: string, result = "done"): ToolCall => call(id, "submit_result", { result });

type Fields<K extends State["kind"]> = Partial<Omit<StateOf<K>, "kind">>;

export const idle: State = { kind: "idle" };
export const awaitingLlm: State = { kind: "awaiting_llm" };
export const errorState: State = { kind: "error", message: "no network", errorKind: "network" };
export const exhausted: State = {
  kind: "context_exhausted",
  summary: "all said",
  source: "model",
  finalUsage: NO_TOKENS,
};
export const completed: State = { kind: "completed", result: "done", success: true };
export const failedState: State = { kind: "failed", error: "broken", errorKind: "unknown" };

export const requesting = (fields: Fields<"llm_requesting"> = {}): StateOf<"llm_requesting"> => ({
  kind: "llm_requesting",
  attempt: 1,
  lost: 0,
  requestId: "request",
  retry: null,
  ...fields,
});

export const RETRY = { at: "2025-01-01T00:00:01.000Z", errorKind: "network", message: "reset" } as const;

export const executing = (fields: Fields<"tool_executing"> = {}): StateOf<"tool_executing"> => ({
  kind: "tool_executing",
  current: call("t1"),
  operationId: "operation",
  startedAt: "2025-01-01T00:00:00.000Z",
  remaining: [],
  completed: [],
  ...fields,
});

export const approving = (
  fields: Fields<"awaiting_mode_approval"> = {},
): StateOf<"awaiting_mode_approval"> => ({
  kind: "awaiting_mode_approval",
  reason: "to write",
  toolCall: upgradeCall("u1"),
  remaining: [],
  completed: [],
  ...fields,
});

/** `count` sub-agents c1, c2, …; none has finished. */
export function childrenOf(
  count: number,
): Pick<StateOf<"awaiting_sub_agents">, "pending" | "finished" | "all"> {
  const all = Array.from({ length: count }, (_, n) => ({
    id: `c${n + 1}`,
    task: `task ${n + 1}`,
    timeoutSeconds: 60,
  }));
  return { pending: all, finished: [], all };
}

export const awaitingChildren = (
  count: number,
  fields: Fields<"awaiting_sub_agents"> = {},
): StateOf<"awaiting_sub_agents"> => ({
  kind: "awaiting_sub_agents",
  toolCall: spawnCall("s1", "task 1"),
  ...childrenOf(count),
  remaining: [],
  completed: [],
  ...fields,
});

export const continuing = (
  fields: Fields<"awaiting_continuation"> = {},
): StateOf<"awaiting_continuation"> => ({
  kind: "awaiting_continuation",
  rejectedToolCalls: [],
  triggerUsage: usage(90_000),
  attempt: 1,
  lost: 0,
  requestId: "summary",
  retry: null,
  ...fields,
});

const since = "2025-01-01T00:00:00.000Z";
export const cancellingRequest: State = {
  kind: "cancelling",
  since,
  by: "user",
  stopping: "request",
  requestId: "request",
};
export const cancellingTool = (remaining: readonly ToolCall[] = []): State => ({
  kind: "cancelling",
  since,
  by: "user",
  stopping: "tool",
  operationId: "operation",
  current: call("t1"),
  remaining,
  completed: [],
});
export const cancellingChildren = (count: number, remaining: readonly ToolCall[] = []): State => ({
  kind: "cancelling",
  since,
  by: "user",
  stopping: "sub_agents",
  toolCall: spawnCall("s1", "task 1"),
  ...childrenOf(count),
  remaining,
  completed: [],
});

/** A follow-up that waits. */
export const waiting = (messageId = "q1"): QueuedMessage => ({
  messageId,
  delivery: "followUp",
  text: "later",
  images: [],
  createdAt: since,
});

/** One value of every state; a sub-agent's last two included. */
export const EVERY_STATE: readonly State[] = [
  idle,
  awaitingLlm,
  requesting(),
  requesting({ attempt: 2, retry: RETRY }),
  executing({ remaining: [call("t2")] }),
  approving({ remaining: [call("t2")] }),
  awaitingChildren(2),
  cancellingRequest,
  cancellingTool(),
  cancellingChildren(2),
  errorState,
  continuing(),
  continuing({ attempt: 2, retry: RETRY }),
  exhausted,
  completed,
  failedState,
];
