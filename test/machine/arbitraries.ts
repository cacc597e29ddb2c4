/**
 * Owns: arbitraries of any conversation, context and event, reachable or not. They serve the properties that must hold
 * even for values that a bug elsewhere hands to the machine. Not here: sequences that make sense (walks.ts).
 */
import fc from "fast-check";
import type { Context } from "../../machine/context.ts";
import { QUEUE_HOLDS, type Conversation, type State } from "../../machine/conversation.ts";
import type { ConversationEvent, Event } from "../../machine/event.ts";
import type { Json } from "../../machine/message.ts";
import { EVERY_STATE } from "./states.ts";

/** A few ids, so that an event often matches the state, and some odd ones. */
const id = fc.constantFrom("request", "operation", "summary", "u1", "t1", "c1", "", "__proto__", " ", "💥");
const text = fc.constantFrom("", " ", "text", "[command cancelled]", "💥", "\u0000");
const count = fc.constantFrom(0, 1, 2, 89_999, 90_000, 1e6, Number.MAX_SAFE_INTEGER, 1e300, -1, 0.5);
/** Values as a JSON parser returns them. The round trip turns -0 into 0, because JSON.stringify writes both as 0. */
const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as Json);
const errorKind = fc.constantFrom(
  "auth",
  "network",
  "spending_limit",
  "context_exhausted",
  "unknown" as const,
);
const name = fc.constantFrom(
  "bash",
  "patch",
  "",
  "constructor",
  "request_mode_upgrade",
  "spawn_agents",
  "submit_result",
);
const input = fc.oneof(
  json,
  fc.record({ reason: json }),
  fc.record({ result: json, success: json }, { requiredKeys: ["result"] }),
  fc.record({
    tasks: fc.array(fc.record({ task: fc.oneof(text, json), model: json }, { requiredKeys: [] }), {
      maxLength: 18,
    }),
  }),
) as fc.Arbitrary<Json>;

