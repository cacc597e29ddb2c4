/**
 * Owns: what an editor is told of a conversation as it goes on, each thing once, in the words of no version of the
 * protocol (docs/editors.md). `acp/v1.ts` and `acp/v2.ts` write it down. Pure but for what it remembers.
 */
import { decisionOf, labelOf, subjectOf } from "../client/call-words.ts";
import type { Conversation, LiveOutput, LoadedConversation, State } from "../client/index.ts";
import { outcomeOf, type Outcome } from "../client/outcome.ts";
import { liveRowsOf, Transcript, type Call, type Row } from "../client/transcript.ts";
import { isWorking } from "../machine/conversation.ts";
import { plainText, type Block, type FileDiff, type Json, type ToolStatus } from "../machine/message.ts";

export type ShownCall = {
  readonly id: string;
  readonly name: string;
  readonly title: string;
  readonly input: Json;
  readonly status: "pending" | "in_progress" | ToolStatus;
  /** Its output: the end of it while it runs. */
  readonly text: string;
  readonly diffs: readonly FileDiff[];
  /** Files that it is about, absolute. */
  readonly paths: readonly string[];
};

/** A sub-agent's task. */
type Task = { readonly content: string; readonly status: "pending" | "in_progress" | "completed" };

export type Work =
  | { readonly kind: "running" }
  | { readonly kind: "requires_action" }
  | { readonly kind: "idle"; readonly outcome: Outcome };

export type Change =
  | {
      readonly kind: "user_message";
      readonly messageId: string;
      readonly content: readonly Block[];
      /** It is a prompt that the editor has sent itself. */
      readonly isOwn: boolean;
    }
  /** `text` continues what was told of this message before. */
  | { readonly kind: "text" | "thinking"; readonly messageId: string; readonly text: string }
  | { readonly kind: "call"; readonly call: ShownCall; readonly isNew: boolean }
  | { readonly kind: "mode"; readonly conversation: Conversation }
  | { readonly kind: "title"; readonly title: string | null }
  /** `dollars`: of the conversation so far; null: not known. */
  | {
      readonly kind: "usage";
      readonly used: number;
      readonly size: number;
      readonly dollars: number | null;
    }
  | { readonly kind: "plan"; readonly id: string; readonly tasks: readonly Task[] }
  | { readonly kind: "work"; readonly work: Work };

export class Changes {
  readonly #transcript = new Transcript();
  readonly #own = new Set<string>();
  readonly #texts = new Map<string, number>();
  /** What was told last of a call, without its diffs. */
  readonly #calls = new Map<string, string>();
  readonly #told = new Set<string>();
  #facts: Conversation | null = null;
  #plan = "";
  #work = "";

  /** The editor has sent this message itself. */
  own(messageId: string): void {
    this.#own.add(messageId);
  }

  /** Takes everything as told: an editor that resumes has it already. */
  skip(model: LoadedConversation): void {
    this.next(model);
  }

  /** What is new since the last time, in the order in which it is shown. */
  next(model: LoadedConversation): readonly Change[] {
    const { messages, answer, output, conversation } = model;
    const rows = [...this.#transcript.rowsOf(messages), ...liveRowsOf(answer)];
    const changes = [
      ...rows.flatMap((row) => this.#ofRow(row, conversation, output)),
      ...this.#ofFacts(conversation),
      ...this.#ofPlan(rows, conversation.state),
      ...this.#ofWork(model),
    ];
    this.#facts = conversation;
    return changes;
  }

  #ofRow(row: Row, conversation: Conversation, output: LiveOutput | null): readonly Change[] {
    switch (row.kind) {
      case "user": {
        const { id: messageId, content } = row.message;
        const isOwn = this.#own.has(messageId);
        return this.#isNew(row.key) ? [{ kind: "user_message", messageId, content, isOwn }] : [];
      }
      case "text":
      case "thinking":
        return this.#grown(row.kind, row.key, row.text);
      case "calls":
        return row.calls.flatMap((call) => this.#ofCall(call, conversation, output));
      case "sub_agents":
        return this.#ofCall(row.call, conversation, null);
      case "error":
        return this.#once(row.key, `Error: ${row.message.content[0].message}`);
      case "note":
        return this.#once(row.key, plainText(row.message.content));
      case "summary":
        return this.#once(row.key, `Summary:\n\n${row.message.content[0].summary}`);
      // Editors have no place for what the model is told of the mode and the like.
      case "system":
      case "run_stop":
        return [];
    }
  }

  #isNew(key: string): boolean {
    const isNew = !this.#told.has(key);
    this.#told.add(key);
    return isNew;
  }

  #once(messageId: string, text: string): readonly Change[] {
    return this.#isNew(messageId) && text !== "" ? [{ kind: "text", messageId, text: `${text}\n\n` }] : [];
  }

