/** Every row of the design document's "State Transition Matrix" and of its additions, named as it stands there. */
import { describe, expect, test } from "vitest";
import { NO_TOKENS } from "../../machine/conversation.ts";
import { outcomeOf } from "../../machine/outcome.ts";
import type { ConversationEvent } from "../../machine/event.ts";
import {
  approve,
  cancel,
  childDone,
  childFailed,
  deny,
  downgrade,
  lost,
  requestFailed,
  response,
  restarted,
  retryDue,
  say,
  summaryOf,
  toolDone,
  trigger,
} from "./events.ts";
import {
  awaitingChildren,
  call,
  cancellingChildren,
  cancellingRequest,
  cancellingTool,
  continuing,
  conversationIn,
  errorState,
  executing,
  exhausted,
  idle,
  requesting,
  RETRY,
  spawnCall,
  usage,
} from "./states.ts";
import {
  expectNothing,
  expectOutcome,
  expectReject,
  inState,
  noticeNames,
  orderKinds,
  orderOf,
  outline,
  SUB_AGENT,
  textOf,
} from "./support.ts";

describe("State Transition Matrix", () => {
  test("Idle | UserMessage | AwaitingLlm | PersistMessage, PersistState", () => {
    const step = expectOutcome(idle, say("m1"));
    expect(step.persists).toBe(true);
    expect(step.messages).toMatchObject([
      {
        id: "m1",
        type: "user",
        actor: "human",
        sequence: 11,
        cycleId: "m1",
        content: [{ type: "text", text: "text of m1" }],
        display: { kind: "direct" },
      },
    ]);
    expect(step.conversation).toMatchObject({ hasMessages: true, sequence: 11 });
    expect(step.conversation.run).toEqual({
      cycleId: "m1",
      requests: 1,
      truncations: 0,
      reminders: 0,
      upgradeDenied: false,
    });
  });

  test("AwaitingLlm | (internal) | LlmRequesting{1} | RequestLlm: in the same transition", () => {
    const step = expectOutcome(idle, say("m1"));
    const { requestId } = orderOf(step, "request_llm");
    expect(orderOf(step, "request_llm").attempt).toBe(1);
    expect(step.state).toEqual({ kind: "llm_requesting", attempt: 1, lost: 0, requestId, retry: null });
    expect(step.notices).toEqual([{ name: "state.changed", data: { state: step.state, cycleId: "m1" } }]);
  });

  test("LlmRequesting | LlmResponse(end=true, no tools) | Idle | PersistMessage, NotifyClient", () => {
    const step = expectOutcome(requesting(), response());
    expect(step.state).toEqual({ kind: "idle" });
    expect(outline(step.messages)).toEqual(["agent", "run_stop completed"]);
    expect(step.messages[0]).toMatchObject({
      actor: "llm_agent",
      cycleId: "root",
      content: [{ type: "text", text: "Hello." }],
      usage: usage(),
      display: { requestId: "request", stopReason: "end_turn", durationMs: 5 },
    });
    expect(step.notices.at(-1)).toEqual({
      name: "state.changed",
      data: { state: { kind: "idle" }, cycleId: "root" },
    });
    expect(step.orders).toEqual([]);
  });

  test("LlmRequesting | LlmResponse(tools) | ToolExecuting | PersistMessage, ExecuteTool(first)", () => {
    const calls = [call("t1"), call("t2", "read"), call("t3", "ls")];
    const step = expectOutcome(requesting(), response(calls));
    expect(outline(step.messages)).toEqual(["agent"]);
    const { operationId } = orderOf(step, "execute_tool");
    expect(step.state).toEqual({
      kind: "tool_executing",
      current: call("t1"),
      operationId,
      startedAt: "2025-01-01T00:00:01.000Z",
      remaining: calls.slice(1),
      completed: [],
    });
    expect(step.orders).toEqual([
      { kind: "execute_tool", operationId, call: call("t1"), mode: "restricted" },
    ]);
  });

  test("LlmRequesting{n<3} | LlmError(retryable) | LlmRequesting{n+1} | ScheduleRetry, NotifyClient", () => {
    for (const attempt of [1, 2]) {
      const step = expectOutcome(requesting({ attempt }), requestFailed());
      const state = inState(step, "llm_requesting");
      expect(state.attempt).toBe(attempt + 1);
      expect(state.retry).toMatchObject({ errorKind: "network", message: "connection reset" });
      expect(orderOf(step, "schedule_retry").requestId).toBe(state.requestId);
      expect(noticeNames(step)).toEqual(["llm.retry_scheduled", "state.changed"]);
      expect(step.messages).toEqual([]);
    }
  });

  test("LlmRequesting{n} | RetryTimeout | LlmRequesting{n} | RequestLlm", () => {
    const step = expectOutcome(requesting({ attempt: 2, retry: RETRY }), retryDue());
    const order = orderOf(step, "request_llm");
    expect(order.attempt).toBe(2);
    expect(order.requestId).not.toBe("request");
    expect(step.state).toEqual({
      kind: "llm_requesting",
      attempt: 2,
      lost: 0,
      requestId: order.requestId,
      retry: null,
    });
  });

  test("LlmRequesting{3} | LlmError(retryable) | Error | NotifyClient", () => {
    const step = expectOutcome(requesting({ attempt: 3 }), requestFailed({ errorKind: "overloaded" }));
    const message = "Failed after 3 attempts: connection reset";
    expect(step.state).toEqual({ kind: "error", message, errorKind: "overloaded" });
    expect(outline(step.messages)).toEqual(["error overloaded", "run_stop error"]);
    expect(textOf(step.messages[0])).toBe(message);
    expect(noticeNames(step)).toEqual(["state.changed"]);
    expect(step.orders).toEqual([]);
  });

  test("LlmRequesting | LlmError(non-retryable) | Error | NotifyClient", () => {
    const refusal = requestFailed({ errorKind: "auth", message: "Invalid key", retryable: false });
    const step = expectOutcome(requesting(), refusal);
    expect(step.state).toEqual({ kind: "error", message: "Invalid key", errorKind: "auth" });
    expect(outline(step.messages)).toEqual(["error auth", "run_stop error"]);
    expect(noticeNames(step)).toEqual(["state.changed"]);
    expect(step.orders).toEqual([]);
  });

  test("LlmRequesting | UserCancel | Cancelling | PersistState", () => {
    const step = expectOutcome(requesting(), cancel());
    expect(step.state).toEqual({
      kind: "cancelling",
      since: "2025-01-01T00:00:01.000Z",
      by: "user",
      stopping: "request",
      requestId: "request",
    });
    expect(step.messages).toEqual([]);
    expect(step.orders).toEqual([{ kind: "abort_request", requestId: "request" }]);
  });

  test('LlmRequesting | UserMessage | REJECT | Return error "agent is busy"', () => {
    expect(expectReject(requesting(), say(), "agent_busy").message).toContain("agent is busy");
  });

  test("ToolExecuting(last) | ToolComplete | AwaitingLlm | PersistMessage", () => {
    const step = expectOutcome(executing(), toolDone("two files"));
    expect(step.results).toEqual([
      {
        toolCallId: "t1",
        name: "bash",
        status: "completed",
        output: [{ type: "text", text: "two files" }],
        durationMs: 7,
      },
    ]);
    expect(inState(step, "llm_requesting").attempt).toBe(1);
    expect(orderKinds(step)).toEqual(["request_llm"]);
    expect(step.conversation.run?.requests).toBe(2);
  });

  test("ToolExecuting | ToolComplete | ToolExecuting(next) | PersistMessage, ExecuteTool(next)", () => {
    const before = executing({
      current: call("t2"),
      remaining: [call("t3", "read"), call("t4", "ls")],
      completed: [{ toolCallId: "t1", status: "completed" }],
    });
    const step = expectOutcome(before, toolDone("no such file", { status: "failed" }));
    expect(outline(step.messages)).toEqual(["tool t2 failed"]);
    expect(inState(step, "tool_executing")).toMatchObject({
      current: call("t3", "read"),
      remaining: [call("t4", "ls")],
      completed: [
        { toolCallId: "t1", status: "completed" },
        { toolCallId: "t2", status: "failed" },
      ],
    });
    expect(orderOf(step, "execute_tool").call).toEqual(call("t3", "read"));
  });

  test("ToolExecuting | UserCancel | Idle | PersistMessage(synthetic), NotifyClient: over Cancelling", () => {
    const stopping = expectOutcome(executing({ remaining: [call("t2")] }), cancel());
    expect(inState(stopping, "cancelling").stopping).toBe("tool");
    const step = expectOutcome(stopping.conversation, toolDone("half"));
    expect(step.state).toEqual({ kind: "idle" });
    expect(outline(step.messages)).toEqual(["tool t1 cancelled", "tool t2 skipped", "run_stop interrupted"]);
    expect(noticeNames(step)).toEqual(["state.changed"]);
  });

  test('ToolExecuting | UserMessage | REJECT | Return error "agent is busy"', () => {
    expect(expectReject(executing(), say(), "agent_busy").message).toContain("agent is busy");
  });

  test("Cancelling | LlmResponse | Idle | NotifyClient", () => {
    const step = expectOutcome(cancellingRequest, response([call("t1")]));
    expect(step.state).toEqual({ kind: "idle" });
    expect(outline(step.messages)).toEqual(["run_stop interrupted"]);
    expect(noticeNames(step)).toEqual(["state.changed"]);
    expect(step.orders).toEqual([]);
  });

  test('Cancelling | UserMessage | REJECT | Return error "cancellation in progress"', () => {
    for (const state of [cancellingRequest, cancellingTool(), cancellingChildren(1)]) {
      const reject = expectReject(state, say(), "cancellation_in_progress");
      expect(reject.message).toContain("Cancellation in progress");
    }
  });

  test("Error | UserMessage | AwaitingLlm | PersistMessage, PersistState", () => {
    const step = expectOutcome(errorState, say("m1"));
    expect(step.persists).toBe(true);
    expect(outline(step.messages)).toEqual(["direct m1"]);
    expect(inState(step, "llm_requesting").attempt).toBe(1);
    expect(orderKinds(step)).toEqual(["request_llm"]);
  });

  test("Idle | SpawnSubAgents | AwaitingSubAgents | SpawnSubAgent×N: as a call of the model", () => {
    const spawn = spawnCall("s1", "look", "count", "write");
    const step = expectOutcome(requesting(), response([spawn, call("t2")]));
    const { pending } = inState(step, "awaiting_sub_agents");
    expect(pending.map(({ task }) => task)).toEqual(["look", "count", "write"]);
    expect(step.orders).toEqual(
      pending.map((subAgent) => ({ kind: "spawn_sub_agent", subAgent, mode: "restricted" })),
    );
    expect(step.state).toMatchObject({
      toolCall: spawn,
      remaining: [call("t2")],
      finished: [],
      all: pending,
    });
    expect(step.notices.filter(({ name }) => name === "subagent.spawned")).toEqual(
      pending.map(({ id, task }) => ({ name: "subagent.spawned", data: { id, task } })),
    );
  });

  test("AwaitingSubAgents | SubAgentResult(last) | AwaitingLlm | PersistMessage", () => {
    const first = expectOutcome(awaitingChildren(2), childDone("c1"));
    expect(first.messages).toEqual([]);
    const step = expectOutcome(first.conversation, childFailed("c2"));
    expect(outline(step.messages)).toEqual(["tool s1 completed"]);
    expect(step.state.kind).toBe("llm_requesting");
    expect(orderKinds(step)).toEqual(["request_llm"]);
  });

  test('AwaitingSubAgents | UserMessage | REJECT | Return error "agent is busy"', () => {
    expect(expectReject(awaitingChildren(1), say(), "agent_busy").message).toContain("agent is busy");
  });
});

