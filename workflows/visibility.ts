/**
 * Owns: what operators see in the Temporal Web UI and CLI without any code of ours. Search attributes add to the
 * history, so each is written only when it changes; details are free.
 */
import { defineSearchAttributeKey, SearchAttributeType, TypedSearchAttributes } from "@temporalio/common";
import { patched, setCurrentDetails, upsertSearchAttributes, workflowInfo } from "@temporalio/workflow";
import type { Conversation, Mode, State } from "../machine/conversation.ts";
import type { ConversationConfig } from "../protocol/conversation.ts";
import { STAND_IN_TITLE } from "../protocol/title.ts";

type Status = "working" | "waiting" | "idle" | "error" | "exhausted";

const STATUS = defineSearchAttributeKey("status", SearchAttributeType.KEYWORD);
const MODE = defineSearchAttributeKey("mode", SearchAttributeType.KEYWORD);
const PARENT = defineSearchAttributeKey("parent", SearchAttributeType.KEYWORD);
const TITLE = defineSearchAttributeKey("title", SearchAttributeType.KEYWORD);

/** `title` is null where it is hidden: nothing encrypts search attributes. */
type Attributes = { readonly status: Status; readonly mode: Mode; readonly title: string | null };

const pairsOf = ({ status, mode, title }: Attributes, { parentId }: ConversationConfig) => [
  { key: STATUS, value: status },
  { key: MODE, value: mode },
  ...(title === null ? [] : [{ key: TITLE, value: title }]),
  ...(parentId === null ? [] : [{ key: PARENT, value: parentId }]),
];

/** The search attributes that a sub-agent is started with: it works from the beginning. */
export const attributesOf = (config: ConversationConfig, title: string | null): TypedSearchAttributes =>
  new TypedSearchAttributes(pairsOf({ status: "working", mode: config.initialMode, title }, config));

export class Visibility {
  readonly #config: ConversationConfig;
  readonly #hidesTitle: boolean;

  constructor(config: ConversationConfig, hidesTitle: boolean) {
    this.#config = config;
    this.#hidesTitle = hidesTitle;
  }

  /** @param title as `plainTitle` makes it; null: it has none yet. */
  show(conversation: Conversation, revision: number, title: string | null): void {
    const shown = title ?? STAND_IN_TITLE;
    const attributes = {
      status: statusOf(conversation.state),
      mode: conversation.mode,
      title: this.#hidesTitle ? null : shown,
    };
    // What this run has written; before that, what it was started with, or what the previous run had.
    const { typedSearchAttributes } = workflowInfo();
    const changed = pairsOf(attributes, this.#config).filter(
      ({ key, value }) => typedSearchAttributes.get(key) !== value,
    );
    // Histories of before workflows knew titles have no command where the title alone is new.
    const isTitleAlone = changed.length === 1 && changed[0]?.key === TITLE;
    if (changed.length > 0 && (!isTitleAlone || patched("title"))) upsertSearchAttributes(changed);
    // An earlier run may have shown it.
    if (this.#hidesTitle && typedSearchAttributes.get(TITLE) !== undefined)
      upsertSearchAttributes([{ key: TITLE, value: null }]);
    setCurrentDetails(`${shown}\n\n${describe(conversation, this.#config, revision)}`);
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
