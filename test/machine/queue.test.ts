/** Queued messages: limits, order, withdrawal, and when the queue is held ("Messages while busy", "Run stops"). */
import { describe, expect, test } from "vitest";
import {
  QUEUE_HOLDS,
  type Conversation,
  type QueueHold,
  type QueueOnCancel,
} from "../../machine/conversation.ts";
import type { ConversationEvent } from "../../machine/event.ts";
import { Draft } from "../../machine/draft.ts";
import { hold, nextAfterCancel, releaseAfterSuccess } from "../../machine/queue.ts";
import { jsonBytes, QUEUE_BYTES } from "../../machine/size.ts";
import {
  cancel,
  followUp,
  lost,
  requestFailed,
  response,
  restarted,
  say,
  steer,
  trigger,
  withdraw,
} from "./events.ts";
import { History } from "./history.ts";
import { approving, call, conversationIn, errorState, executing, idle, waiting } from "./states.ts";
import {
  expectNothing,
  expectOutcome,
  expectReject,
  inState,
  limited,
  noticeNames,
  outline,
  ROOT,
  stamp,
  SUB_AGENT,
} from "./support.ts";

const waitingIds = (history: History): readonly string[] =>
  history.conversation.queue.map(({ messageId }) => messageId);

function requestIdOf({ state }: History): string {
  return inState({ state }, "llm_requesting").requestId;
}

function begun(): History {
  const history = new History();
  history.give(say("m1"));
  return history;
}

describe("a hold", () => {
  const waitsForPerson = ["cancel", "continued", "context_exhausted"];
  const draftWith = (queueHeld: QueueHold | null, queue = [waiting()]) =>
    new Draft(conversationIn(idle, { queue, queueHeld }), ROOT, stamp(1));

  test.each(QUEUE_HOLDS.flatMap((present) => QUEUE_HOLDS.map((reason) => [present, reason] as const)))(
    "for %s, then for %s: one that waits for the person stays; the end of the context is final",
    (present, reason) => {
      const draft = draftWith(present);
      hold(draft, reason);
      const isKept =
        present === "context_exhausted" ||
        (waitsForPerson.includes(present) && !waitsForPerson.includes(reason));
      expect(draft.conversation.queueHeld).toBe(isKept ? present : reason);
      // What is not changed is neither stored nor told.
      expect(draft.done() === null).toBe(draft.conversation.queueHeld === present);
    },
  );

  test.each(QUEUE_HOLDS)("for %s is made where there was none, and not of an empty queue", (reason) => {
    const [draft, empty] = [draftWith(null), draftWith(null, [])];
    hold(draft, reason);
    hold(empty, reason);
    expect(draft.conversation.queueHeld).toBe(reason);
    expect(empty.conversation.queueHeld).toBeNull();
  });

  test.each(QUEUE_HOLDS)("for %s ends with a completed run if the machine made it", (reason) => {
    const draft = draftWith(reason);
    releaseAfterSuccess(draft);
    expect(draft.conversation.queueHeld).toBe(waitsForPerson.includes(reason) ? reason : null);
  });
});

describe("a steer", () => {
  test("is delivered with the next request, after the tool results", () => {
    const history = begun();
    history.respond([call("t1"), call("t2")]);
    history.give(steer("m2"));
    history.give(steer("m3"));
    expect(outline(history.finishTool().messages)).toEqual(["tool t1 completed"]);
    const step = history.finishTool();
    expect(outline(step.messages)).toEqual(["tool t2 completed", "steer m2", "steer m3"]);
    expect(step.messages.map(({ cycleId }) => cycleId)).toEqual(["m1", "m1", "m1"]);
    expect(waitingIds(history)).toEqual([]);
    expect(noticeNames(step)).toEqual(["queue.changed", "state.changed"]);
  });

  test("overtakes the follow-ups, which keep their order", () => {
    const history = begun();
    for (const event of [followUp("f1"), steer("s1"), followUp("f2")]) history.give(event);
    expect(outline(history.respond().messages)).toEqual(["agent", "steer s1"]);
    expect(waitingIds(history)).toEqual(["f1", "f2"]);
  });
});

