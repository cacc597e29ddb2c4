/**
 * Owns: a conversation as updates of an editor's session, as it goes on: each thing once, whatever the model's changes
 * (docs/editors.md). Pure but for what it remembers.
 */
import { parsePatch } from "diff";
import type { SessionUpdate, ToolCallContent, ToolCallStatus, ToolKind } from "@agentclientprotocol/sdk";
import { labelOf, subjectOf } from "../client/call-words.ts";
import type { LiveOutput, LoadedConversation } from "../client/index.ts";
import { liveRowsOf, Transcript, type Call, type Row } from "../client/transcript.ts";

type SentCall = { readonly status: ToolCallStatus; readonly output: string };

export class Updates {
  readonly #transcript = new Transcript();
  /** Messages that the editor shows already: the prompts that it has sent. */
  readonly #known = new Set<string>();
  readonly #texts = new Map<string, number>();
  readonly #calls = new Map<string, SentCall>();
  readonly #others = new Set<string>();
  #mode: string | null = null;
  #title: string | null = null;
  #used: number | null = null;
  #plan = "";

  /** The editor has sent this message itself. */
  know(messageId: string): void {
    this.#known.add(messageId);
  }

  /** Takes everything as shown: an editor that resumes has it already. */
  skip(model: LoadedConversation): void {
    this.next(model);
  }

  /** What is new since the last time, in the order in which it is shown. */
  next(model: LoadedConversation): readonly SessionUpdate[] {
    const { messages, answer, output, conversation } = model;
    const rows = [...this.#transcript.rowsOf(messages), ...liveRowsOf(answer)];
    return [
      ...rows.flatMap((row) => this.#ofRow(row, model, output)),
      ...this.#ofFacts(conversation),
      ...this.#ofPlan(rows, conversation),
    ];
  }

  #ofRow(
    row: Row,
    { conversation }: LoadedConversation,
    output: LiveOutput | null,
  ): readonly SessionUpdate[] {
    switch (row.kind) {
      case "user":
        if (this.#known.has(row.message.id) || !this.#isNew(row.key)) return [];
        return row.message.content.map((block) =>
          chunk("user_message_chunk", block.type === "text" ? block.text : "[image]"),
        );
      case "text":
        return this.#grown(row.key, row.text, "agent_message_chunk");
      case "thinking":
        return this.#grown(row.key, row.text, "agent_thought_chunk");
      case "calls":
        return row.calls.flatMap((call) => this.#ofCall(call, conversation, output));
      case "sub_agents":
        return this.#ofCall(row.call, conversation, null);
      case "error":
        return this.#once(row.key, `Error: ${row.message.content[0].message}`);
      case "note": {
        const text = row.message.content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
        return this.#once(row.key, text);
      }
      case "summary":
        return this.#once(row.key, `Summary:\n\n${row.message.content[0].summary}`);
      // Editors have no place for what the model is told of the mode and the like.
      case "system":
      case "run_stop":
        return [];
    }
  }

  #isNew(key: string): boolean {
    const isNew = !this.#others.has(key);
    this.#others.add(key);
    return isNew;
  }

  #once(key: string, text: string): readonly SessionUpdate[] {
    return this.#isNew(key) && text !== "" ? [chunk("agent_message_chunk", `${text}\n\n`)] : [];
  }

  #grown(
    key: string,
    text: string,
    kind: "agent_message_chunk" | "agent_thought_chunk",
  ): readonly SessionUpdate[] {
    const sent = this.#texts.get(key) ?? 0;
    if (text.length <= sent) return [];
    this.#texts.set(key, text.length);
    return [chunk(kind, text.slice(sent))];
  }

