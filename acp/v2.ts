/**
 * Owns: version 2 of the Agent Client Protocol, a draft: its requests, and changes as its updates. A prompt is answered
 * when it is in the conversation; how it goes on is told as the session's state.
 */
import {
  agent,
  RequestError,
  type AgentApp,
  type AgentContext,
  type ContentChunk,
  type IdleStateUpdate,
  type InitializeResponse,
  type SessionConfigOption,
  type SessionUpdate,
  type StateUpdate,
  type ToolCallContent,
  type ToolCallStatus,
} from "@agentclientprotocol/sdk/experimental/v2";
import type { Client, Conversation } from "../client/index.ts";
import type { Outcome } from "../client/outcome.ts";
import { plainText, type FileDiff } from "../machine/message.ts";
import { usageOf, type Change, type ShownCall, type Work } from "./changes.ts";
import { promptOf } from "./prompt.ts";
import type { Editor } from "./session.ts";
import { Sessions } from "./sessions.ts";
import { AGENT, DECISIONS, decisionOf, modesOf, questionOf, toolKindOf } from "./words.ts";

const CAPABILITIES: InitializeResponse = {
  protocolVersion: 2,
  info: AGENT,
  capabilities: { session: { prompt: { image: {}, embeddedContext: {} }, delete: {} } },
  authMethods: [],
};

/** The agent that an editor talks to, on one server. */
export function agentV2(client: Client): AgentApp {
  const sessions = new Sessions(client);
  return agent({ name: AGENT.name })
    .onConnect(({ signal }) => signal.addEventListener("abort", () => sessions.end()))
    .onRequest("initialize", () => CAPABILITIES)
    .onRequest("session/new", async ({ params: { cwd }, client: context }) => {
      const made = await sessions.create(editorOf(context), cwd);
      return { sessionId: made.id, configOptions: optionsOf(made) };
    })
    .onRequest("session/resume", async ({ params: { sessionId, replayFrom }, client: context }) => {
      const editor = editorOf(context);
      const conversation = await (replayFrom == null
        ? sessions.resume(editor, sessionId)
        : sessions.load(editor, sessionId));
      return { configOptions: optionsOf(conversation) };
    })
    .onRequest("session/list", async ({ params: { cwd } }) => ({
      sessions: await sessions.list(cwd ?? null),
    }))
    .onRequest("session/prompt", async ({ params: { sessionId, prompt } }) => {
      const session = sessions.get(sessionId);
      const messageId = await session.send(promptOf(prompt));
      await session.inserted(messageId);
      return { messageId };
    })
    .onNotification("session/cancel", ({ params: { sessionId } }) => sessions.get(sessionId).cancel())
    .onRequest("session/set_config_option", async ({ params: { sessionId, configId, value } }) => {
      if (configId !== MODE) throw RequestError.invalidParams({ configId }, "There is no such option.");
      return { configOptions: optionsOf(await sessions.get(sessionId).changeMode(String(value))) };
    })
    .onRequest("session/close", async ({ params: { sessionId } }) => {
      await sessions.close(sessionId);
      return {};
    })
    .onRequest("session/delete", async ({ params: { sessionId } }) => {
      await sessions.delete(sessionId);
      return {};
    });
}

function editorOf(context: AgentContext): Editor {
  return {
    tell: (sessionId, change) => context.notify("session/update", { sessionId, update: updateOf(change) }),
    ask: async (sessionId, approval, cancellationSignal) => {
      const { outcome } = await context.request(
        "session/request_permission",
        {
          sessionId,
          title: questionOf(approval),
          subject: { type: "tool_call", toolCall: { toolCallId: approval.toolCall.id, status: "pending" } },
          options: DECISIONS,
        },
        { cancellationSignal, stopWaitingOnCancel: true },
      );
      return outcome.outcome === "selected" ? decisionOf(String(outcome.optionId)) : null;
    },
  };
}

const MODE = "mode";