describe("a follow-up", () => {
  test("starts at once after a finished turn, one after the other", () => {
    const history = begun();
    history.give(followUp("m2"));
    history.give(followUp("m3"));
    const step = history.respond();
    expect(outline(step.messages)).toEqual(["agent", "run_stop completed", "followUp m2"]);
    expect(step.messages.map(({ cycleId }) => cycleId)).toEqual(["m1", "m1", "m2"]);
    expect(step.notices.at(-1)).toMatchObject({
      name: "state.changed",
      data: { state: { kind: "llm_requesting" }, cycleId: "m2" },
    });
    expect(step.messages[2]).toMatchObject({ actor: "human", display: { kind: "followUp" } });
    expect(outline(history.respond().messages)).toEqual(["agent", "run_stop completed", "followUp m3"]);
    expect(history.respond().state).toEqual({ kind: "idle" });
  });

  test("starts at once after an error", () => {
    const history = begun();
    history.give(followUp("m2"));
    const step = history.failRequest();
    expect(outline(step.messages)).toEqual(["error network", "run_stop error", "followUp m2"]);
    expect(step.state.kind).toBe("llm_requesting");
  });

  test("is held after a second error in a row, until the person's next run is completed", () => {
    const history = begun();
    for (const id of ["m2", "m3", "m4"]) history.give(followUp(id));
    history.failRequest();
    expect(history.failRequest().state.kind).toBe("error");
    expect(history.conversation).toMatchObject({ queueHeld: "errors", errorsInARow: 2 });
    expect(waitingIds(history)).toEqual(["m3", "m4"]);
    history.give(say("m5"));
    expect(waitingIds(history)).toEqual(["m3", "m4"]);
    expect(outline(history.respond().messages)).toEqual(["agent", "run_stop completed", "followUp m3"]);
    expect(history.conversation).toMatchObject({ queueHeld: null, errorsInARow: 0 });
  });

  test("stays held at a third error in a row", () => {
    const history = begun();
    for (const id of ["m2", "m3"]) history.give(followUp(id));
    history.failRequest();
    history.failRequest();
    history.give(say("m5"));
    expect(history.failRequest().state.kind).toBe("error");
    expect(history.conversation).toMatchObject({ queueHeld: "errors", errorsInARow: 3 });
    expect(waitingIds(history)).toEqual(["m3"]);
  });

  test("starts at once after an error if a turn has finished since the error before", () => {
    const history = begun();
    history.failRequest();
    history.give(say("m2"));
    history.respond();
    history.give(say("m3"));
    history.give(followUp("m4"));
    expect(history.failRequest().state.kind).toBe("llm_requesting");
  });

  test("waits behind the held ones when it is sent while the queue is held", () => {
    const history = begun();
    history.give(followUp("m2"));
    history.give(restarted("idle"));
    history.give(say("m3"));
    history.give(followUp("m4"));
    expect(waitingIds(history)).toEqual(["m2", "m4"]);
    expect(history.conversation.queueHeld).toBe("restart");
  });
});

