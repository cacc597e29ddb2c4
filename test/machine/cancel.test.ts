/** Every row of the table "Cancel", named as it stands there, and the sentences below it. */
import { describe, expect, test } from "vitest";
import type { CancelledBy, State } from "../../machine/conversation.ts";
import { outcomeOf } from "../../machine/outcome.ts";
import {
  cancel,
  childDone,
  childFailed,
  followUp,
  lost,
  requestFailed,
  response,
  restarted,
  retryDue,
  say,
  steer,
  toolDone,
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
  spawnCall,
  upgradeCall,
  usage,
} from "./states.ts";
import {
  expectNothing,
  expectOutcome,
  expectReject,
  inState,
  outline,
  SUB_AGENT,
  textOf,
} from "./support.ts";

const done = { toolCallId: "t0", status: "completed" } as const;

describe("Cancel", () => {
  test("llm_requesting with a request in flight | cancelling{request} → idle when the request has ended; nothing of it is kept", () => {
    for (const outcome of [response([call("t1")]), requestFailed(), lost()]) {
      const stopping = expectOutcome(requesting({ attempt: 2 }), cancel());
      expect(inState(stopping, "cancelling")).toMatchObject({ stopping: "request", requestId: "request" });
      expect(stopping.orders).toEqual([{ kind: "abort_request", requestId: "request" }]);
      const step = expectOutcome(stopping.conversation, outcome);
      expect(step.state).toEqual({ kind: "idle" });
      expect(outline(step.messages)).toEqual(["run_stop interrupted"]);
      expect(step.conversation.usage).toEqual(stopping.conversation.usage);
      expect(step.orders).toEqual([]);
    }
  });

  test("llm_requesting waiting for a retry | idle", () => {
    const step = expectOutcome(requesting({ attempt: 2, retry: RETRY }), cancel());
    expect(step.state).toEqual({ kind: "idle" });
    expect(outline(step.messages)).toEqual(["run_stop interrupted"]);
    expect(step.orders).toEqual([{ kind: "abort_request", requestId: "request" }]);
  });

  test("awaiting_llm | idle", () => {
    const step = expectOutcome(awaitingLlm, cancel());
    expect(step.state).toEqual({ kind: "idle" });
    expect(outline(step.messages)).toEqual(["run_stop interrupted"]);
    expect(step.orders).toEqual([]);
  });

  test("tool_executing | cancelling{tool}: the abort leaves at once, nothing is answered yet", () => {
    const before = executing({ current: call("t1"), remaining: [call("t2")], completed: [done] });
    const step = expectOutcome(before, cancel());
    expect(step.state).toEqual({
      kind: "cancelling",
      since: "2025-01-01T00:00:01.000Z",
      by: "user",
      stopping: "tool",
      operationId: "operation",
      current: call("t1"),
      remaining: [call("t2")],
      completed: [done],
    });
    expect(step.messages).toEqual([]);
    expect(step.orders).toEqual([{ kind: "abort_tool", operationId: "operation" }]);
  });

  test.for(["completed", "failed", "interrupted"] as const)(
    "tool_executing | → idle when everything is dead: completed results stay, the current call is `cancelled` (with what it had printed, whatever it answered), the rest `skipped`: %s",
    (status) => {
      const before = cancellingTool([call("t2"), call("t3")]);
      const step = expectOutcome(before, toolDone("printed so far", { status }));
      expect(step.state).toEqual({ kind: "idle" });
      expect(outline(step.messages)).toEqual([
        "tool t1 cancelled",
        "tool t2 skipped",
        "tool t3 skipped",
        "run_stop interrupted",
      ]);
      expect(step.results[0]).toMatchObject({ name: "bash", durationMs: 7 });
      expect(textOf(step.messages[0])).toBe("printed so far\nCancelled by user");
      expect(textOf(step.messages[1])).toBe("Skipped due to cancellation");
      expect(step.results[1]?.durationMs).toBe(0);
    },
  );

  test("awaiting_sub_agents | cancelling{sub_agents}: the running ones are told", () => {
    const step = expectOutcome(awaitingChildren(2, { remaining: [call("t2")] }), cancel());
    expect(step.state).toEqual({
      kind: "cancelling",
      since: "2025-01-01T00:00:01.000Z",
      by: "user",
      stopping: "sub_agents",
      toolCall: spawnCall("s1", "task 1"),
      remaining: [call("t2")],
      completed: [],
      pending: awaitingChildren(2).pending,
      finished: [],
      all: awaitingChildren(2).all,
    });
    expect(step.orders).toEqual([
      { kind: "cancel_sub_agent", id: "c1" },
      { kind: "cancel_sub_agent", id: "c2" },
    ]);
    expect(step.messages).toEqual([]);
  });

  test("awaiting_sub_agents | those that never ran are over at once", () => {
    const step = expectOutcome(awaitingChildren(10), cancel());
    const state = inState(step, "cancelling");
    const outcome = { error: "Cancelled with its parent", errorKind: "interrupted" };
    expect(state).toMatchObject({
      pending: awaitingChildren(10).pending.slice(0, 8),
      finished: [
        { id: "c9", outcome },
        { id: "c10", outcome },
      ],
    });
    expect(step.orders).toHaveLength(8);
    expect(step.notices.slice(0, 2)).toEqual([
      { name: "subagent.finished", data: { id: "c9", outcome } },
      { name: "subagent.finished", data: { id: "c10", outcome } },
    ]);
  });

  test("cancelling{sub_agents} | nothing starts in the place of a child that has reported", () => {
    expect(expectOutcome(cancellingChildren(10), childDone("c1")).orders).toEqual([]);
  });

  test("awaiting_sub_agents | → idle when every child has reported; one result with each child's outcome", () => {
    const waiting = expectOutcome(cancellingChildren(2, [call("t2")]), childFailed("c2"));
    expect(inState(waiting, "cancelling")).toMatchObject({ pending: [{ id: "c1" }] });
    expect(waiting.messages).toEqual([]);
    const step = expectOutcome(waiting.conversation, childDone("c1", "found it"));
    expect(step.state).toEqual({ kind: "idle" });
    expect(outline(step.messages)).toEqual(["tool s1 cancelled", "tool t2 skipped", "run_stop interrupted"]);
    expect(textOf(step.messages[0])).toBe(
      "Task 1: task 1\nSucceeded: found it\n\nTask 2: task 2\nFailed (unknown): broken\nCancelled by user",
    );
    expect(textOf(step.messages[1])).toBe("Skipped due to cancellation");
  });

  test("awaiting_mode_approval | idle; the call is `cancelled`, the rest `skipped`", () => {
    const step = expectOutcome(approving({ remaining: [call("t2")] }), cancel());
    expect(step.state).toEqual({ kind: "idle" });
    expect(outline(step.messages)).toEqual(["tool u1 cancelled", "tool t2 skipped", "run_stop interrupted"]);
    expect(textOf(step.messages[0])).toBe("Cancelled by user");
    expect(step.results[0]?.durationMs).toBe(0);
    expect(step.conversation.mode).toBe("restricted");
    expect(step.orders).toEqual([]);
  });

  test('awaiting_continuation | context_exhausted with the "cancelled" summary', () => {
    for (const retry of [null, RETRY]) {
      const step = expectOutcome(continuing({ retry }), cancel());
      expect(step.state).toEqual({
        kind: "context_exhausted",
        summary: "Continuation cancelled by user.",
        source: "cancelled",
        finalUsage: usage(90_000),
      });
      expect(step.orders).toEqual([{ kind: "abort_request", requestId: "summary" }]);
    }
  });

  const others: readonly State[] = [
    idle,
    errorState,
    exhausted,
    cancellingRequest,
    cancellingTool(),
    cancellingChildren(2),
  ];
  test.for(others)("any other | nothing; not an error: $kind $stopping", (state) => {
    expectNothing(state, cancel());
  });
  test.for([completed, failedState])("any other | nothing; not an error: $kind", (state) => {
    expectNothing(state, cancel({ by: "parent" }), SUB_AGENT);
  });
});