describe("State Transition Matrix Additions", () => {
  const full = { usage: usage(90_000) };

  test("LlmRequesting | LlmResponse (>= 90%, ThresholdBased) | AwaitingContinuation | PersistMessage, PersistState, RequestContinuation", () => {
    const step = expectOutcome(requesting(), response([call("t1")], full));
    expect(step.persists).toBe(true);
    expect(outline(step.messages)).toEqual(["agent", "tool t1 skipped"]);
    const { requestId } = orderOf(step, "request_continuation");
    expect(step.state).toEqual({
      kind: "awaiting_continuation",
      rejectedToolCalls: [call("t1")],
      triggerUsage: usage(90_000),
      attempt: 1,
      lost: 0,
      requestId,
      retry: null,
    });
    expect(step.orders).toEqual([
      { kind: "request_continuation", requestId, attempt: 1, rejectedToolCalls: [call("t1")] },
    ]);
  });

  test("LlmRequesting | LlmResponse (>= 90%, Unhandled) | Failed | NotifyParent", () => {
    const step = expectOutcome(requesting(), response([], full), SUB_AGENT);
    const outcome = { error: "Context window exhausted", errorKind: "context_exhausted" };
    expect(step.state).toEqual({ kind: "failed", ...outcome });
    expect(outcomeOf(step.state)).toEqual(outcome);
    expect(step.orders).toEqual([]);
    expect(outline(step.messages)).toEqual(["agent", "error context_exhausted", "run_stop error"]);
  });

  test("AwaitingContinuation | ContinuationResponse | ContextExhausted | PersistMessage, PersistState, NotifyContextExhausted", () => {
    const step = expectOutcome(continuing(), summaryOf("We fixed the test.", { usage: usage(5) }));
    expect(step.persists).toBe(true);
    expect(outline(step.messages)).toEqual(["continuation", "run_stop completed"]);
    expect(step.messages[0]).toMatchObject({
      actor: "llm_agent",
      content: [{ summary: "We fixed the test." }],
    });
    expect(step.state).toEqual({
      kind: "context_exhausted",
      summary: "We fixed the test.",
      source: "model",
      finalUsage: usage(90_005),
    });
    expect(step.notices).toContainEqual({
      name: "context.exhausted",
      data: { summary: "We fixed the test.", source: "model" },
    });
  });

  test("AwaitingContinuation | ContinuationFailed | ContextExhausted | PersistMessage (fallback), PersistState, NotifyContextExhausted", () => {
    const failure = requestFailed({ requestId: "summary", retryable: false });
    const step = expectOutcome(continuing(), failure);
    const summary =
      "Context limit reached. The continuation summary could not be generated. Please start a new conversation.";
    expect(step.persists).toBe(true);
    expect(outline(step.messages)).toEqual(["continuation", "run_stop error"]);
    expect(step.messages[0]).toMatchObject({ actor: "system", content: [{ summary }] });
    expect(step.state).toEqual({
      kind: "context_exhausted",
      summary,
      source: "failed",
      finalUsage: usage(90_000),
    });
    expect(step.notices).toContainEqual({ name: "context.exhausted", data: { summary, source: "failed" } });
  });

  test("AwaitingContinuation | UserCancel | ContextExhausted | PersistMessage (cancelled), PersistState, NotifyContextExhausted", () => {
    const step = expectOutcome(continuing(), cancel());
    const summary = "Continuation cancelled by user.";
    expect(step.persists).toBe(true);
    expect(outline(step.messages)).toEqual(["continuation", "run_stop interrupted"]);
    expect(step.messages[0]).toMatchObject({ actor: "system", content: [{ summary }] });
    expect(step.state).toEqual({
      kind: "context_exhausted",
      summary,
      source: "cancelled",
      finalUsage: usage(90_000),
    });
    expect(step.notices).toContainEqual({
      name: "context.exhausted",
      data: { summary, source: "cancelled" },
    });
    expect(step.orders).toEqual([{ kind: "abort_request", requestId: "summary" }]);
  });

  test('ContextExhausted | UserMessage | REJECT | Return error "context exhausted"', () => {
    expect(expectReject(exhausted, say(), "context_exhausted").message).toContain("context is exhausted");
  });

  const outcomes: readonly ConversationEvent[] = [
    response(),
    requestFailed(),
    lost(),
    retryDue(),
    toolDone(),
    childDone("c1"),
    cancel(),
    restarted("idle"),
    restarted("resume"),
  ];
  test.for(outcomes)("ContextExhausted | * | ContextExhausted | No-op: $kind", (event) => {
    expectNothing(exhausted, event);
  });
  test.for([trigger, downgrade, approve(), deny()])(
    "ContextExhausted | * | ContextExhausted | No-op, refused because it was asked for: $kind",
    (event) => {
      expectReject(exhausted, event, "context_exhausted");
    },
  );

  test("Idle | UserTriggerContinuation | AwaitingContinuation | PersistState, RequestContinuation", () => {
    const before = conversationIn(idle, { lastUsage: usage(80_000) });
    const step = expectOutcome(before, trigger);
    expect(step.persists).toBe(true);
    const { requestId } = orderOf(step, "request_continuation");
    expect(step.orders).toEqual([
      { kind: "request_continuation", requestId, attempt: 1, rejectedToolCalls: [] },
    ]);
    expect(step.state).toEqual({
      kind: "awaiting_continuation",
      rejectedToolCalls: [],
      triggerUsage: usage(80_000),
      attempt: 1,
      lost: 0,
      requestId,
      retry: null,
    });
    expect(step.messages).toEqual([]);
    expect(expectOutcome(conversationIn(idle), trigger).state).toMatchObject({ triggerUsage: NO_TOKENS });
  });
});
