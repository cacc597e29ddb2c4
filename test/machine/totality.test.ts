/** Properties of `transition` for any conversation, context and event, reachable or not. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isWorking, type Run } from "../../machine/conversation.ts";
import type { Accepted } from "../../machine/draft.ts";
import type { ConversationEvent } from "../../machine/event.ts";
import { transition } from "../../machine/transition.ts";
import { anyContext, anyConversation, anyEvent } from "./arbitraries.ts";
import {
  approve,
  cancel,
  childDone,
  deny,
  downgrade,
  lost,
  requestFailed,
  response,
  restarted,
  retryDue,
  say,
  steer,
  summaryOf,
  toolDone,
  trigger,
  withdraw,
} from "./events.ts";
import { call, conversationIn, EVERY_STATE, RUN, spawnCall, submitCall, upgradeCall } from "./states.ts";
import { at, ROOT, SUB_AGENT } from "./support.ts";
import { deepFreeze } from "./valid.ts";
import { settings } from "./walks.ts";

const many = { numRuns: settings.numRuns * 20 };
const anything = fc.tuple(anyConversation, anyContext, anyEvent);

test("transition never throws on any (state, event) pair: it answers with a new value or a typed rejection", () => {
  fc.assert(
    fc.property(anything, ([conversation, context, event]) => {
      const answer = transition(conversation, context, event);
      if (answer.kind === "ignored") return true;
      if (answer.kind === "rejected")
        return /^[a-z_]+$/u.test(answer.rejection.code) && answer.rejection.message !== "";
      return answer.conversation.state.kind !== "awaiting_llm" || conversation.state.kind === "awaiting_llm";
    }),
    many,
  );
});

const EVERY_EVENT: readonly ConversationEvent[] = [
  say(),
  steer("m2"),
  withdraw("m2"),
  cancel({ queue: "clear" }),
  approve(),
  deny(null),
  downgrade,
  trigger,
  response(),
  response([], { stopReason: "max_tokens" }),
  response([], { stopReason: "pause_turn" }),
  response([call("t7"), upgradeCall("u7"), spawnCall("s7", "x"), submitCall("t8")]),
  response([upgradeCall("u7")]),
  summaryOf("All said."),
  requestFailed(),
  requestFailed({ retryable: false }),
  lost(),
  lost("summary"),
  retryDue(),
  retryDue("summary"),
  toolDone(),
  childDone("c1"),
  { kind: "task_given", messageId: "task", task: "do it" },
  { kind: "continued", seed: { source: "summary", text: "seed" }, queue: [] },
  { kind: "noted", text: "note" },
  restarted("idle"),
  restarted("resume"),
];

describe.each(EVERY_STATE)("in $kind $stopping", (state) => {
  test.for(EVERY_EVENT)("$kind is answered, and no run appears without its root message", (event) => {
    for (const run of [RUN, null]) {
      for (const context of [ROOT, SUB_AGENT]) {
        const answer = transition(conversationIn(state, { run }), context, at(event));
        if (answer.kind !== "accepted") continue;
        const after = answer.conversation.run;
        expect(after === null ? null : after.cycleId).toBe(cycleAfter(answer, run));
      }
    }
  });
});

/** The run after a transition: the new one if its root message was stored, none if it was stopped, else as before. */
function cycleAfter({ messages }: Accepted, before: Run | null): string | null {
  let cycle = before?.cycleId ?? null;
  for (const message of messages) {
    if (message.type === "run_stop") cycle = null;
    if (message.type === "user" && message.display.kind !== "steer") cycle = message.id;
  }
  return cycle;
}

test("transition is deterministic: the same arguments give the same answer", () => {
  fc.assert(
    fc.property(anything, ([conversation, context, event]) => {
      const again = structuredClone([conversation, context, event] as const);
      expect(transition(...again)).toEqual(transition(conversation, context, event));
    }),
    settings,
  );
});

test("transition mutates none of its arguments", () => {
  fc.assert(
    fc.property(anything, ([conversation, context, event]) => {
      transition(deepFreeze(conversation), deepFreeze(context), deepFreeze(event));
    }),
    many,
  );
});

test("an accepted event changes the conversation, and starts operations only in a working state", () => {
  fc.assert(
    fc.property(anything, ([conversation, context, event]) => {
      const answer = transition(conversation, context, event);
      if (answer.kind !== "accepted") return;
      expect(answer.conversation).not.toBe(conversation);
      if (answer.start.length > 0) expect(isWorking(answer.conversation.state)).toBe(true);
    }),
    settings,
  );
});

test("a conversation survives JSON: the round trip loses nothing", () => {
  fc.assert(
    fc.property(anything, (whatever) => {
      const [conversation, context, event] = structuredClone(whatever);
      const answer = transition(conversation, context, event);
      expect(JSON.parse(JSON.stringify(answer))).toStrictEqual(answer);
    }),
    settings,
  );
});
