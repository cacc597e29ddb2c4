/**
 * Owns: model-based event sequences. A walk is a setting and a list of numbers. Each number becomes an event for the
 * state that the walk has reached. About half of them are right outcomes; the rest are stale, repeated or out of place.
 */
import fc from "fast-check";
import { DEFAULT_LIMITS, type Context } from "../../machine/context.ts";
import type { Conversation, State, SubAgentOutcome, ToolCall } from "../../machine/conversation.ts";
import type { ConversationEvent } from "../../machine/event.ts";
import type { Delivery, ErrorKind, Json, ProviderBlock } from "../../machine/message.ts";
import { isNextRunDue } from "../../machine/queue.ts";
import type { RejectionCode } from "../../machine/rejection.ts";
import { cancel, downgrade, downgradeOn, restarted, say, trigger, withdraw } from "./events.ts";
import { History } from "./history.ts";
import { usage } from "./states.ts";
import { contextOf, type Step } from "./support.ts";

export type Walk = {
  readonly isSubAgent: boolean;
  readonly sandbox: boolean;
  readonly choices: readonly number[];
};

/** True in mutation tests. They make few walks, and always the same ones, so that a score can be repeated. */
export const MUTATING = process.env["MUTATION"] === "true";
const LENGTH = 70;

export const settings = MUTATING ? { numRuns: 30, seed: 1 } : { numRuns: 200 };

export const walks: fc.Arbitrary<Walk> = fc.record({
  isSubAgent: fc.nat(3).map((n) => n === 0),
  sandbox: fc.nat(3).map((n) => n > 0),
  choices: fc.array(fc.nat(0x7fff_ffff), { minLength: 1, maxLength: LENGTH, size: "max" }),
});

export type Seen = {
  readonly walk: Walk;
  readonly history: History;
  readonly before: Conversation;
  readonly event: ConversationEvent;
  readonly answer: Step | RejectionCode;
};

export function contextFor(walk: Walk): Context {
  const limits = { ...DEFAULT_LIMITS, requestsPerRun: 15, queued: 3 };
  return contextOf({ isSubAgent: walk.isSubAgent, limits });
}

const TERMINAL: readonly State["kind"][] = ["context_exhausted", "completed", "failed"];

/** Performs a walk, with at most five events after a terminal state. `look` gets every event with its answer. */
export function go(walk: Walk, look: (seen: Seen) => void): History {
  const context = contextFor(walk);
  const history = new History(context, walk.sandbox ? "restricted" : "unrestricted");
  if (walk.isSubAgent) history.give({ kind: "task_given", messageId: "task", task: "do it" });
  let afterwards = 0;
  for (const [index, choice] of walk.choices.entries()) {
    const event = asked(walk, eventFor(history, new Chance(choice), index));
    const before = history.conversation;
    if (TERMINAL.includes(before.state.kind)) afterwards += 1;
    if (afterwards > 5) break;
    look({ walk, history, before, event, answer: history.offer(event) });
    // As the workflow does.
    const rest = history.conversation;
    if (isNextRunDue(rest)) {
      const due: ConversationEvent = { kind: "next_run_due" };
      look({ walk, history, before: rest, event: due, answer: history.offer(due) });
    }
  }
  return history;
}

/** A small generator of pseudo-random numbers (mulberry32): the same choice gives the same event. */
export class Chance {
  #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  next(): number {
    this.#seed = (this.#seed + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(this.#seed ^ (this.#seed >>> 15), 1 | this.#seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  }