describe("a message that waits", () => {
  test("can be withdrawn once, and is never delivered then", () => {
    const history = begun();
    history.give(followUp("m2"));
    history.give(steer("m3"));
    expect(noticeNames(history.give(withdraw("m2")))).toEqual(["queue.changed"]);
    expect(waitingIds(history)).toEqual(["m3"]);
    expect(history.offer(withdraw("m2"))).toBe("already_delivered");
    history.give(withdraw("m3"));
    expect(history.respond().state).toEqual({ kind: "idle" });
  });

  test("cannot be withdrawn once it was delivered", () => {
    const history = begun();
    expect(history.offer(withdraw("m1"))).toBe("already_delivered");
    expectReject(idle, withdraw("m9"), "already_delivered");
  });

  test("is visible and can be withdrawn while the queue is held", () => {
    const history = begun();
    history.give(followUp("m2"));
    history.give(restarted("idle"));
    expect(waitingIds(history)).toEqual(["m2"]);
    history.give(withdraw("m2"));
    expect(history.conversation).toMatchObject({ queue: [], state: { kind: "idle" } });
  });

  test("is not queued a second time when it is sent again", () => {
    const history = begun();
    history.give(followUp("m2"));
    for (const event of [followUp("m2"), steer("m2"), say("m2")]) expectNothing(history.conversation, event);
    history.give(restarted("idle"));
    expectNothing(history.conversation, say("m2"));
  });

  test("is refused as `queue_full` when 32 messages wait already", () => {
    const history = begun();
    for (let n = 1; n <= 32; n += 1) history.give(n % 2 === 0 ? followUp(`q${n}`) : steer(`q${n}`));
    for (const event of [followUp("q33"), steer("q33")]) {
      expect(expectReject(history.conversation, event, "queue_full").message).toContain("32 messages");
    }
    expectNothing(history.conversation, followUp("q32"));
    history.give(withdraw("q7"));
    history.give(followUp("q33"));
  });

  test("is refused beyond the configured number", () => {
    expectReject(executing(), followUp("m2"), "queue_full", limited({ queued: 0 }));
    expect(
      expectOutcome(executing(), followUp("m2"), limited({ queued: 1 })).conversation.queue,
    ).toHaveLength(1);
  });

  test("gets its sequence when it is delivered, not before", () => {
    const history = begun();
    history.give(followUp("m2"));
    history.respond();
    expect(history.messages.map(({ id, sequence }) => [sequence, id === "m2"])).toEqual([
      [1, false],
      [2, false],
      [3, false],
      [4, true],
    ]);
  });

  test("is dropped by a cancel that clears the queue", () => {
    const history = begun();
    history.give(followUp("m2"));
    const { requestId } = history.state as { requestId: string };
    history.give(cancel({ queue: "clear" }));
    expect(history.give(lost(requestId)).state).toEqual({ kind: "idle" });
  });

  test("stays in the queue in `context_exhausted`", () => {
    const history = begun();
    history.give(followUp("m2"));
    history.give(restarted("idle"));
    history.give(trigger);
    history.respond([], { content: [{ type: "text", text: "All said." }] });
    expect(waitingIds(history)).toEqual(["m2"]);
    expect(history.state.kind).toBe("context_exhausted");
  });
});

describe("idle and error", () => {
  test("start a message with any delivery at once, before the held queue", () => {
    for (const state of [idle, errorState]) {
      const queue = [
        {
          messageId: "q",
          delivery: "followUp" as const,
          text: "later",
          images: [],
          createdAt: "2025-01-01T00:00:00.000Z",
        },
      ];
      const step = expectOutcome(conversationIn(state, { queue, queueHeld: "restart" }), steer("m1"));
      expect(outline(step.messages)).toEqual(["direct m1"]);
      expect(step.conversation.queue).toEqual(queue);
    }
  });

  test("take a message whose id was delivered before as a new one: the caller recognises repeats", () => {
    const history = begun();
    history.respond();
    expect(outline(expectOutcome(history.conversation, say("m1")).messages)).toEqual(["direct m1"]);
  });
});

describe("between two runs", () => {
  test("the conversation is at rest, and clients are told so, before the next run starts", () => {
    const history = begun();
    history.give(followUp("m2"));
    const rest = history.give({ ...response(), requestId: requestIdOf(history) });
    expect(rest.notices.filter(({ name }) => name === "state.changed")).toMatchObject([
      { data: { state: { kind: "idle" }, cycleId: "m1" } },
      { data: { state: { kind: "llm_requesting" }, cycleId: "m2" } },
    ]);
    history.give(followUp("m3"));
    const failed = history.failRequest();
    expect(failed.notices.filter(({ name }) => name === "state.changed")).toMatchObject([
      { data: { state: { kind: "error" }, cycleId: "m2" } },
      { data: { state: { kind: "llm_requesting" }, cycleId: "m3" } },
    ]);
  });

  test("nothing starts without a message that waits and is not held", () => {
    const due = { kind: "next_run_due" } as const;
    expectNothing(idle, due);
    expectNothing(conversationIn(idle, { queue: [waiting()], queueHeld: "cancel" }), due);
    expectNothing(conversationIn(executing(), { queue: [waiting()] }), due);
  });
});

