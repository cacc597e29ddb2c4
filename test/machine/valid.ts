/**
 * Owns: the assertions that hold for every conversation and every transition. Each throws at the first violation.
 * Comparisons are plain, because the property tests call them for every step.
 */
import assert from "node:assert/strict";
import type { Context } from "../../machine/context.ts";
import type { Children, Conversation, Round, State, ToolCall } from "../../machine/conversation.ts";
import type { Block, Message } from "../../machine/message.ts";
import type { Step } from "./support.ts";

/** Makes a value throw when it is written to. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}

const RESTING: readonly State["kind"][] = ["idle", "error", "context_exhausted", "completed", "failed"];
const ONLY_ROOT: readonly State["kind"][] = [
  "error",
  "awaiting_mode_approval",
  "awaiting_sub_agents",
  "awaiting_continuation",
  "context_exhausted",
];
const ONLY_SUB_AGENT: readonly State["kind"][] = ["completed", "failed"];

/** Checks a conversation between two transitions. */
export function assertValid(conversation: Conversation, context: Context): void {
  const { state, queue, run, sequence, queueHeld } = conversation;
  const { kind } = state;
  assert.notEqual(kind, "awaiting_llm", "an internal step is never left in a conversation");
  assert.ok(!(context.isSubAgent ? ONLY_ROOT : ONLY_SUB_AGENT).includes(kind), `${kind} is not its state`);
  if (RESTING.includes(kind)) assert.equal(run, null, `${kind} has no run`);
  else if (kind !== "awaiting_continuation") assert.notEqual(run, null, `${kind} has a run`);
  assert.ok(Number.isInteger(sequence) && sequence >= 0, "the sequence counts messages");
  assert.ok(queue.length <= context.limits.queued, "the queue is bounded");
  assertUnique(queue.map((message) => message.messageId));
  if (RESTING.includes(kind) && kind !== "context_exhausted")
    assert.ok(queue.every(({ delivery }) => delivery === "followUp"));
  if (queue.length === 0) assert.equal(queueHeld, null, "an empty queue is not held");
  else if (kind === "context_exhausted") assert.equal(queueHeld, "context_exhausted");
  else assert.notEqual(queueHeld, "context_exhausted");
  if (context.isSubAgent) assert.equal(queue.length, 0);
  if (kind === "llm_requesting" || kind === "awaiting_continuation") {
    assert.ok(state.attempt >= 1 && state.attempt <= context.limits.attempts, "the attempt is in range");
    assert.notEqual(state.requestId, "");
  }
  assertState(state);
}

function assertState(state: State): void {
  switch (state.kind) {
    case "tool_executing":
      return assertRound(state.current, state);
    case "awaiting_mode_approval":
      return assertRound(state.toolCall, state);
    case "awaiting_sub_agents":
      assertChildren(state);
      return assertRound(state.toolCall, state);
    case "cancelling":
      if (state.stopping === "tool") assertRound(state.current, state);
      if (state.stopping !== "sub_agents") return;
      assertChildren(state);
      return assertRound(state.toolCall, state);
    case "idle":
    case "awaiting_llm":
    case "llm_requesting":
    case "error":
    case "awaiting_continuation":
    case "context_exhausted":
    case "completed":
    case "failed":
      return;
  }
}

function assertRound(current: ToolCall, { remaining, completed }: Round): void {
  const after = remaining.map(({ id }) => id);
  assertUnique([current.id, ...after, ...completed.map(({ toolCallId }) => toolCallId)]);
}

function assertChildren({ pending, finished, all }: Children): void {
  assert.ok(pending.length > 0, "there is somebody to wait for");
  const ids = [...pending, ...finished].map(({ id }) => id);
  assertUnique(ids);
  assert.deepEqual(ids.sort(), all.map(({ id }) => id).sort());
}

function assertUnique(ids: readonly string[]): void {
  assert.equal(new Set(ids).size, ids.length, `an id twice in ${ids.join(", ")}`);
}

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/u;

/** Checks a message as it is stored, except its place among the others. */
export function assertMessage(message: Message): void {
  const { type, id } = message;
  const actor: string = message.actor;
  if (type !== "user") assert.match(id, UUID_V7);
  switch (type) {
    case "user":
      assert.ok(actor === "human" || actor === "llm_agent");
      return assertBlocks(message.content);
    case "agent":
      return assert.equal(actor, "llm_agent");
    case "tool":
      assert.equal(actor, "system");
      return assertBlocks(message.content[0].output);
    case "system":
    case "note":
      assert.equal(actor, "system");
      return assertBlocks(message.content);
    case "continuation":
      return assert.ok(actor === "llm_agent" || actor === "system");
    case "error":
    case "run_stop":
      return assert.equal(actor, "system");
  }
}

function assertBlocks(blocks: readonly Block[]): void {
  for (const block of blocks) {
    if (block.type === "text") assert.equal(typeof block.text, "string");
    else assert.equal<string>(block.type, "image");
  }
}

/** Checks that each change is persisted and announced, and that nothing is done without a change. */
export function assertChange(
  before: Conversation,
  { conversation, persists, messages, notices: told, orders }: Step,
): void {
  for (const message of messages) assertMessage(message);
  assert.equal(persists, conversation !== before, "a change is persisted");
  if (!persists) assert.deepEqual([messages, told, orders], [[], [], []], "nothing changes, nothing is done");
  assert.equal(
    told.some((notice) => notice.name === "state.changed"),
    conversation.state !== before.state,
  );
  assert.equal(
    told.some((notice) => notice.name === "queue.changed"),
    conversation.queue !== before.queue || conversation.queueHeld !== before.queueHeld,
  );
  assert.equal(
    told.some((notice) => notice.name === "usage.changed"),
    conversation.usage !== before.usage,
  );
  assert.equal(
    told.some((notice) => notice.name === "mode.changed"),
    conversation.mode !== before.mode,
  );
  const state = told.findLast((notice) => notice.name === "state.changed");
  if (state !== undefined) assert.equal(told.at(-1), state, "the state is told last");
}