  in(probability: number): boolean {
    return this.next() < probability;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** One of them; the last where the list is empty. */
  pick<T>(first: T, ...rest: readonly T[]): T {
    return rest[this.below(rest.length + 1) - 1] ?? first;
  }
}

/** The host answers a downgrade as it is in this walk. */
const asked = (walk: Walk, event: ConversationEvent): ConversationEvent =>
  event.kind === "user_request_downgrade" && !walk.sandbox
    ? downgradeOn({ kind: "unavailable", reason: "No Landlock." })
    : event;

function eventFor(history: History, chance: Chance, index: number): ConversationEvent {
  const suits = chance.in(0.55) ? suitable(history, chance, index) : null;
  return suits ?? anyKind(history, chance, index);
}

/** An event that the state waits for; null if it waits for none. */
export function suitable(history: History, chance: Chance, index: number): ConversationEvent | null {
  const { state } = history;
  switch (state.kind) {
    case "idle":
    case "error":
      return message(`m${index}`, chance);
    case "llm_requesting":
    case "awaiting_continuation": {
      const { requestId } = state;
      return state.retry === null ? requestEnded(history, chance, requestId, index) : due(requestId);
    }
    case "tool_executing":
      return toolEnded(chance, state.operationId);
    case "awaiting_mode_approval":
      return decision(chance, state.toolCall.id);
    case "awaiting_sub_agents":
      return childEnded(chance, chance.pick("c?", ...state.pending.map(({ id }) => id)));
    case "cancelling":
      return stopped(history, state, chance, index);
    case "awaiting_llm":
    case "context_exhausted":
    case "completed":
    case "failed":
      return null;
  }
}

function stopped(
  history: History,
  state: Extract<State, { kind: "cancelling" }>,
  chance: Chance,
  index: number,
): ConversationEvent {
  switch (state.stopping) {
    case "request":
      return requestEnded(history, chance, state.requestId, index);
    case "tool":
      return toolEnded(chance, state.operationId);
    case "sub_agents":
      return childEnded(chance, chance.pick("c?", ...state.pending.map(({ id }) => id)));
  }
}

/** An event of any kind, with a current, a past or an unknown id. */
function anyKind(history: History, chance: Chance, index: number): ConversationEvent {
  const generation = chance.pick("nothing", ...history.generations);
  const { queue, state } = history.conversation;
  const waiting = queue.map(({ messageId }) => messageId);
  const callId = state.kind === "awaiting_mode_approval" ? state.toolCall.id : "t0";
  const kinds: readonly (() => ConversationEvent)[] = [
    () => message(chance.pick(`m${index}`, ...waiting), chance),
    () => message(`m${index}`, chance),
    () => withdraw(chance.pick("m?", ...waiting)),
    () =>
      cancel({ queue: chance.pick("run", "hold", "clear"), by: chance.pick("user", "parent", "timeout") }),
    () => decision(chance, chance.pick(callId, ...history.callIds)),
    () => downgrade,
    () => (chance.in(0.2) ? trigger : downgrade),
    () => requestEnded(history, chance, generation, index),
    () => due(generation),
    () => toolEnded(chance, generation),
    () => childEnded(chance, chance.pick("c?", generation)),
    () => ({ kind: "task_given", messageId: `task${index}`, task: "again" }),
    () => ({ kind: "user_release_queue" }),
    () => ({ kind: "next_run_due" }),
    () => ({ kind: "continued", seed: { source: "summary", text: "seed" }, queue: [] }),
    () => ({ kind: "noted", text: "note" }),
    () => restarted(chance.pick("idle", "resume")),
  ];
  return chance.pick(kinds[0] ?? (() => downgrade), ...kinds)();
}

function message(messageId: string, chance: Chance): ConversationEvent {
  const delivery = chance.pick<Delivery>("direct", "steer", "followUp");
  return say(messageId, { delivery, text: chance.pick("text", "") });
}

const due = (requestId: string): ConversationEvent => ({ kind: "retry_due", requestId });

function decision(chance: Chance, pending: string): ConversationEvent {
  const toolCallId = chance.pick<string | null>(pending, pending, pending, null, "t?");
  return { kind: "user_decide_upgrade", decision: chance.pick("approve", "deny"), toolCallId };
}

function childEnded(chance: Chance, id: string): ConversationEvent {
  const outcome = chance.pick<SubAgentOutcome>(
    { success: true, result: "found" },
    { success: false, result: "" },
    { error: "broken", errorKind: "network", partialResult: "half" },
  );
  return { kind: "sub_agent_finished", id, outcome };
}

function toolEnded(chance: Chance, operationId: string): ConversationEvent {
  const text = chance.pick("output", "", "[command cancelled]", "Skipped due to cancellation");
  return {
    kind: "tool_completed",
    operationId,
    status: chance.pick("completed", "completed", "failed", "interrupted"),
    output: [{ type: "text", text }],
    durationMs: chance.below(1_000),
  };
}

function requestEnded(history: History, chance: Chance, requestId: string, index: number): ConversationEvent {
  const kind = chance.in(0.75) ? "llm_response" : chance.pick("llm_failed", "llm_lost");
  if (kind === "llm_lost") return { kind, requestId };
  if (kind === "llm_failed") {
    const errorKind = chance.in(0.9)
      ? chance.pick<ErrorKind>("network", "rate_limit", "auth")
      : "context_exhausted";
    const retryAfterMs = chance.pick(null, null, 5_000, 90_000);
    return { kind, requestId, errorKind, message: "broken", retryable: chance.in(0.7), retryAfterMs };
  }
  const calls = Array.from({ length: chance.pick(0, 1, 2, 4) }, (_, n) =>
    anyCall(history, chance, `${index}_${n}`),
  );
  const blocks = calls.map((call): ProviderBlock => ({ type: "tool_use", ...call }));
  return {
    kind,
    requestId,
    content: chance.in(0.8) ? [{ type: "text", text: "Hello." }, ...blocks] : blocks,
    stopReason: chance.in(0.7) ? "end_turn" : chance.pick("tool_use", "pause_turn", "max_tokens", "refusal"),
    usage: usage(chance.in(0.9) ? 100 : chance.pick(80_000, 89_999, 89_999, 90_000)),
    durationMs: 1,
    defects: chance.in(0.1)
      ? [{ call: chance.below(4), defect: chance.pick("truncated", "malformed_json") }]
      : [],
    usedToolCallIds: calls.map(({ id }) => id).filter((id) => history.callIds.has(id)),
  };
}

function anyCall(history: History, chance: Chance, suffix: string): ToolCall {
  const id = chance.in(0.85) ? `t${suffix}` : chance.pick("", "a b", ...history.callIds);
  const name = chance.pick(
    "bash",
    "bash",
    "patch",
    "fly",
    "request_mode_upgrade",
    "spawn_agents",
    "submit_result",
  );
  return { id, name, input: chance.in(0.15) ? oddInput(chance) : inputOf(name, chance) };
}

function inputOf(name: string, chance: Chance): Json {
  if (name === "request_mode_upgrade") return { reason: "to write" };
  if (name === "submit_result") return { result: "done", success: chance.in(0.5) };
  if (name !== "spawn_agents") return { command: "ls" };
  return { tasks: Array.from({ length: chance.pick(1, 2, 3, 10) }, (_, n) => ({ task: `task ${n}` })) };
}

const oddInput = (chance: Chance): Json =>
  chance.pick<Json>(null, [], "text", 7, {}, { reason: 1 }, { tasks: [{}] }, { result: [] });