  #ofCall(
    call: Call,
    { state, cwd }: LoadedConversation["conversation"],
    output: LiveOutput | null,
  ): readonly SessionUpdate[] {
    const { id: toolCallId, outcome } = call;
    const isRunning =
      (state.kind === "tool_executing" && state.current.id === toolCallId) ||
      (state.kind === "awaiting_sub_agents" && state.toolCall.id === toolCallId);
    const status: ToolCallStatus =
      outcome === null
        ? isRunning
          ? "in_progress"
          : "pending"
        : outcome.status === "completed"
          ? "completed"
          : "failed";
    const live = output?.toolCallId === toolCallId ? endOf(output) : "";
    const sent = this.#calls.get(toolCallId);
    if (sent?.status === status && (outcome !== null || sent.output === live)) return [];
    this.#calls.set(toolCallId, { status, output: live });
    const content = outcome === null ? textContent(live) : resultOf(call);
    if (sent !== undefined)
      return [
        { sessionUpdate: "tool_call_update", toolCallId, status, ...(content.length > 0 ? { content } : {}) },
      ];
    const subject = subjectOf(call, (path) => path);
    return [
      {
        sessionUpdate: "tool_call",
        toolCallId,
        title: call.name === "bash" ? subject : `${labelOf(call)} ${subject}`.trim(),
        kind: KINDS[call.name] ?? "other",
        status,
        rawInput: call.input,
        locations: locationsOf(call, cwd),
        content,
      },
    ];
  }

  #ofFacts({ mode, title, usage }: LoadedConversation["conversation"]): readonly SessionUpdate[] {
    const updates: SessionUpdate[] = [];
    // The answer to the request that opened the session has the mode at the beginning.
    if (this.#mode !== null && mode !== this.#mode)
      updates.push({ sessionUpdate: "current_mode_update", currentModeId: mode });
    if (title !== this.#title) updates.push({ sessionUpdate: "session_info_update", title });
    if (usage.contextUsed !== this.#used)
      updates.push({ sessionUpdate: "usage_update", used: usage.contextUsed, size: usage.contextWindow });
    this.#mode = mode;
    this.#title = title;
    this.#used = usage.contextUsed;
    return updates;
  }

  /** The sub-agents that work now, or worked last. */
  #ofPlan(rows: readonly Row[], { state }: LoadedConversation["conversation"]): readonly SessionUpdate[] {
    const last = rows.findLast(({ kind }) => kind === "sub_agents");
    if (last?.kind !== "sub_agents") return [];
    const { call } = last;
    const isMine = state.kind === "awaiting_sub_agents" && state.toolCall.id === call.id;
    const entries = tasksOf(call).map((content, index) => {
      const id = isMine ? state.all[index]?.id : undefined;
      const isOver = isMine ? state.finished.some((each) => each.id === id) : call.outcome !== null;
      return {
        content,
        priority: "medium" as const,
        status: isOver ? ("completed" as const) : isMine ? ("in_progress" as const) : ("pending" as const),
      };
    });
    const plan = JSON.stringify(entries);
    if (plan === this.#plan) return [];
    this.#plan = plan;
    return [{ sessionUpdate: "plan", entries }];
  }
}

/** Each update has all that is shown, so it is the last of the output. */
const SHOWN_OUTPUT = 8_000;
const endOf = ({ parts }: LiveOutput): string =>
  parts
    .map(({ text }) => text)
    .join("")
    .slice(-SHOWN_OUTPUT);

const KINDS: Readonly<Record<string, ToolKind>> = {
  bash: "execute",
  read: "read",
  ls: "read",
  grep: "search",
  find: "search",
  keyword_search: "search",
  write: "edit",
  edit: "edit",
  patch: "edit",
  think: "think",
  request_mode_upgrade: "switch_mode",
};

const chunk = (
  sessionUpdate: "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk",
  text: string,
): SessionUpdate => ({ sessionUpdate, content: { type: "text", text } });

const textContent = (text: string): ToolCallContent[] =>
  text === "" ? [] : [{ type: "content", content: { type: "text", text } }];

/** Changes as old and new text of each part of a file that changed; of other calls, their output. */
function resultOf({ diffs, outcome }: Call): ToolCallContent[] {
  if (diffs.length > 0)
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
  const text =
    outcome?.output.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n") ?? "";
  return textContent(text);
}

const side = (lines: readonly string[], mark: "+" | "-"): string =>
  lines
    .filter((line) => line.startsWith(" ") || line.startsWith(mark))
    .map((line) => line.slice(1))
    .join("\n");

/** Files of the call, absolute, so that an editor can follow. */
function locationsOf({ input, diffs }: Call, cwd: string): { path: string }[] {
  if (diffs.length > 0) return diffs.map(({ path }) => ({ path }));
  const path = typeof input === "object" && input !== null && "path" in input ? input["path"] : null;
  if (typeof path !== "string" || path === "") return [];
  return [{ path: path.startsWith("/") ? path : `${cwd}/${path}` }];
}

function tasksOf({ input }: Call): readonly string[] {
  const tasks = typeof input === "object" && input !== null && "tasks" in input ? input["tasks"] : null;
  if (!Array.isArray(tasks)) return [];
  return (tasks as readonly unknown[]).map((task) =>
    typeof task === "object" && task !== null && "task" in task ? String(task.task) : "",
  );
}
