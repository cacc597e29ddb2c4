/** What a transition commits (batch.ts), and what the value says about itself (conversation.ts). */
import { describe, expect, test } from "vitest";
import { toBatch } from "../../machine/batch.ts";
import { awaitedOperation, isWorking, newConversation, NO_TOKENS } from "../../machine/conversation.ts";
import { namesOf } from "../../machine/wording.ts";
import { response, say, summaryOf } from "./events.ts";
import {
  approving,
  awaitingChildren,
  call,
  cancellingChildren,
  cancellingRequest,
  cancellingTool,
  continuing,
  EVERY_STATE,
  executing,
  idle,
  requesting,
  RETRY,
} from "./states.ts";
import { expectOutcome } from "./support.ts";

const HEAD = { step: 3, id: "batch-3", previous: "batch-2", at: "2025-01-01T00:00:01.000Z" };

describe("a batch", () => {
  test("holds what is committed: the value, its messages and notices in order, what it waits for", () => {
    const step = expectOutcome(idle, say("m1"));
    expect(toBatch(HEAD, step.conversation, step.effects)).toEqual({
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

  test("keeps the order in which the messages were said", () => {
    const step = expectOutcome(requesting(), response([call("t1", "fly"), call("t2", "swim")]));
    const { messages } = toBatch(HEAD, step.conversation, step.effects);
    expect(messages.map(({ sequence }) => sequence)).toEqual([11, 12, 13]);
    expect(expectOutcome(continuing(), summaryOf("x")).messages[0]?.sequence).toBe(11);
  });
});

describe("a state", () => {
  test("waits for the operation that is in flight, by its generation id", () => {
    expect(awaitedOperation(requesting())).toBe("request");
    expect(awaitedOperation(continuing())).toBe("summary");
    expect(awaitedOperation(executing())).toBe("operation");
    const others = [
      requesting({ retry: RETRY }),
      continuing({ retry: RETRY }),
      approving(),
      awaitingChildren(1),
      cancellingRequest,
      cancellingTool(),
      cancellingChildren(1),
    ];
    for (const state of others) expect(awaitedOperation(state)).toBeNull();
    for (const state of EVERY_STATE) {
      if (!isWorking(state) || state.kind === "awaiting_llm") expect(awaitedOperation(state)).toBeNull();
    }
  });

  test("works, or rests", () => {
    const resting = ["idle", "error", "context_exhausted", "completed", "failed"];
    for (const state of EVERY_STATE) expect(isWorking(state)).toBe(!resting.includes(state.kind));
  });
});

test("a new conversation is idle and has nothing", () => {
  expect(newConversation("restricted", 1_000)).toEqual({
    state: { kind: "idle" },
    mode: "restricted",
    queue: [],
    held: false,
    usage: { ...NO_TOKENS, contextUsed: 0, contextWindow: 1_000 },
    lastUsage: NO_TOKENS,
    warned: false,
    sequence: 0,
    spoken: false,
    run: null,
    errorsInARow: 0,
    lastDecision: null,
  });
  expect(newConversation("unrestricted", 1_000).mode).toBe("unrestricted");
  expect(Object.values(NO_TOKENS)).toEqual([0, 0, 0, 0]);
});

test("a continuation's prompt names the calls that did not run", () => {
  expect(namesOf([call("t1"), call("t2", "read")])).toEqual(["bash", "read"]);
});
