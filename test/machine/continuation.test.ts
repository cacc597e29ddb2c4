/** The end of a conversation whose context is full, automatic and by hand (REQ-BED-019 to 021, 023). */
import { describe, expect, test } from "vitest";
import {
  childDone,
  followUp,
  lost,
  requestFailed,
  response,
  retryDue,
  say,
  steer,
  summaryOf,
  trigger,
} from "./events.ts";
import { History } from "./history.ts";
import {
  approving,
  awaitingChildren,
  awaitingLlm,
  call,
  cancellingChildren,
  cancellingRequest,
  cancellingTool,
  completed,
  continuing,
  conversationIn,
  errorState,
  executing,
  exhausted,
  failedState,
  idle,
  requesting,
  RETRY,
  usage,
} from "./states.ts";
import {
  expectNothing,
  expectOutcome,
  expectReject,
  inState,
  noticeNames,
  orderOf,
  outline,
  textOf,
} from "./support.ts";

const failure = requestFailed({ requestId: "summary" });

describe("the threshold", () => {
  const tokens = (field: string, count: number) => ({ usage: { ...usage(0), [field]: count } });
  const fields = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens"];

  test.for(fields)("at 89.999 % the turn goes on, at 90.000 % the continuation starts: %s", (field) => {
    const below = expectOutcome(requesting(), response([call("t1")], tokens(field, 89_999)));
    expect(below.state.kind).toBe("tool_executing");
    const reached = expectOutcome(requesting(), response([call("t1")], tokens(field, 90_000)));
    expect(reached.state.kind).toBe("awaiting_continuation");
  });

  test("all four kinds of tokens count together", () => {
    const quarter = { inputTokens: 22_500, outputTokens: 22_500, cacheReadTokens: 22_500 };
    const reached = { usage: { ...quarter, cacheCreationTokens: 22_500 } };
    expect(expectOutcome(requesting(), response([], reached)).state.kind).toBe("awaiting_continuation");
  });
});

describe("the request for the summary", () => {
  test("is tried again like any other, and names the calls again", () => {
    const before = continuing({ rejectedToolCalls: [call("t1")] });
    const waiting = expectOutcome(before, failure);
    const state = inState(waiting, "awaiting_continuation");
    expect(state).toMatchObject({ attempt: 2, retry: { errorKind: "network" }, triggerUsage: usage(90_000) });
    expect(orderOf(waiting, "schedule_retry").requestId).toBe(state.requestId);
    const again = expectOutcome(waiting.conversation, retryDue(state.requestId));
    const order = orderOf(again, "request_continuation");
    expect(order).toMatchObject({ attempt: 2, rejectedToolCalls: [call("t1")] });
    expect(again.state).toEqual({ ...state, retry: null, requestId: order.requestId });
  });

  test("fails for good at its third attempt, or at an error that no retry mends", () => {
    for (const last of [
      expectOutcome(continuing({ attempt: 3 }), failure),
      expectOutcome(continuing(), requestFailed({ requestId: "summary", retryable: false })),
      expectOutcome(continuing(), requestFailed({ requestId: "summary", retryAfterMs: 60_001 })),
      expectOutcome(
        continuing(),
        requestFailed({ requestId: "summary", retryable: false, errorKind: "context_exhausted" }),
      ),
    ]) {
      expect(inState(last, "context_exhausted").summary).toMatch(/^Context limit reached\./u);
      expect(last.orders).toEqual([]);
    }
  });

  test("is asked again as the same attempt when it was lost", () => {
    const step = expectOutcome(continuing({ attempt: 2 }), lost("summary"));
    expect(orderOf(step, "request_continuation").attempt).toBe(2);
    expect(inState(step, "awaiting_continuation").requestId).not.toBe("summary");
  });

  test("ignores every outcome while it waits for a retry", () => {
    const waiting = continuing({ retry: RETRY });
    for (const event of [summaryOf("late"), failure, lost("summary")]) expectNothing(waiting, event);
    expectNothing(continuing(), childDone("c1"));
  });
});