const optionsOf = (conversation: Conversation): SessionConfigOption[] => [
  {
    type: "select",
    configId: MODE,
    name: "Mode",
    category: MODE,
    currentValue: conversation.mode,
    options: modesOf(conversation).map(({ id: value, name, description }) => ({ value, name, description })),
  },
];

function updateOf(change: Change): SessionUpdate {
  switch (change.kind) {
    case "user_message":
      return {
        sessionUpdate: "user_message",
        messageId: change.messageId,
        content: change.content.map((block) => ({ type: "text", text: plainText([block]) })),
      };
    case "text":
      return { sessionUpdate: "agent_message_chunk", ...chunkOf(change) };
    case "thinking":
      return { sessionUpdate: "agent_thought_chunk", ...chunkOf(change) };
    case "call":
      return callOf(change.call, change.isNew);
    case "mode":
      return { sessionUpdate: "config_option_update", configOptions: optionsOf(change.conversation) };
    case "title":
      return { sessionUpdate: "session_info_update", title: change.title };
    case "usage":
      return { sessionUpdate: "usage_update", ...usageOf(change) };
    case "plan": {
      const entries = change.tasks.map((task) => ({ ...task, priority: "medium" }));
      return { sessionUpdate: "plan_update", plan: { type: "items", planId: change.id, entries } };
    }
    case "work":
      return { sessionUpdate: "state_update", ...stateOf(change.work) };
  }
}

const chunkOf = ({ messageId, text }: Extract<Change, { kind: "text" | "thinking" }>): ContentChunk => ({
  messageId,
  content: { type: "text", text },
});

function stateOf(work: Work): StateUpdate {
  switch (work.kind) {
    case "running":
      return { state: "running" };
    case "requires_action":
      return { state: "requires_action" };
    case "idle":
      return { state: "idle", ...stopOf(work.outcome) };
  }
}

function stopOf(outcome: Outcome): IdleStateUpdate {
  switch (outcome.kind) {
    case "done":
      return { stopReason: "end_turn" };
    case "cancelled":
      return { stopReason: "cancelled" };
    case "exhausted":
      return { stopReason: "max_tokens" };
    case "failed":
      return { stopReason: "error", error: { code: -32603, message: outcome.reason } };
    case "held":
      return {};
  }
}

function callOf(call: ShownCall, isNew: boolean): SessionUpdate {
  const { id: toolCallId, title, name, input: rawInput } = call;
  const content = contentOf(call);
  return {
    sessionUpdate: "tool_call_update",
    toolCallId,
    status: STATUSES[call.status],
    ...(content.length > 0 ? { content } : {}),
    ...(isNew
      ? { name, title, kind: toolKindOf(name), rawInput, locations: call.paths.map((path) => ({ path })) }
      : {}),
  };
}

const STATUSES: Readonly<Record<ShownCall["status"], ToolCallStatus>> = {
  pending: "pending",
  in_progress: "in_progress",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  skipped: "cancelled",
  interrupted: "failed",
};

/** Changes as a patch; of other calls, their output. */
function contentOf({ diffs, text }: ShownCall): ToolCallContent[] {
  if (diffs.length === 0) return text === "" ? [] : [{ type: "content", content: { type: "text", text } }];
  return [
    {
      type: "diff",
      changes: diffs.map(({ path, change }) =>
        change === "created" ? { operation: "add", path } : { operation: "modify", path },
      ),
      patch: { format: "git_patch", text: diffs.map(gitPatchOf).join("") },
    },
  ];
}

/** A unified diff with the header that git gives it. */
function gitPatchOf({ path, change, diff }: FileDiff): string {
  const hunks = diff.slice(Math.max(0, diff.indexOf("@@ ")));
  const header = `diff --git a${path} b${path}\n`;
  const isNew = change === "created";
  if (diff === "") return isNew ? `${header}new file mode 100644\n` : header;
  return `${header}${isNew ? "new file mode 100644\n--- /dev/null" : `--- a${path}`}\n+++ b${path}\n${hunks}`;
}