describe("a cancel", () => {
  /** A run with a follow-up and a steer that wait, after a cancel and the end of the request. */
  const stopped = (queue: QueueOnCancel): History => {
    const history = begun();
    history.give(followUp("m2"));
    history.give(steer("m3"));
    const requestId = requestIdOf(history);
    const before = history.conversation;
    history.give(cancel({ queue }));
    expect(nextAfterCancel(before, history.conversation)?.messageId).toBe(queue === "run" ? "m2" : undefined);
    history.give(lost(requestId));
    return history;
  };

  test("lets the queue run on: the follow-up starts when everything is stopped", () => {
    const history = stopped("run");
    expect(history.outline).toEqual(["direct m1", "steer m3", "run_stop interrupted", "followUp m2"]);
    expect(history.state.kind).toBe("llm_requesting");
  });

  test("holds the queue until it is released, whatever runs meanwhile", () => {
    const history = stopped("hold");
    expect(history.conversation).toMatchObject({ state: { kind: "idle" }, queueHeld: "cancel" });
    history.give(say("m4"));
    history.respond();
    expect(history.conversation).toMatchObject({ state: { kind: "idle" }, queueHeld: "cancel" });
    expect(noticeNames(history.give({ kind: "user_release_queue" }))).toContain("queue.changed");
    expect(history.conversation).toMatchObject({ run: { cycleId: "m2" }, queueHeld: null, queue: [] });
  });

  test("drops what waits, and nothing is held", () => {
    const history = stopped("clear");
    expect(history.outline).toEqual(["direct m1", "run_stop interrupted"]);
    expect(history.conversation).toMatchObject({ state: { kind: "idle" }, queue: [], queueHeld: null });
  });

  test("that says nothing of the queue leaves a held one held", () => {
    const history = begun();
    history.give(followUp("m2"));
    const requestId = requestIdOf(history);
    history.give(cancel({ queue: "hold" }));
    history.give(cancel());
    history.give(lost(requestId));
    expect(history.conversation).toMatchObject({ state: { kind: "idle" }, queueHeld: "cancel" });
  });

  test("names the run that it has let start at once", () => {
    const before = conversationIn(approving(), { queue: [waiting("m2")] });
    const { conversation } = expectOutcome(before, cancel());
    const next = expectOutcome(conversation, { kind: "next_run_due" }, ROOT, 2);
    expect(nextAfterCancel(before, next.conversation)?.messageId).toBe("m2");
    expect(nextAfterCancel(conversationIn(idle), conversationIn(idle))).toBeNull();
  });
});

