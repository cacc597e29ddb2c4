/** Every cell of the table "Restart of the embedded system", named found | policy | what happens. */
import { describe, expect, test } from "vitest";
import type { State } from "../../machine/conversation.ts";
import { outcomeOf } from "../../machine/outcome.ts";
import { childDone, restarted, say, response } from "./events.ts";
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
  RUN,
  waiting,
} from "./states.ts";
import {
  apply,
  expectNothing,
  expectOutcome,
  inState,
  orderKinds,
  orderOf,
  outline,
  ROOT,
  SUB_AGENT,
  textOf,
} from "./support.ts";

const POLICIES = ["idle", "resume"] as const;
const INTERRUPTED = {
  error: "Interrupted: the system restarted, or the workflow was ended from outside.",
  errorKind: "interrupted",
};

describe("unchanged", () => {
  const resting: readonly State[] = [idle, errorState, exhausted, approving({ remaining: [call("t2")] })];
  test.for(resting.flatMap((state) => POLICIES.map((policy) => ({ kind: state.kind, state, policy }))))(
    "$kind | $policy | unchanged",
    ({ state, policy }) => expectNothing(state, restarted(policy)),
  );
  test.for(
    [completed, failedState].flatMap((state) =>
      POLICIES.map((policy) => ({ kind: state.kind, state, policy })),
    ),
  )("$kind | $policy | unchanged", ({ state, policy }) => expectNothing(state, restarted(policy), SUB_AGENT));
});

test("a message that was due at rest is held", () => {
  for (const state of [idle, errorState]) {
    const step = expectOutcome(conversationIn(state, { queue: [waiting()] }), restarted("idle"));
    expect(step.conversation).toMatchObject({ state, queueHeld: "restart" });
  }
});

describe("awaiting_llm, llm_requesting", () => {
  test.for([awaitingLlm, requesting(), requesting({ attempt: 2, retry: RETRY })])(
    "$kind | idle | note, run_stop `interrupted`, idle",
    (state) => {
      const step = expectOutcome(conversationIn(state, { queue: [waiting()] }), restarted("idle"));
      expect(step.state).toEqual({ kind: "idle" });
      expect(outline(step.messages)).toEqual(["note", "run_stop interrupted"]);
      expect(textOf(step.messages[0])).toContain("The system restarted");
      expect(step.messages[0]?.cycleId).toBe("root");
      expect(step.conversation.queueHeld).toBe("restart");
    },
  );

  test("llm_requesting | idle | what may still be in flight is aborted", () => {
    const step = expectOutcome(requesting(), restarted("idle"));
    expect(step.orders).toEqual([{ kind: "abort_request", requestId: "request" }]);
  });

  test("llm_requesting | resume | asks again, same attempt", () => {
    const step = expectOutcome(requesting({ attempt: 2 }), restarted("resume"));
    const { requestId, attempt } = orderOf(step, "request_llm");
    expect(attempt).toBe(2);
    expect(requestId).not.toBe("request");
    expect(step.state).toEqual({ kind: "llm_requesting", attempt: 2, lost: 1, requestId, retry: null });
    expect(orderKinds(step)).toEqual(["abort_request", "request_llm"]);
    expect(orderOf(step, "abort_request").requestId).toBe("request");
    expect(step.messages).toEqual([]);
  });

  test("llm_requesting, waiting for a retry | resume | asks again when the timer, which is durable, is due", () => {
    expectNothing(requesting({ attempt: 2, retry: RETRY }), restarted("resume"));
  });

  test("awaiting_llm | resume | asks again, same attempt", () => {
    const step = expectOutcome(awaitingLlm, restarted("resume"));
    expect(inState(step, "llm_requesting").attempt).toBe(1);
    expect(orderKinds(step)).toEqual(["request_llm"]);
  });
});

