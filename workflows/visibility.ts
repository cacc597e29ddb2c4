/**
 * Owns: what operators see in the Temporal Web UI and CLI without any code of ours. Search attributes add to the
 * history, so they are written only when they change; details are free.
 */
import { defineSearchAttributeKey, SearchAttributeType, TypedSearchAttributes } from "@temporalio/common";
import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from "@temporalio/workflow";
import type { Conversation, State } from "../machine/conversation.ts";
import type { ConversationConfig } from "../protocol/conversation.ts";

type Status = "working" | "waiting" | "idle" | "error" | "exhausted";

const STATUS = defineSearchAttributeKey("status", SearchAttributeType.KEYWORD);
const MODE = defineSearchAttributeKey("mode", SearchAttributeType.KEYWORD);
const PARENT = defineSearchAttributeKey("parent", SearchAttributeType.KEYWORD);

/** The search attributes that a sub-agent is started with: it works from the beginning. */
export const attributesOf = ({ initialMode, parentId }: ConversationConfig) =>
  new TypedSearchAttributes([
    { key: STATUS, value: "working" },
    { key: MODE, value: initialMode },
    ...(parentId === null ? [] : [{ key: PARENT, value: parentId }]),
  ]);

export class Visibility {
  #shown: { readonly status: string | undefined; readonly mode: string | undefined };
  readonly #config: ConversationConfig;

  constructor(config: ConversationConfig) {
    this.#config = config;
    // The search attributes that the workflow was started with, or that the previous run had.
    const { typedSearchAttributes } = workflowInfo();
    this.#shown = { status: typedSearchAttributes.get(STATUS), mode: typedSearchAttributes.get(MODE) };
  }

  show(conversation: Conversation, revision: number): void {
    const next = { status: statusOf(conversation.state), mode: conversation.mode };
    if (next.status !== this.#shown.status || next.mode !== this.#shown.mode) {
      const parent = this.#config.parentId;
      upsertSearchAttributes([
        { key: STATUS, value: next.status },
        { key: MODE, value: next.mode },
        ...(parent === null ? [] : [{ key: PARENT, value: parent }]),
      ]);
      this.#shown = next;
    }
    setCurrentDetails(describe(conversation, this.#config, revision));
  }
}

function statusOf(state: State): Status {
  switch (state.kind) {
    case "awaiting_llm":
    case "llm_requesting":
    case "tool_executing":
    case "awaiting_sub_agents":
    case "cancelling":
    case "awaiting_continuation":
      return "working";
    case "awaiting_mode_approval":
      return "waiting";
    case "idle":
    case "completed":
      return "idle";
    case "error":
    case "failed":
      return "error";
    case "context_exhausted":
      return "exhausted";
  }
}

function describe(
  { state, mode, queue, sequence }: Conversation,
  config: ConversationConfig,
  revision: number,
): string {
  const lines = [
    `**${state.kind}** in \`${config.cwd}\` on ${config.host}, ${mode}, ${config.model}`,
    `revision ${revision}, ${sequence} messages, ${queue.length} waiting`,
  ];
  if (state.kind === "tool_executing")
    lines.push(`running \`${state.current.name}\` since ${state.startedAt}`);
  if (state.kind === "awaiting_mode_approval") lines.push(`asks for Unrestricted mode: ${state.reason}`);
  if (state.kind === "llm_requesting" && state.retry !== null) {
    lines.push(`attempt ${state.attempt} at ${state.retry.at}: ${state.retry.message}`);
  }
  if (state.kind === "awaiting_sub_agents") {
    lines.push(`sub-agents: ${state.finished.length} of ${state.all.length} have ended`);
  }
  if (state.kind === "error") lines.push(state.message);
  if (state.kind === "failed") lines.push(state.error);
  return lines.join("\n\n");
}
