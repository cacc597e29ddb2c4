/** Owns: version 1 of the Agent Client Protocol: its requests, and changes as its updates. */
import { parsePatch } from "diff";
import {
  agent,
  RequestError,
  type AgentApp,
  type AgentContext,
  type InitializeResponse,
  type PromptResponse,
  type RequestPermissionRequest,
  type SessionModeState,
  type SessionUpdate,
  type StopReason,
  type ToolCallContent,
  type ToolCallStatus,
} from "@agentclientprotocol/sdk";
import type { Client, Conversation } from "../client/index.ts";
import type { Outcome } from "../client/outcome.ts";
import { plainText } from "../machine/message.ts";
import { usageOf, type Change, type ShownCall } from "./changes.ts";
import { promptOf } from "./prompt.ts";
import type { Editor } from "./session.ts";
import { Sessions } from "./sessions.ts";
import { AGENT, DECISIONS, decisionOf, modesOf, questionOf, toolKindOf } from "./words.ts";

const CAPABILITIES: InitializeResponse = {
  protocolVersion: 1,
  agentCapabilities: {
    loadSession: true,
    promptCapabilities: { image: true, embeddedContext: true },
    sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
  },
  agentInfo: AGENT,
  authMethods: [],
};

/** The agent that an editor talks to, on one server. */
export function agentV1(client: Client): AgentApp {
  const sessions = new Sessions(client);
  return agent({ name: AGENT.name })
    .onConnect(({ signal }) => signal.addEventListener("abort", () => sessions.end()))
    .onRequest("initialize", () => CAPABILITIES)
    .onRequest("authenticate", () => ({}))
    .onRequest("session/new", async ({ params: { cwd }, client: context }) => {
      const made = await sessions.create(editorOf(context), cwd);
      return { sessionId: made.id, modes: modeStateOf(made) };
    })
    .onRequest("session/load", async ({ params: { sessionId }, client: context }) => ({
      modes: modeStateOf(await sessions.load(editorOf(context), sessionId)),
    }))
    .onRequest("session/resume", async ({ params: { sessionId }, client: context }) => ({
      modes: modeStateOf(await sessions.resume(editorOf(context), sessionId)),
    }))
    .onRequest("session/list", async ({ params: { cwd } }) => ({
      sessions: await sessions.list(cwd ?? null),
    }))
    .onRequest("session/prompt", async ({ params: { sessionId, prompt } }) => {
      const session = sessions.get(sessionId);
      return responseOf(await session.ended(await session.send(promptOf(prompt))));
    })
    .onNotification("session/cancel", ({ params: { sessionId } }) => sessions.get(sessionId).cancel())
    .onRequest("session/set_mode", async ({ params: { sessionId, modeId } }) => {
      await sessions.get(sessionId).changeMode(modeId);
      return {};
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
    tell: async (sessionId, change) => {
      for (const update of updatesOf(change)) await context.notify("session/update", { sessionId, update });
    },
    ask: async (sessionId, approval, cancellationSignal) => {
      const question: RequestPermissionRequest = {
        sessionId,
        toolCall: {
          toolCallId: approval.toolCall.id,
          title: questionOf(approval),
          kind: "switch_mode",
          status: "pending",
        },
        options: DECISIONS,
      };
      const answer = await context.request("session/request_permission", question, {
        cancellationSignal,
        stopWaitingOnCancel: true,
      });
      return answer.outcome.outcome === "selected" ? decisionOf(answer.outcome.optionId) : null;
    },
  };
}

const modeStateOf = (conversation: Conversation): SessionModeState => ({
  currentModeId: conversation.mode,
  availableModes: modesOf(conversation),
});

function responseOf(outcome: Outcome): PromptResponse {
  switch (outcome.kind) {
    case "failed":
      throw RequestError.internalError(undefined, outcome.reason);
    case "held":
      throw RequestError.internalError(undefined, `The message waits (${outcome.reason}).`);
    case "done":
    case "cancelled":
    case "exhausted":
      return { stopReason: STOP_REASONS[outcome.kind] };
  }
}

const STOP_REASONS = {
  done: "end_turn",
  cancelled: "cancelled",
  exhausted: "max_tokens",
} as const satisfies Record<string, StopReason>;

function updatesOf(change: Change): readonly SessionUpdate[] {
  switch (change.kind) {
    case "user_message":
      // The editor shows its own prompts already.
      return change.isOwn
        ? []
        : change.content.map((block) => chunk("user_message_chunk", plainText([block])));
    case "text":
      return [chunk("agent_message_chunk", change.text)];
    case "thinking":
      return [chunk("agent_thought_chunk", change.text)];
    case "call":
      return [callOf(change.call, change.isNew)];
    case "mode":
      return [{ sessionUpdate: "current_mode_update", currentModeId: change.conversation.mode }];
    case "title":
      return [{ sessionUpdate: "session_info_update", title: change.title }];
    case "usage":
      return [{ sessionUpdate: "usage_update", ...usageOf(change) }];
    case "plan": {
      const entries = change.tasks.map((task) => ({ ...task, priority: "medium" as const }));
      return [{ sessionUpdate: "plan", entries }];
    }
    // This version tells it by the answers to prompts.
    case "work":
      return [];
  }
}

const chunk = (
  sessionUpdate: "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk",
  text: string,
): SessionUpdate => ({ sessionUpdate, content: { type: "text", text } });

function callOf(call: ShownCall, isNew: boolean): SessionUpdate {
  const { id: toolCallId, title, name, input: rawInput } = call;
  const status = STATUSES[call.status];
  const content = contentOf(call);
  if (!isNew)
    return {
      sessionUpdate: "tool_call_update",
      toolCallId,
      status,
      ...(content.length > 0 ? { content } : {}),
    };
  const kind = toolKindOf(name);
  const locations = call.paths.map((path) => ({ path }));
  return { sessionUpdate: "tool_call", toolCallId, title, kind, status, rawInput, locations, content };
}

const STATUSES: Readonly<Record<ShownCall["status"], ToolCallStatus>> = {
  pending: "pending",
  in_progress: "in_progress",
  completed: "completed",
  failed: "failed",
  cancelled: "failed",
  skipped: "failed",
  interrupted: "failed",
};

/** Changes as old and new text of each part of a file that changed; of other calls, their output. */
function contentOf({ diffs, text }: ShownCall): ToolCallContent[] {
  if (diffs.length === 0) return text === "" ? [] : [{ type: "content", content: { type: "text", text } }];
  return diffs.flatMap(({ path, change, diff }) =>
    parsePatch(diff).flatMap(({ hunks }) =>
      hunks.map(({ lines }) => ({
        type: "diff" as const,
        path,
        oldText: change === "created" ? null : side(lines, "-"),
        newText: side(lines, "+"),
      })),
    ),
  );
}

const side = (lines: readonly string[], mark: "+" | "-"): string =>
  lines
    .filter((line) => line.startsWith(" ") || line.startsWith(mark))
    .map((line) => line.slice(1))
    .join("\n");