describe("tool_executing", () => {
  const before = executing({
    remaining: [call("t2"), call("t3")],
    completed: [{ toolCallId: "t0", status: "completed" }],
  });

  test("tool_executing | idle | current `interrupted`, rest `skipped`, then note, run_stop, idle", () => {
    const step = expectOutcome(conversationIn(before, { queue: [waiting()] }), restarted("idle"));
    expect(step.state).toEqual({ kind: "idle" });
    expect(outline(step.messages)).toEqual([
      "tool t1 interrupted",
      "tool t2 skipped",
      "tool t3 skipped",
      "note",
      "run_stop interrupted",
    ]);
    expect(textOf(step.messages[1])).toContain("Skipped: the system restarted");
    expect(step.orders).toEqual([{ kind: "abort_tool", operationId: "operation" }]);
    expect(step.conversation.queueHeld).toBe("restart");
  });

  test("tool_executing | resume | current `interrupted`, goes on", () => {
    const step = expectOutcome(before, restarted("resume"));
    expect(outline(step.messages)).toEqual(["tool t1 interrupted"]);
    expect(inState(step, "tool_executing")).toMatchObject({
      current: call("t2"),
      remaining: [call("t3")],
      completed: [
        { toolCallId: "t0", status: "completed" },
        { toolCallId: "t1", status: "interrupted" },
      ],
    });
    expect(orderKinds(step)).toEqual(["abort_tool", "execute_tool"]);
    expect(orderOf(step, "abort_tool").operationId).toBe("operation");
  });

  test("The model reads of an interrupted call that its outcome is unknown and that it should check before relying on it", () => {
    for (const policy of POLICIES) {
      const text = textOf(expectOutcome(before, restarted(policy)).messages[0]);
      expect(text).toContain("outcome is unknown");
      expect(text).toContain("Check before relying on it");
    }
  });
});

describe("awaiting_sub_agents", () => {
  test("awaiting_sub_agents | idle | unfinished children `failed`, finished results kept, rest `skipped`, idle", () => {
    const begun = expectOutcome(awaitingChildren(3, { remaining: [call("t2")] }), childDone("c2", "kept"));
    const step = expectOutcome(begun.conversation, restarted("idle"));
    expect(step.state).toEqual({ kind: "idle" });
    expect(outline(step.messages)).toEqual([
      "tool s1 interrupted",
      "tool t2 skipped",
      "note",
      "run_stop interrupted",
    ]);
    expect(textOf(step.messages[0])).toBe(
      [
        "Task 1: task 1\nFailed (interrupted): Interrupted: the system restarted, or the workflow was ended from outside.",
        "Task 2: task 2\nSucceeded: kept",
        "Task 3: task 3\nFailed (interrupted): Interrupted: the system restarted, or the workflow was ended from outside.",
      ].join("\n\n"),
    );
    expect(textOf(step.messages[1])).toContain("Skipped: the system restarted");
    expect(step.notices.slice(0, 2)).toEqual([
      { name: "subagent.finished", data: { id: "c1", outcome: INTERRUPTED } },
      { name: "subagent.finished", data: { id: "c3", outcome: INTERRUPTED } },
    ]);
    expect(step.orders).toEqual([
      { kind: "cancel_sub_agent", id: "c1" },
      { kind: "cancel_sub_agent", id: "c3" },
    ]);
  });

  test("awaiting_sub_agents | idle | those that never ran are not told", () => {
    expect(expectOutcome(awaitingChildren(10), restarted("idle")).orders).toHaveLength(8);
  });

  test("awaiting_sub_agents | resume | children go on", () => {
    expectNothing(awaitingChildren(2), restarted("resume"));
  });
});

describe("cancelling", () => {
  test.for(POLICIES)("cancelling | %s | idle", (policy) => {
    const request = expectOutcome(cancellingRequest, restarted(policy));
    expect(request.state).toEqual({ kind: "idle" });
    expect(outline(request.messages)).toEqual(["note", "run_stop interrupted"]);
    expect(request.orders).toEqual([{ kind: "abort_request", requestId: "request" }]);

    const tool = expectOutcome(cancellingTool([call("t2")]), restarted(policy));
    expect(tool.state).toEqual({ kind: "idle" });
    expect(outline(tool.messages)).toEqual([
      "tool t1 cancelled",
      "tool t2 skipped",
      "note",
      "run_stop interrupted",
    ]);
    expect(textOf(tool.messages[0])).toBe("Cancelled by user");
    expect(tool.orders).toEqual([{ kind: "abort_tool", operationId: "operation" }]);

    const stopping = conversationIn(cancellingChildren(1, [call("t2")]), { queue: [waiting()] });
    const children = expectOutcome(stopping, restarted(policy));
    expect(children.state).toEqual({ kind: "idle" });
    expect(outline(children.messages)).toEqual([
      "tool s1 cancelled",
      "tool t2 skipped",
      "note",
      "run_stop interrupted",
    ]);
    expect(textOf(children.messages[0])).toBe(
      `Task 1: task 1\nFailed (interrupted): ${INTERRUPTED.error}\nCancelled by user`,
    );
    expect(children.orders).toEqual([{ kind: "cancel_sub_agent", id: "c1" }]);
    expect(children.conversation.queueHeld).toBe("restart");
  });
});

