/** Owns: arbitrary values of a conversation, every kind of state among them. */
import fc from "fast-check";
import {
  QUEUE_HOLDS,
  type Conversation,
  type QueuedMessage,
  type State,
  type SubAgentOutcome,
  type ToolCall,
} from "../../machine/conversation.ts";
import type { ErrorKind, ImageBlock, Json, TokenUsage, ToolStatus } from "../../machine/message.ts";

/** Text that Postgres can hold. Not here: other text (json.test.ts). */
const text = fc.string({ unit: "grapheme" }).filter((value) => !value.includes("\0"));
const id = fc.uuid();
const time = fc
  .date({ min: new Date(0), max: new Date("9999-12-31T23:59:59.999Z"), noInvalidDate: true })
  .map((date) => date.toISOString());
const count = fc.nat();
// JSON knows no negative zero.
const input = fc
  .jsonValue({ stringUnit: "grapheme" })
  .map((value) => JSON.parse(JSON.stringify(value).replaceAll("\\u0000", "")) as Json);

const usage: fc.Arbitrary<TokenUsage> = fc.record({
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheCreationTokens: count,
});
const errorKind = fc.constantFrom<ErrorKind>("auth", "rate_limit", "network", "runaway", "unknown");
const call: fc.Arbitrary<ToolCall> = fc.record({ id, name: text, input });
const status = fc.constantFrom<ToolStatus>("completed", "failed", "cancelled", "skipped", "interrupted");
const round = fc.record({
  remaining: fc.array(call, { maxLength: 3 }),
  completed: fc.array(fc.record({ toolCallId: id, status }), { maxLength: 3 }),
});
const retry = fc.option(fc.record({ at: time, errorKind, message: text }));
const outcome: fc.Arbitrary<SubAgentOutcome> = fc.oneof(
  fc.record({ success: fc.boolean(), result: text }),
  fc.record({ error: text, errorKind, partialResult: text }, { requiredKeys: ["error", "errorKind"] }),
);
const task = fc.record(
  { id, task: text, model: text, timeoutSeconds: count },
  { requiredKeys: ["id", "task", "timeoutSeconds"] },
);
const children = fc.record({
  pending: fc.array(task, { maxLength: 3 }),
  finished: fc.array(fc.record({ id, outcome }), { maxLength: 3 }),
  all: fc.array(task, { maxLength: 3 }),
});
const kind = <K extends State["kind"]>(name: K) => fc.constant(name);
const cancelling = {
  kind: kind("cancelling"),
  since: time,
  by: fc.constantFrom("user" as const, "parent" as const, "timeout" as const),
};

const state: fc.Arbitrary<State> = fc.oneof(
  fc.record({ kind: kind("idle") }),
  fc.record({ kind: kind("awaiting_llm") }),
  fc.record({ kind: kind("llm_requesting"), attempt: count, lost: count, requestId: id, retry }),
  fc
    .tuple(
      fc.record({ kind: kind("tool_executing"), current: call, operationId: id, startedAt: time }),
      round,
    )
    .map(([a, b]) => ({ ...a, ...b })),
  fc
    .tuple(fc.record({ kind: kind("awaiting_mode_approval"), reason: text, toolCall: call }), round)
    .map(([a, b]) => ({ ...a, ...b })),
  fc
    .tuple(fc.record({ kind: kind("awaiting_sub_agents"), toolCall: call }), children, round)
    .map(([a, b, c]) => ({ ...a, ...b, ...c })),
  fc.record({ ...cancelling, stopping: fc.constant("request" as const), requestId: id }),
  fc
    .tuple(
      fc.record({ ...cancelling, stopping: fc.constant("tool" as const), operationId: id, current: call }),
      round,
    )
    .map(([a, b]) => ({ ...a, ...b })),
  fc
    .tuple(
      fc.record({ ...cancelling, stopping: fc.constant("sub_agents" as const), toolCall: call }),
      children,
      round,
    )
    .map(([a, b, c]) => ({ ...a, ...b, ...c })),
  fc.record({ kind: kind("error"), message: text, errorKind }),
  fc.record({
    kind: kind("awaiting_continuation"),
    rejectedToolCalls: fc.array(call, { maxLength: 2 }),
    triggerUsage: usage,
    attempt: count,
    lost: count,
    requestId: id,
    retry,
  }),
  fc.record({
    kind: kind("context_exhausted"),
    summary: text,
    source: fc.constantFrom("model", "failed", "cancelled" as const),
    finalUsage: usage,
  }),
  fc.record({ kind: kind("completed"), result: text, success: fc.boolean() }),
  fc.record(
    { kind: kind("failed"), error: text, errorKind, partialResult: text },
    { requiredKeys: ["kind", "error", "errorKind"] },
  ),
);

const image: fc.Arbitrary<ImageBlock> = fc.record({
  type: fc.constant("image" as const),
  hash: fc.stringMatching(/^[0-9a-f]{64}$/),
  mediaType: fc.constant("image/png"),
  width: count,
  height: count,
});

const queue: fc.Arbitrary<QueuedMessage[]> = fc.uniqueArray(
  fc.record({
    messageId: id,
    delivery: fc.constantFrom("steer" as const, "followUp" as const),
    text,
    images: fc.array(image, { maxLength: 2 }),
    createdAt: time,
  }),
  { maxLength: 4, selector: (message) => message.messageId },
);

export const conversation: fc.Arbitrary<Conversation> = fc.record({
  state,
  mode: fc.constantFrom("restricted" as const, "unrestricted" as const),
  queue,
  queueHeld: fc.option(fc.constantFrom(...QUEUE_HOLDS)),
  usage: fc
    .tuple(usage, count, fc.integer({ min: 1 }))
    .map(([sums, contextUsed, contextWindow]) => ({ ...sums, contextUsed, contextWindow })),
  lastUsage: usage,
  warned: fc.boolean(),
  sequence: count,
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
  errorsInARow: count,
  lastDecision: fc.option(
    fc.record({ toolCallId: id, decision: fc.constantFrom("approve" as const, "deny" as const) }),
  ),
});
