/** What holds of `transition` for any conversation, context and event whatever, reachable or not. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { transition } from "../../machine/transition.ts";
import { anyContext, anyConversation, anyEvent } from "./arbitraries.ts";
import { deepFreeze, rank } from "./valid.ts";
import { settings } from "./walks.ts";

const many = { numRuns: settings.numRuns * 20 };
const anything = fc.tuple(anyConversation, anyContext, anyEvent);

test("transition never throws on any (state, event) pair: it answers with a new value or a typed rejection", () => {
  fc.assert(
    fc.property(anything, ([conversation, context, event]) => {
      const answer = transition(conversation, context, event);
      if ("reject" in answer) return /^[a-z_]+$/u.test(answer.reject.code) && answer.reject.message !== "";
      return answer.conversation.state.kind !== "awaiting_llm" || conversation.state.kind === "awaiting_llm";
    }),
    many,
  );
});

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

test("effects come in this order: persist_state, persist_message, notify_client, then what is performed", () => {
  fc.assert(
    fc.property(anything, ([conversation, context, event]) => {
      const answer = transition(conversation, context, event);
      if ("reject" in answer) return;
      const ranks = answer.effects.map(rank);
      expect(ranks).toEqual([...ranks].sort((a, b) => a - b));
      expect(ranks.filter((place) => place === 0)).toHaveLength(answer.conversation === conversation ? 0 : 1);
    }),
    settings,
  );
});

test("a conversation survives JSON: the round trip loses nothing", () => {
  fc.assert(
    fc.property(anything, (whatever) => {
      const [conversation, context, event] = structuredClone(whatever);
      const answer = transition(conversation, context, event);
      if ("reject" in answer) return;
      expect(JSON.parse(JSON.stringify(answer))).toStrictEqual(answer);
    }),
    settings,
  );
});