describe("awaiting_continuation", () => {
  test.for(POLICIES)("awaiting_continuation | %s | asks again", (policy) => {
    for (const retry of [null, RETRY]) {
      const before = continuing({ attempt: 2, retry, rejectedToolCalls: [call("t1")] });
      const step = expectOutcome(before, restarted(policy));
      const order = orderOf(step, "request_continuation");
      expect(order).toMatchObject({ attempt: 2, rejectedToolCalls: [call("t1")] });
      expect(order.requestId).not.toBe("summary");
      expect(step.state).toEqual({ ...before, requestId: order.requestId, retry: null });
      expect(orderKinds(step)).toEqual(["abort_request", "request_continuation"]);
      expect(orderOf(step, "abort_request").requestId).toBe("summary");
      expect(step.messages).toEqual([]);
    }
  });
});

describe("a sub-agent at work", () => {
  test.for([requesting(), executing(), cancellingRequest, cancellingTool()])(
    "a sub-agent at work | idle | `failed{interrupted}`: $kind",
    (state) => {
      const step = expectOutcome(state, restarted("idle"), SUB_AGENT);
      expect(step.state).toEqual({ kind: "failed", ...INTERRUPTED });
      expect(outline(step.messages).slice(-2)).toEqual(["error interrupted", "run_stop error"]);
      expect(outcomeOf(step.state)).toEqual(INTERRUPTED);
    },
  );

  test("a sub-agent at work | resume | goes on", () => {
    expect(orderKinds(expectOutcome(requesting(), restarted("resume"), SUB_AGENT))).toContain("request_llm");
    const step = expectOutcome(executing(), restarted("resume"), SUB_AGENT);
    expect(outline(step.messages)).toEqual(["tool t1 interrupted"]);
    expect(orderKinds(step)).toContain("request_llm");
  });
});

describe("the queue after a restart", () => {
  const queue = (["followUp", "steer", "followUp"] as const).map((delivery, n) => ({
    messageId: `q${n}`,
    delivery,
    text: "later",
    images: [],
    createdAt: "2025-01-01T00:00:00.000Z",
  }));

  test("a steer is stored just before the run_stop; the follow-ups are held until the person's next run is completed", () => {
    const step = expectOutcome(conversationIn(requesting(), { queue }), restarted("idle"));
    expect(outline(step.messages)).toEqual(["note", "steer q1", "run_stop interrupted"]);
    expect(step.conversation.queue.map(({ messageId }) => messageId)).toEqual(["q0", "q2"]);
    const mine = expectOutcome(step.conversation, say("m1"), ROOT, 2);
    expect(mine.conversation.queue).toHaveLength(2);
    const { requestId } = inState(mine, "llm_requesting");
    const rest = expectOutcome(mine.conversation, response([], { requestId }), ROOT, 3);
    expect(rest.conversation).toMatchObject({ queueHeld: null, state: { kind: "idle" } });
    const next = expectOutcome(rest.conversation, { kind: "next_run_due" }, ROOT, 4);
    expect(outline(next.messages)).toEqual(["followUp q0"]);
    expect(next.conversation.queue).toMatchObject([{ messageId: "q2" }]);
  });

  test("a restart resets the count of errors in a row", () => {
    const before = conversationIn(requesting(), { errorsInARow: 1, run: { ...RUN, requests: 3 } });
    const step = apply(before, ROOT, restarted("idle"), 1);
    if (typeof step === "string") return expect.fail(step);
    expect(step.conversation).toMatchObject({ errorsInARow: 0, run: null });
  });
});