describe("`cancelling` always ends", () => {
  test.for(["idle", "resume"] as const)("at a restart too (%s)", (policy) => {
    for (const state of [cancellingRequest, cancellingTool([call("t2")]), cancellingChildren(2)]) {
      expect(expectOutcome(state, restarted(policy)).state).toEqual({ kind: "idle" });
    }
  });

  test("when the request or the tool is lost with its worker", () => {
    expect(expectOutcome(cancellingRequest, lost()).state).toEqual({ kind: "idle" });
    const interrupted = toolDone("", { status: "interrupted" });
    expect(expectOutcome(cancellingTool(), interrupted).state).toEqual({ kind: "idle" });
  });

  test("only with the outcome of the operation that is being stopped", () => {
    for (const event of [response([], { requestId: "other" }), requestFailed({ requestId: "other" })]) {
      expectNothing(cancellingRequest, event);
    }
    expectNothing(cancellingRequest, lost("other"));
    expectNothing(cancellingRequest, retryDue());
    expectNothing(cancellingRequest, toolDone("", { operationId: "request" }));
    expectNothing(cancellingRequest, childDone("c1"));
    expectNothing(cancellingTool(), toolDone("", { operationId: "other" }));
    expectNothing(cancellingTool(), lost("operation"));
    expectNothing(cancellingChildren(1), childDone("c9"));
    expectNothing(cancellingChildren(1), toolDone());
    expectNothing(cancellingChildren(1), lost());
  });
});

