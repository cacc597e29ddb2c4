/**
 * Owns: a cycle as people read it: the user's messages and AI blocks. An AI block is one text with the tool calls that
 * follow it, grouped (request-cycle model, section 6.2, ResolutionStep).
 * Not here: which messages make a cycle (cycles.ts).
 */
import {
  stringIn,
  type Delivery,
  type Json,
  type Message,
  type ProviderBlock,
  type ToolOutcome,
  type ToolStatus,
} from "./message.ts";

export type Step = UserStep | AiBlock;

type UserStep = { readonly kind: "user"; readonly messageId: string; readonly delivery: Delivery };

export type AiBlock = {
  readonly kind: "ai_block";
  /** null: calls without a text before them. A reasoning that the provider encrypted has an empty text. */
  readonly item: { readonly type: "assistant" | "reasoning"; readonly text: string } | null;
  readonly groups: readonly ToolGroup[];
};

/** Adjacent calls of one kind. */
export type ToolGroup = {
  readonly kind: "read" | "write" | "bash" | "other";
  readonly calls: readonly StepCall[];
};

export type StepCall = {
  readonly toolCallId: string;
  readonly name: string;
  readonly input: Json;
  /** `status` and `durationMs` are null until the call has its result. Milliseconds; 0 for a call that never ran. */
  readonly status: ToolStatus | null;
  readonly durationMs: number | null;
};

/**
 * The steps of one cycle. Only messages of the user and of the model make steps; results are attached to their calls.
 * All other messages make no step, and do not separate calls that are adjacent without them.
 */
export function stepsOf(messages: readonly Message[]): Step[] {
  const outcomes = outcomesOf(messages);
  const steps = new StepList();
  for (const message of messages) {
    if (message.type === "user") steps.addUser(message.id, message.display.kind);
    if (message.type !== "agent") continue;
    for (const block of message.content) addBlock(steps, block, outcomes);
  }
  return steps.done;
}

type Outcomes = ReadonlyMap<string, ToolOutcome>;

/** By tool_use id. */
function outcomesOf(messages: readonly Message[]): Outcomes {
  const outcomes = new Map<string, ToolOutcome>();
  for (const { type, content } of messages) {
    if (type === "tool") outcomes.set(content[0].toolCallId, content[0]);
  }
  return outcomes;
}

function addBlock(steps: StepList, block: ProviderBlock, outcomes: Outcomes): void {
  switch (block.type) {
    case "text":
      return steps.addItem("assistant", stringIn(block, "text"));
    case "thinking":
      return steps.addItem("reasoning", stringIn(block, "thinking"));
    case "redacted_thinking":
      return steps.addItem("reasoning", "");
    case "tool_use":
      return steps.addCall(callIn(block, outcomes));
    default:
      return;
  }
}

function callIn(block: ProviderBlock, outcomes: Outcomes): StepCall {
  const toolCallId = stringIn(block, "id");
  const outcome = outcomes.get(toolCallId);
  return {
    toolCallId,
    name: stringIn(block, "name"),
    input: block["input"] ?? null,
    status: outcome?.status ?? null,
    durationMs: outcome?.durationMs ?? null,
  };
}

type OpenGroup = ToolGroup & { readonly calls: StepCall[] };

/** Steps under construction. */
class StepList {
  readonly done: Step[] = [];
  /** The groups of the last AI block, if no user step came after it. */
  #groups: OpenGroup[] | null = null;

  addUser(messageId: string, delivery: Delivery): void {
    this.done.push({ kind: "user", messageId, delivery });
    this.#groups = null;
  }

  addItem(type: "assistant" | "reasoning", text: string): void {
    this.#open({ type, text });
  }

  addCall(call: StepCall): void {
    const groups = this.#groups ?? this.#open(null);
    const kind = groupOf(call.name);
    const last = groups.at(-1);
    if (last?.kind === kind) last.calls.push(call);
    else groups.push({ kind, calls: [call] });
  }

  #open(item: AiBlock["item"]): OpenGroup[] {
    const groups: OpenGroup[] = [];
    this.done.push({ kind: "ai_block", item, groups });
    this.#groups = groups;
    return groups;
  }
}

/** The group that a tool belongs to. */
export function groupOf(tool: string): ToolGroup["kind"] {
  switch (tool) {
    case "ls":
    case "read":
    case "grep":
    case "find":
      return "read";
    case "write":
    case "edit":
      return "write";
    case "bash":
      return "bash";
    default:
      return "other";
  }
}