  #grown(kind: "text" | "thinking", messageId: string, text: string): readonly Change[] {
    const told = this.#texts.get(messageId) ?? 0;
    if (text.length <= told) return [];
    this.#texts.set(messageId, text.length);
    return [{ kind, messageId, text: text.slice(told) }];
  }

  #ofCall(call: Call, { state, cwd }: Conversation, output: LiveOutput | null): readonly Change[] {
    const { id, name, input, outcome, diffs } = call;
    const live = output?.toolCallId === id ? endOf(output) : "";
    const status = outcome === null ? (runs(state, id) ? "in_progress" : "pending") : outcome.status;
    const text = outcome === null ? live : (decisionOf(call) ?? plainText(outcome.output));
    const before = this.#calls.get(id);
    const now = `${status} ${text}`;
    if (now === before) return [];
    this.#calls.set(id, now);
    const subject = subjectOf(call, (path) => path);
    const title = name === "bash" ? subject : `${labelOf(call)} ${subject}`.trim();
    const shown: ShownCall = { id, name, title, input, status, text, diffs, paths: pathsOf(call, cwd) };
    return [{ kind: "call", call: shown, isNew: before === undefined }];
  }

  #ofFacts(conversation: Conversation): readonly Change[] {
    const { mode, title, usage, spent } = conversation;
    const before = this.#facts;
    const changes: Change[] = [];
    // The answer to the request that opened the session has the mode at the beginning.
    if (before !== null && before.mode !== mode) changes.push({ kind: "mode", conversation });
    if (title !== (before?.title ?? null)) changes.push({ kind: "title", title });
    const dollars = spent?.dollars ?? null;
    if (usage.contextUsed !== before?.usage.contextUsed || dollars !== (before.spent?.dollars ?? null)) {
      const { contextUsed: used, contextWindow: size } = usage;
      changes.push({ kind: "usage", used, size, dollars });
    }
    return changes;
  }

  /** The sub-agents that work now, or worked last. */
  #ofPlan(rows: readonly Row[], state: State): readonly Change[] {
    const last = rows.findLast(({ kind }) => kind === "sub_agents");
    if (last?.kind !== "sub_agents") return [];
    const { call } = last;
    const isMine = state.kind === "awaiting_sub_agents" && state.toolCall.id === call.id;
    const tasks = tasksOf(call).map((content, index): Task => {
      if (!isMine) return { content, status: call.outcome === null ? "pending" : "completed" };
      const isOver = state.finished.some(({ id }) => id === state.all[index]?.id);
      return { content, status: isOver ? "completed" : "in_progress" };
    });
    const plan = JSON.stringify(tasks);
    if (plan === this.#plan) return [];
    this.#plan = plan;
    return [{ kind: "plan", id: call.id, tasks }];
  }

  #ofWork(model: LoadedConversation): readonly Change[] {
    const work = workOf(model);
    const now = JSON.stringify(work);
    if (work === null || now === this.#work) return [];
    this.#work = now;
    return [{ kind: "work", work }];
  }
}

/** Null before everything that was missed has arrived. */
export function workOf(model: LoadedConversation): Work | null {
  const { state } = model.conversation;
  if (!model.isSynced) return null;
  if (state.kind === "awaiting_mode_approval") return { kind: "requires_action" };
  if (isWorking(state)) return { kind: "running" };
  const outcome = outcomeOf(model, null);
  return outcome === null ? null : { kind: "idle", outcome };
}

/** Each change has all that is shown, so it is the last of the output. Characters. */
const SHOWN_OUTPUT = 8_000;
const endOf = ({ parts }: LiveOutput): string =>
  parts
    .map(({ text }) => text)
    .join("")
    .slice(-SHOWN_OUTPUT);

const runs = (state: State, callId: string): boolean =>
  (state.kind === "tool_executing" && state.current.id === callId) ||
  (state.kind === "awaiting_sub_agents" && state.toolCall.id === callId);

function pathsOf({ input, diffs }: Call, cwd: string): readonly string[] {
  if (diffs.length > 0) return diffs.map(({ path }) => path);
  const path = typeof input === "object" && input !== null && "path" in input ? input["path"] : null;
  if (typeof path !== "string" || path === "") return [];
  return [path.startsWith("/") ? path : `${cwd}/${path}`];
}

function tasksOf({ input }: Call): readonly string[] {
  const tasks = typeof input === "object" && input !== null && "tasks" in input ? input["tasks"] : null;
  if (!Array.isArray(tasks)) return [];
  return (tasks as readonly unknown[]).map((task) =>
    typeof task === "object" && task !== null && "task" in task ? String(task.task) : "",
  );
}

/** A cost that nobody knows is left out: an editor shows none then. */
export const usageOf = ({ used, size, dollars }: Extract<Change, { readonly kind: "usage" }>) => ({
  used,
  size,
  ...(dollars === null ? {} : { cost: { amount: dollars, currency: "USD" } }),
});