const defect = fc.constantFrom("malformed_json" as const, "truncated" as const, "too_long" as const);
const few = <T>(item: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(item, { maxLength: 3 });
const call = fc.oneof(fc.record({ id, name, input }), fc.record({ id, name, input, defect }));
const tokens = fc.record({
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheCreationTokens: count,
});
const time = fc.constant("2025-01-01T00:00:00.000Z");
const outcome = fc.oneof(
  fc.record({ success: fc.boolean(), result: text }),
  fc.record({ error: text, errorKind, partialResult: text }),
);
const status = fc.constantFrom("completed" as const, "failed" as const, "interrupted" as const);
const round = { remaining: few(call), completed: few(fc.record({ toolCallId: id, status })) };
const children = {
  pending: few(fc.record({ id, task: text, timeoutSeconds: count })),
  finished: few(fc.record({ id, outcome })),
  all: few(fc.record({ id, task: text, timeoutSeconds: count })),
};
const retry = fc.option(fc.record({ at: time, errorKind, message: text }));
const request = { attempt: count, lost: count, requestId: id, retry };
const by = fc.constantFrom("user" as const, "parent" as const, "timeout" as const);
const is = <K extends string>(kind: K): fc.Arbitrary<K> => fc.constant(kind);

const state: fc.Arbitrary<State> = fc.oneof(
  fc.constantFrom(...EVERY_STATE),
  fc.record({ kind: is("llm_requesting"), ...request }),
  fc.record({ kind: is("tool_executing"), current: call, operationId: id, startedAt: time, ...round }),
  fc.record({ kind: is("awaiting_mode_approval"), reason: text, toolCall: call, ...round }),
  fc.record({ kind: is("awaiting_sub_agents"), toolCall: call, ...children, ...round }),
  fc.record({ kind: is("cancelling"), since: time, by, stopping: is("request"), requestId: id }),
  fc.record({
    kind: is("cancelling"),
    since: time,
    by,
    stopping: is("tool"),
    operationId: id,
    current: call,
    ...round,
  }),
  fc.record({
    kind: is("cancelling"),
    since: time,
    by,
    stopping: is("sub_agents"),
    toolCall: call,
    ...children,
    ...round,
  }),
  fc.record({
    kind: is("awaiting_continuation"),
    rejectedToolCalls: few(call),
    triggerUsage: tokens,
    ...request,
  }),
);

const delivery = fc.constantFrom("steer" as const, "followUp" as const);
const mode = fc.constantFrom("restricted" as const, "unrestricted" as const);
const decision = fc.constantFrom("approve" as const, "deny" as const);
const images = few(
  fc.record({ type: is("image"), hash: text, mediaType: text, width: count, height: count }),
);

export const anyConversation: fc.Arbitrary<Conversation> = fc.record({
  state,
  mode,
  queue: few(fc.record({ messageId: id, delivery, text, images, createdAt: time })),
  queueHeld: fc.option(fc.constantFrom(...QUEUE_HOLDS)),
  usage: fc.record({ ...tokensOf(), contextUsed: count, contextWindow: count }),
  lastUsage: tokens,
  warned: fc.boolean(),
  sequence: fc.nat(),
  hasMessages: fc.boolean(),
  run: fc.option(
    fc.record({
      cycleId: id,
      requests: count,
      truncations: count,
      reminders: count,
      upgradeDenied: fc.boolean(),
    }),
  ),
  errorsInARow: fc.nat(3),
  lastDecision: fc.option(fc.record({ toolCallId: id, decision })),
});

function tokensOf() {
  return { inputTokens: count, outputTokens: count, cacheReadTokens: count, cacheCreationTokens: count };
}

const limit = fc.nat(3);
export const anyContext: fc.Arbitrary<Context> = fc.record({
  isSubAgent: fc.boolean(),
  contextWindow: fc.constantFrom(1, 100_000, 1e9),
  tools: fc.subarray(["bash", "patch", "request_mode_upgrade", "spawn_agents", "submit_result"]),
  limits: fc.record({
    requestsPerRun: limit,
    queued: limit,
    attempts: limit,
    losses: limit,
    longestRetryMs: fc.constantFrom(0, 60_000),
    truncations: limit,
    reminders: limit,
    subAgentTimeoutSeconds: count,
  }),
});

const block = fc.oneof(
  fc.record({ type: is("tool_use"), id: fc.oneof(id, json), name: fc.oneof(name, json), input }),
  fc.record({ type: is("tool_use") }),
  fc.record({ type: is("text"), text: fc.oneof(text, json) }),
);
const messageId = id;
const requestId = id;
const diff = fc.record({
  path: text,
  change: fc.constantFrom("created" as const, "modified" as const),
  diff: text,
  addedLines: count,
  removedLines: count,
  truncated: fc.boolean(),
});

const event: fc.Arbitrary<ConversationEvent> = fc.oneof(
  fc.record({
    kind: is("user_message"),
    messageId,
    text,
    images,
    delivery: fc.oneof(delivery, fc.constant("direct" as const)),
  }),
  fc.record({ kind: is("withdraw_message"), messageId }),
  fc.record({
    kind: is("user_cancel"),
    queue: fc.constantFrom("run" as const, "hold" as const, "clear" as const),
    by,
  }),
  fc.constant({ kind: "user_release_queue" as const }),
  fc.constant({ kind: "next_run_due" as const }),
  fc.record({ kind: is("user_decide_upgrade"), decision, toolCallId: fc.option(id) }),
  fc.record({
    kind: is("user_request_downgrade"),
    sandbox: fc.oneof(
      fc.record({ kind: is("available"), abi: count }),
      fc.record({ kind: is("unavailable"), reason: text }),
      fc.record({ kind: is("unknown"), reason: text }),
    ),
  }),
  fc.constant({ kind: "user_trigger_continuation" as const }),
  fc.record({
    kind: is("llm_response"),
    requestId,
    content: few(block),
    stopReason: fc.constantFrom("end_turn", "tool_use", "max_tokens", "pause_turn", "refusal", ""),
    usage: tokens,
    durationMs: count,
    defects: few(fc.record({ call: count, defect })),
    usedToolCallIds: few(id),
  }),
  fc.record({
    kind: is("llm_failed"),
    requestId,
    errorKind,
    message: text,
    retryable: fc.boolean(),
    retryAfterMs: fc.option(count),
  }),
  fc.record({ kind: is("llm_lost"), requestId }),
  fc.record({ kind: is("retry_due"), requestId }),
  fc.record(
    {
      kind: is("tool_completed"),
      operationId: id,
      status,
      output: few(fc.record({ type: is("text"), text })),
      diffs: few(diff),
      durationMs: count,
    },
    { requiredKeys: ["kind", "operationId", "status", "output", "durationMs"] },
  ),
  fc.record({ kind: is("task_given"), messageId, task: text }),
  fc.record({ kind: is("sub_agent_finished"), id, outcome }),
  fc.record({
    kind: is("continued"),
    seed: fc.option(fc.record({ source: fc.constantFrom("summary" as const, "excerpt" as const), text })),
    queue: few(fc.record({ messageId: id, delivery, text, images, createdAt: time })),
  }),
  fc.record({ kind: is("noted"), text }),
  fc.record({ kind: is("restarted"), policy: fc.constantFrom("idle" as const, "resume" as const) }),
);

const stamp = fc.record({
  at: fc.integer({ min: 0, max: 4_102_444_800_000 }),
  seed: fc.uuid({ version: 4 }),
});

export const anyEvent: fc.Arbitrary<Event> = fc
  .tuple(event, stamp)
  .map(([what, when]) => ({ ...what, stamp: when }));
