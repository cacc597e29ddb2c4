/** Queued messages: limits, order, withdrawal, and when the queue is held ("Messages while busy", "Run stops"). */
import { describe, expect, test } from "vitest";
import type { Conversation } from "../../machine/conversation.ts";
import type { ConversationEvent } from "../../machine/event.ts";
import { jsonBytes, QUEUE_BYTES } from "../../machine/size.ts";
import { cancel, followUp, lost, restarted, say, steer, trigger, withdraw } from "./events.ts";
import { History } from "./history.ts";
import { call, conversationIn, errorState, executing, idle } from "./states.ts";
import { expectNothing, expectOutcome, expectReject, limited, noticeNames, outline } from "./support.ts";

const waitingIds = (history: History): readonly string[] =>
  history.conversation.queue.map(({ messageId }) => messageId);

function begun(): History {
  const history = new History();
  history.give(say("m1"));
  return history;
}

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

  test("is held after a second error in a row, until the person's next run has ended", () => {
    const history = begun();
    for (const id of ["m2", "m3", "m4"]) history.give(followUp(id));
    history.failRequest();
    expect(history.failRequest().state.kind).toBe("error");
    expect(history.conversation).toMatchObject({ queuePaused: true, errorsInARow: 2 });
    expect(waitingIds(history)).toEqual(["m3", "m4"]);
    history.give(say("m5"));
    expect(waitingIds(history)).toEqual(["m3", "m4"]);
    expect(outline(history.respond().messages)).toEqual(["agent", "run_stop completed", "followUp m3"]);
    expect(history.conversation).toMatchObject({ queuePaused: false, errorsInARow: 0 });
  });

  test("stays held at a third error in a row", () => {
    const history = begun();
    for (const id of ["m2", "m3"]) history.give(followUp(id));
    history.failRequest();
    history.failRequest();
    history.give(say("m5"));
    expect(history.failRequest().state.kind).toBe("error");
    expect(history.conversation).toMatchObject({ queuePaused: true, errorsInARow: 3 });
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
    expect(history.conversation.queuePaused).toBe(true);
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
    history.give(cancel({ clearQueue: true }));
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
      const step = expectOutcome(conversationIn(state, { queue, queuePaused: true }), steer("m1"));
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