describe("messages around a cancel", () => {
  test("`clear` drops steers and follow-ups in every state", () => {
    const queue = (["steer", "followUp"] as const).map((delivery) => ({
      messageId: delivery,
      delivery,
      text: "t",
      images: [],
      createdAt: "2025-01-01T00:00:00.000Z",
    }));
    const busy = [requesting(), executing(), awaitingChildren(1), approving(), continuing()];
    for (const state of [...busy, cancellingRequest, cancellingTool(), cancellingChildren(1)]) {
      const step = expectOutcome(conversationIn(state, { queue }), cancel({ queue: "clear" }));
      expect(step.conversation.queue).toEqual([]);
      expect(step.messages.filter(({ type }) => type === "user")).toEqual([]);
      expect(step.notices).toContainEqual({ name: "queue.changed", data: { queue: [], queueHeld: null } });
    }
    const held = queue.slice(1);
    for (const state of [idle, errorState, exhausted]) {
      const queueHeld = state === exhausted ? "context_exhausted" : "restart";
      const before = conversationIn(state, { queue: held, queueHeld });
      const step = expectOutcome(before, cancel({ queue: "clear" }));
      expect(step.conversation).toEqual({ ...before, queue: [], queueHeld: null });
      expectNothing(before, cancel());
    }
  });

  test("`clear` of an empty queue changes nothing", () => {
    expectNothing(idle, cancel({ queue: "clear" }));
  });

  test("a follow-up starts at once after a cancel; a steer is stored just before the run_stop", () => {
    const history = new History();
    history.give(say("m1"));
    history.give(followUp("m2"));
    history.give(steer("m3"));
    const { requestId } = inState(history.give(cancel()), "cancelling") as { requestId: string };
    history.give(lost(requestId));
    expect(history.outline).toEqual(["direct m1", "steer m3", "run_stop interrupted", "followUp m2"]);
    expect(history.state.kind).toBe("llm_requesting");
    expect(history.conversation.queue).toEqual([]);
  });

  test("a cancel plus an immediate resend never mixes the two replies", () => {
    const history = new History();
    const first = inState(history.give(say("m1")), "llm_requesting").requestId;
    history.give(cancel());
    expect(history.offer(say("m2"))).toBe("cancellation_in_progress");
    history.give(lost(first));
    const second = inState(history.give(say("m2")), "llm_requesting").requestId;
    expect(history.give(response([], { requestId: first })).persists).toBe(false);
    history.give(response([], { requestId: second }));
    expect(history.outline).toEqual([
      "direct m1",
      "run_stop interrupted",
      "direct m2",
      "agent",
      "run_stop completed",
    ]);
  });
});

describe("a cancelled sub-agent", () => {
  const reasons: readonly [CancelledBy, string][] = [
    ["user", "Cancelled by user"],
    ["parent", "Cancelled with its parent"],
    ["timeout", "Timed out"],
  ];
  test.for(reasons)("cancelled by %s, it fails as interrupted and tells its parent: %s", ([by, error]) => {
    const stopping = expectOutcome(executing({ remaining: [call("t2")] }), cancel({ by }), SUB_AGENT);
    expect(stopping.orders).toEqual([{ kind: "abort_tool", operationId: "operation" }]);
    const step = expectOutcome(stopping.conversation, toolDone("half"), SUB_AGENT);
    const outcome = { error, errorKind: "interrupted" };
    expect(step.state).toEqual({ kind: "failed", ...outcome });
    expect(outcomeOf(step.state)).toEqual(outcome);
    expect(step.orders).toEqual([]);
    expect(outline(step.messages)).toEqual([
      "tool t1 cancelled",
      "tool t2 skipped",
      "error interrupted",
      "run_stop error",
    ]);
    expect(textOf(step.messages[0])).toBe(`half\n${error}`);
  });

  test("with a request in flight, it ends when the request ends", () => {
    const stopping = expectOutcome(requesting(), cancel({ by: "timeout" }), SUB_AGENT);
    expect(inState(stopping, "cancelling").by).toBe("timeout");
    const step = expectOutcome(stopping.conversation, response(), SUB_AGENT);
    expect(step.state).toEqual({ kind: "failed", error: "Timed out", errorKind: "interrupted" });
  });
});

describe("a cancelled call", () => {
  test("has the result `cancelled`, also an upgrade that waited behind completed calls", () => {
    const history = new History();
    const { requestId } = inState(history.give(say("m1")), "llm_requesting");
    const calls = [call("t1"), upgradeCall("u1"), call("t3")];
    const started = history.give(response(calls, { requestId }));
    history.give(toolDone("ok", { operationId: inState(started, "tool_executing").operationId }));
    history.give(cancel());
    expect(history.outline).toEqual([
      "direct m1",
      "agent",
      "tool t1 completed",
      "tool u1 cancelled",
      "tool t3 skipped",
      "run_stop interrupted",
    ]);
    expectReject(history.conversation, { kind: "withdraw_message", messageId: "m1" }, "already_delivered");
  });
});
