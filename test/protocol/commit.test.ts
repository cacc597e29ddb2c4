/** The revision that a transition commits. */
import { describe, expect, test } from "vitest";
import { awaitedOperation } from "../../machine/conversation.ts";
import { toRevision } from "../../protocol/commit.ts";
import { response, say, summaryOf } from "../machine/events.ts";
import { call, continuing, idle, requesting } from "../machine/states.ts";
import { expectOutcome } from "../machine/support.ts";

const HEAD = { number: 3, id: "revision-3", previous: "revision-2", at: "2025-01-01T00:00:01.000Z" };

describe("a revision", () => {
  test("holds the conversation, its messages and notices in order, and the awaited operation", () => {
    const step = expectOutcome(idle, say("m1"));
    expect(toRevision(HEAD, step)).toEqual({
      ...HEAD,
      conversation: step.conversation,
      awaits: awaitedOperation(step.state),
      messages: step.messages,
      notices: step.notices,
      archived: null,
    });
    expect(step.messages).toHaveLength(1);
    expect(step.notices).toHaveLength(1);
    expect(awaitedOperation(step.state)).not.toBeNull();
  });

  test("keeps the order of the messages", () => {
    const step = expectOutcome(requesting(), response([call("t1", "fly"), call("t2", "swim")]));
    const { messages } = toRevision(HEAD, step);
    expect(messages.map(({ sequence }) => sequence)).toEqual([11, 12, 13]);
    expect(expectOutcome(continuing(), summaryOf("x")).messages[0]?.sequence).toBe(11);
  });
});