describe("a held queue", () => {
  test("goes on with a release while the agent works, when that run has ended", () => {
    const history = begun();
    history.give(followUp("m2"));
    history.give(restarted("idle"));
    history.give(say("m3"));
    history.give({ kind: "user_release_queue" });
    expect(history.conversation).toMatchObject({ run: { cycleId: "m3" }, queueHeld: null });
    history.failRequest();
    expect(history.conversation.run?.cycleId).toBe("m2");
  });

  test("that a restart holds stays held while runs are cancelled or fail", () => {
    const history = begun();
    history.give(followUp("m2"));
    history.give(restarted("idle"));
    history.give(say("m3"));
    const requestId = requestIdOf(history);
    history.give(cancel());
    history.give(lost(requestId));
    expect(history.conversation).toMatchObject({ state: { kind: "idle" }, queueHeld: "restart" });
    history.give(say("m4"));
    history.failRequest();
    expect(history.conversation).toMatchObject({ state: { kind: "error" }, queueHeld: "restart" });
  });

  test("follows from a key that the provider does not accept: every message would meet it", () => {
    const history = begun();
    history.give(followUp("m2"));
    history.give(requestFailed({ requestId: requestIdOf(history), errorKind: "auth", retryable: false }));
    expect(history.conversation).toMatchObject({ state: { kind: "error" }, queueHeld: "auth" });
  });

  test("a person's hold is not replaced by one that ends by itself", () => {
    const before = conversationIn(executing(), { queue: [waiting()], queueHeld: "cancel" });
    expect(expectOutcome(before, restarted("idle")).conversation.queueHeld).toBe("cancel");
    const restartedBefore = conversationIn(executing(), { queue: [waiting()], queueHeld: "restart" });
    expect(expectOutcome(restartedBefore, cancel({ queue: "hold" })).conversation.queueHeld).toBe("cancel");
  });

  test("is not held any more when nothing waits", () => {
    const before = conversationIn(idle, { queue: [waiting()], queueHeld: "restart" });
    expect(expectOutcome(before, withdraw("q1")).conversation.queueHeld).toBeNull();
  });

  test("a release of a queue that is not held changes nothing; a sub-agent has none", () => {
    expectNothing(idle, { kind: "user_release_queue" });
    expectNothing(conversationIn(executing(), { queue: [waiting()] }), { kind: "user_release_queue" });
    expectReject(idle, { kind: "user_release_queue" }, "sub_agent_read_only", SUB_AGENT);
  });
});

describe("messages from the conversation that this one continues", () => {
  const queue = [{ ...waiting("m1"), delivery: "steer" as const }, waiting("m2")];

  test("wait as follow-ups, held until they are released; they can be withdrawn", () => {
    const history = new History();
    history.give({ kind: "continued", seed: { source: "summary", text: "So far." }, queue });
    expect(history.messages).toMatchObject([{ type: "system", display: { seed: "summary" } }]);
    expect(history.conversation).toMatchObject({
      state: { kind: "idle" },
      queue: [
        { messageId: "m1", delivery: "followUp" },
        { messageId: "m2", delivery: "followUp" },
      ],
      queueHeld: "continued",
    });
    history.give(say("m3"));
    history.respond();
    expect(history.conversation).toMatchObject({ state: { kind: "idle" }, queueHeld: "continued" });
    history.give(withdraw("m2"));
    history.give({ kind: "user_release_queue" });
    expect(history.conversation).toMatchObject({ run: { cycleId: "m1" }, queue: [], queueHeld: null });
  });

  test("without a seed and without messages, nothing changes", () => {
    expectNothing(idle, { kind: "continued", seed: null, queue: [] });
  });
});

describe("the size of the queue", () => {
  const busy = conversationIn(executing());
  const bytesOf = (conversation: Conversation): number => jsonBytes(conversation.queue);
  /** A follow-up, such that the queue after it has so many bytes. */
  const filling = (conversation: Conversation, bytes: number): ConversationEvent => {
    const empty = expectOutcome(conversation, say("m2", { delivery: "followUp", text: "" }));
    const text = "x".repeat(bytes - bytesOf(empty.conversation));
    return say("m2", { delivery: "followUp", text });
  };

  test("has no limit for a single message: the API bounds it", () => {
    const step = expectOutcome(busy, filling(busy, QUEUE_BYTES + 1));
    expect(bytesOf(step.conversation)).toBe(QUEUE_BYTES + 1);
  });

  test("is at most QUEUE_BYTES for several messages", () => {
    const { conversation } = expectOutcome(busy, followUp("m1"));
    expect(bytesOf(expectOutcome(conversation, filling(conversation, QUEUE_BYTES)).conversation)).toBe(
      QUEUE_BYTES,
    );
    const { message } = expectReject(conversation, filling(conversation, QUEUE_BYTES + 1), "queue_full");
    expect(message).toContain("too long together");
  });
});
