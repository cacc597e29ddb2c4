/** What a request has cost is charged with the event that ends it, once; and what follows when a limit refuses one. */
import { describe, expect, test } from "vitest";
import { transition } from "../../machine/transition.ts";
import type { ConversationEvent } from "../../machine/event.ts";
import type { Charge } from "../../machine/message.ts";
import { cancel, followUp, lost, requestFailed, response, retryDue, say, summaryOf } from "./events.ts";
import { History } from "./history.ts";
import { call, continuing, conversationIn, EVERY_STATE, requesting, RETRY, usage } from "./states.ts";
import { at, expectOutcome, noticeNames, outline, ROOT, SUB_AGENT } from "./support.ts";

const CHARGE: Charge = { ...usage(100), nanodollars: 7 };

const ENDS: readonly (readonly [string, (requestId: string) => ConversationEvent])[] = [
  ["an answer", (requestId) => response([], { requestId, charge: CHARGE })],
  ["an answer with a call", (requestId) => response([call("t1")], { requestId, charge: CHARGE })],
  ["a failure that is retried", (requestId) => requestFailed({ requestId, charge: CHARGE })],
  ["a final failure", (requestId) => requestFailed({ requestId, retryable: false, charge: CHARGE })],
  ["an abort", (requestId) => ({ kind: "llm_lost", requestId, charge: CHARGE })],
];

function chargesOf(before: Parameters<typeof transition>[0], event: ConversationEvent): readonly Charge[] {
  const answer = transition(before, ROOT, at(event));
  return answer.kind === "accepted" ? answer.charges : [];
}

describe("a charge", () => {
  test.each(ENDS)("of %s counts in the states that wait for its end, and in no other", (_, end) => {
    for (const state of EVERY_STATE) {
      const requestId = "requestId" in state ? state.requestId : "request";
      // A retry is a timer: the request itself has ended, and was charged.
      const waits = "requestId" in state && !("retry" in state && state.retry !== null);
      expect(chargesOf(conversationIn(state), end(requestId)), state.kind).toEqual(waits ? [CHARGE] : []);
      expect(chargesOf(conversationIn(state), end("another")), state.kind).toEqual([]);
    }
  });

  test.each(ENDS)("of %s counts once, although its event comes again", (_, end) => {
    const first = transition(conversationIn(requesting()), ROOT, at(end("request")));
    if (first.kind !== "accepted") throw new Error("it is accepted");
    expect(first.charges).toEqual([CHARGE]);
    expect(chargesOf(first.conversation, end("request"))).toEqual([]);
  });

  test("of a request that is cancelled counts, of a summary too", () => {
    const stopping = expectOutcome(requesting(), cancel());
    const end: ConversationEvent = { kind: "llm_lost", requestId: "request", charge: CHARGE };
    expect(chargesOf(stopping.conversation, end)).toEqual([CHARGE]);
    expect(chargesOf(conversationIn(continuing()), summaryOf("So far.", { charge: CHARGE }))).toEqual([
      CHARGE,
    ]);
  });

  test("comes from the usage, at an unknown price, when a worker of before has asked; a lost request has none", () => {
    const answer = response([], { usage: usage(5) });
    expect(chargesOf(conversationIn(requesting()), answer)).toEqual([{ ...usage(5), nanodollars: null }]);
    expect(chargesOf(conversationIn(requesting()), lost())).toEqual([]);
    expect(chargesOf(conversationIn(requesting({ retry: RETRY })), retryDue())).toEqual([]);
  });
});

describe("a limit on spending that refuses a request", () => {
  const refused = requestFailed({ errorKind: "spending_limit", message: "Spent.", retryable: false });

  test("ends the run with its sentence, at the first attempt", () => {
    const step = expectOutcome(requesting(), refused);
    expect(step.state).toEqual({ kind: "error", message: "Spent.", errorKind: "spending_limit" });
    expect(outline(step.messages)).toEqual(["error spending_limit", "run_stop error"]);
    expect(noticeNames(step)).toEqual(["state.changed"]);
    expect(step.orders).toEqual([]);
  });

  test("holds what waits, which would meet it as well; a run that is completed lets it go on", () => {
    const history = new History();
    history.give(say());
    history.give(followUp("m2"));
    const { state } = history.conversation;
    if (state.kind !== "llm_requesting") throw new Error("it asks");
    history.give({ ...refused, requestId: state.requestId } as ConversationEvent);
    expect(history.conversation).toMatchObject({ state: { kind: "error" }, queueHeld: "spending_limit" });
    history.give(say("m3"));
    history.respond([]);
    expect(history.conversation.queueHeld).toBeNull();
  });

  test("fails a sub-agent with the same words, which its parent reads", () => {
    const step = expectOutcome(requesting(), refused, SUB_AGENT);
    expect(step.state).toEqual({ kind: "failed", error: "Spent.", errorKind: "spending_limit" });
  });

  test("of a summary leaves a note that says why there is none", () => {
    const step = expectOutcome(continuing(), { ...refused, requestId: "summary" } as ConversationEvent);
    expect(step.state).toMatchObject({ kind: "context_exhausted", source: "failed" });
    expect(JSON.stringify(step.messages)).toContain("Spent.");
  });
});