describe("the summary", () => {
  test("is the text of the response; other blocks are left out", () => {
    const content = [
      { type: "thinking", thinking: "hm" },
      { type: "text", text: "  First. " },
      { type: "text", text: 7 },
      { type: "text", text: "Second.\n" },
    ];
    const step = expectOutcome(continuing(), summaryOf("", { content }));
    expect(inState(step, "context_exhausted").summary).toBe("First. \n\nSecond.");
  });

  test.for(["", " \n\t"])("is replaced by the fallback when it is blank: %j", (blank) => {
    const step = expectOutcome(continuing(), summaryOf(blank));
    expect(inState(step, "context_exhausted").summary).toMatch(/^Context limit reached\./u);
    expect(outline(step.messages)).toEqual(["continuation", "run_stop error"]);
  });

  test("adds the tokens of its request to the usage", () => {
    const step = expectOutcome(continuing(), summaryOf("All said.", { usage: usage(91_000) }));
    expect(step.conversation.usage).toMatchObject({ inputTokens: 91_000, contextUsed: 91_000 });
    expect(inState(step, "context_exhausted").finalUsage).toEqual(usage(181_000));
    expect(noticeNames(step)).toEqual([
      "context.warned",
      "context.exhausted",
      "usage.changed",
      "state.changed",
    ]);
  });

  test("is followed only by the run_stop; what waits stays in the queue, steers too, never delivered, withdrawable", () => {
    const history = new History();
    history.give(say());
    history.give(steer("m2"));
    history.give(followUp("m3"));
    history.respond([call("t1")], { usage: usage(95_000) });
    history.respond([], { content: [{ type: "text", text: "All said." }] });
    expect(history.outline).toEqual([
      "direct m1",
      "agent",
      "tool t1 skipped",
      "continuation",
      "run_stop completed",
    ]);
    expect(history.conversation.queue).toMatchObject([
      { messageId: "m2", delivery: "steer" },
      { messageId: "m3", delivery: "followUp" },
    ]);
    expect(history.conversation.queueHeld).toBe("context_exhausted");
    expect(history.offer({ kind: "user_release_queue" })).toBe("context_exhausted");
    expect(history.messages.every(({ cycleId }) => cycleId === "m1")).toBe(true);
    for (const messageId of ["m2", "m3"]) history.give({ kind: "withdraw_message", messageId });
    expect(history.conversation).toMatchObject({ queue: [], queueHeld: null });
  });
});

describe("a continuation by hand", () => {
  test.for([idle, errorState])("starts from $kind, at any usage", (state) => {
    // Of a window of 100,000: nothing, below the warning and at it, below the threshold, at it and beyond.
    for (const tokens of [0, 79_999, 80_000, 89_999, 90_000, 120_000]) {
      const { usage: counted } = conversationIn(state);
      const lastUsage = usage(tokens);
      const before = { usage: { ...counted, contextUsed: tokens }, lastUsage, warned: tokens >= 80_000 };
      const step = expectOutcome(conversationIn(state, before), trigger);
      expect(inState(step, "awaiting_continuation")).toMatchObject({ attempt: 1, triggerUsage: lastUsage });
      expect(orderOf(step, "request_continuation").rejectedToolCalls).toEqual([]);
    }
  });

  test("A manual continuation from idle stores no run_stop", () => {
    const history = new History();
    history.give(say());
    history.respond();
    const asked = history.give(trigger);
    expect(asked.notices.at(-1)).toMatchObject({ name: "state.changed", data: { cycleId: null } });
    const step = history.respond([], { content: [{ type: "text", text: "All said." }] });
    expect(outline(step.messages)).toEqual(["continuation"]);
    expect(step.messages[0]?.cycleId).toBeNull();
    expect(textOf(step.messages[0])).toBe("All said.");
  });

  test("is refused before the first message", () => {
    const reject = expectReject(
      conversationIn(idle, { hasMessages: false }),
      trigger,
      "nothing_to_summarise",
    );
    expect(reject.message).toContain("nothing to summarise");
  });

  test("while the summary is written, everything else is asked to wait, and not to cancel", () => {
    for (const event of [trigger, say("m1"), steer("m2"), followUp("m3")]) {
      const { message } = expectReject(continuing(), event, "agent_busy");
      expect(message).toMatch(/takes one request. Wait for it/);
    }
  });

  const busy = [awaitingLlm, requesting(), executing(), approving(), awaitingChildren(1), continuing()];
  test.for([...busy, completed, failedState])("is refused while the agent works: $kind", (state) => {
    expectReject(state, trigger, "agent_busy");
  });

  test.for([cancellingRequest, cancellingTool(), cancellingChildren(1)])(
    "is refused while the agent is being stopped: $stopping",
    (state) => {
      expectReject(state, trigger, "cancellation_in_progress");
    },
  );

  test("is refused in context_exhausted", () => {
    expectReject(exhausted, trigger, "context_exhausted");
  });
});
