/** Properties of a conversation as a client knows it: whatever happens to the connection, it ends up with the same. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  reduceConversation,
  type ConversationModel,
  type LoadedConversation,
} from "../../client/conversation-model.ts";
import type { Conversation, ConversationEvent, Message } from "../../client/events.ts";
import type { Conversation as Machine } from "../../machine/conversation.ts";
import { timestamp } from "../../machine/ids.ts";
import { viewUsage } from "../../machine/usage.ts";
import { go, settings, walks, type Walk } from "../machine/walks.ts";
import { START } from "../machine/support.ts";

/** What the server has after each of its events. */
type Told = {
  readonly event: ConversationEvent;
  readonly view: Conversation;
  readonly messages: readonly Message[];
};

const NOW = START;
const SNAPSHOT_MESSAGES = 5;

function viewOf(machine: Machine, lastEvent: number): Conversation {
  const { mode, state, queue, queueHeld, usage } = machine;
  return {
    ...{ id: "c", slug: "c", title: "c", cwd: "/", host: "h", model: "m", scripted: false },
    ...{ mode, initialMode: mode, sandbox: { kind: "available", abi: 7 }, state, queue, queueHeld },
    usage: viewUsage(usage),
    spent: { tokens: 0, dollars: 0 },
    ...{
      parentId: null,
      continuedFrom: null,
      continuedTo: [],
      userInitiated: true,
      archived: false,
      lastEvent,
    },
    ...{ createdAt: timestamp(START), updatedAt: timestamp(START) },
  };
}

/** The events that the server tells of a walk, in its order: the messages of a step, then its notices. */
function toldOf(walk: Walk): Told[] {
  const told: Told[] = [];
  const messages: Message[] = [];
  go(walk, ({ answer }) => {
    if (typeof answer === "string" || !answer.persists) return;
    const events = [
      ...answer.messages.map((data) => ({ name: "message.added", data }) as const),
      ...(answer.notices as ConversationEvent[]),
    ];
    // A reader sees whole commits only.
    messages.push(...answer.messages);
    const known = [...messages];
    for (const event of events)
      told.push({ event, view: viewOf(answer.conversation, told.length + 1), messages: known });
  });
  return told;
}

const snapshotOf = ({ view, messages }: Told): ConversationEvent => ({
  name: "snapshot",
  data: { conversation: view, messages: messages.slice(-SNAPSHOT_MESSAGES), lastEvent: view.lastEvent },
});

const fold = (model: ConversationModel, ...events: readonly ConversationEvent[]): ConversationModel =>
  events.reduce((before, event) => reduceConversation(before, event, NOW), model);

function loaded(model: ConversationModel): LoadedConversation {
  if (model.kind !== "loaded") throw new Error(`The model is ${model.kind}.`);
  return model;
}

/** What happens after an event: nothing, the last events come again, or a new snapshot comes. */
const accidents = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.constant({ kind: "none" as const }) },
    fc.record({ kind: fc.constant("again" as const), events: fc.nat(6) }),
    fc.constant({ kind: "snapshot" as const }),
  ),
  { minLength: 1, maxLength: 30 },
);

test("whatever comes twice, and whenever a snapshot comes: the client ends up with what the server has", () => {
  fc.assert(
    fc.property(walks, accidents, (walk, happens) => {
      const told = toldOf(walk);
      const [first] = told;
      const last = told.at(-1);
      if (first === undefined || last === undefined) return;
      let model = fold({ kind: "loading" }, snapshotOf({ ...first, messages: [] }));
      for (const [index, { event }] of told.entries()) {
        model = fold(model, event);
        const accident = happens[index % happens.length] ?? { kind: "none" };
        // A replay begins where a commit has ended, for the cursor is that of a durable event.
        if (accident.kind === "again")
          model = fold(
            model,
            ...told.slice(Math.max(0, index - accident.events), index + 1).map((one) => one.event),
          );
        const isWhole = told[index + 1]?.messages !== told[index]?.messages;
        const now = told[index];
        if (accident.kind === "snapshot" && isWhole && now !== undefined)
          model = fold(model, snapshotOf(now));
      }
      const { conversation, messages } = loaded(model);
      const { state, mode, queue, queueHeld, usage } = last.view;
      expect(conversation).toMatchObject({ state, mode, queue, queueHeld, usage });
      expect(messages).toEqual(last.messages.slice(last.messages.length - messages.length));
      expect(messages.length).toBeGreaterThanOrEqual(Math.min(SNAPSHOT_MESSAGES, last.messages.length));
    }),
    settings,
  );
});

test("the text of an answer that is being written goes in the moment in which its message comes, or is dropped", () => {
  fc.assert(
    fc.property(walks, (walk) => {
      const told = toldOf(walk);
      const [first] = told;
      if (first === undefined) return;
      let model = loaded(fold({ kind: "loading" }, snapshotOf({ ...first, messages: [] })));
      for (const { event } of told) {
        const before = model;
        model = loaded(fold(model, event));
        const { state } = model.conversation;
        if (event.name === "message.added" && event.data.type === "agent")
          expect(model.answer?.requestId).not.toBe(event.data.display.requestId);
        else if (before.answer !== null && model.answer === null)
          expect([
            "llm_requesting",
            "awaiting_continuation",
            "idle",
            "error",
            "context_exhausted",
            "completed",
            "failed",
            "cancelling",
          ]).toContain(state.kind);
        if (["idle", "error", "completed", "failed"].includes(state.kind) && event.name === "state.changed")
          expect(model.answer).toBeNull();
        if (state.kind === "llm_requesting" && state.retry === null && event.name === "state.changed") {
          const { requestId } = state;
          const text = { requestId, index: 0, offset: 0, text: "so far" };
          model = loaded(fold(model, { name: "text.delta", data: text }));
          expect(model.answer?.blocks).toMatchObject([{ text: "so far" }]);
        }
      }
    }),
    settings,
  );
});

test("earlier messages adjoin those that are there; others are not taken", () => {
  const walk: Walk = {
    isSubAgent: false,
    sandbox: true,
    choices: Array.from({ length: 70 }, (_, n) => n * 7919),
  };
  const last = toldOf(walk).at(-1);
  if (last === undefined) throw new Error("The walk says nothing.");
  const all = last.messages;
  expect(all.length).toBeGreaterThan(2 * SNAPSHOT_MESSAGES);
  const model = loaded(fold({ kind: "loading" }, snapshotOf(last)));
  expect(model.hasEarlier).toBe(true);
  const with_ = (messages: readonly Message[]) =>
    loaded(reduceConversation(model, { name: "earlier.loaded", data: { messages } }, NOW));
  const cut = all.length - SNAPSHOT_MESSAGES;
  expect(with_(all.slice(0, cut - 1)).messages).toBe(model.messages);
  expect(with_(all.slice(2, cut))).toMatchObject({ messages: all.slice(2), hasEarlier: true });
  expect(with_(all.slice(0, cut + 2))).toMatchObject({ messages: all, hasEarlier: false });
});

test("a snapshot keeps the earlier messages of the same history, and none of another one", () => {
  const walk: Walk = {
    isSubAgent: false,
    sandbox: true,
    choices: Array.from({ length: 70 }, (_, n) => n * 7919),
  };
  const last = toldOf(walk).at(-1);
  if (last === undefined) throw new Error("The walk says nothing.");
  const whole = fold(
    { kind: "loading" },
    {
      name: "snapshot",
      data: { conversation: last.view, messages: [...last.messages], lastEvent: 1 },
    },
  );
  expect(loaded(fold(whole, snapshotOf(last))).messages).toEqual(last.messages);
  const restored = last.messages.map((message) => ({ ...message, id: `${message.id}-restored` }));
  const after = loaded(fold(whole, snapshotOf({ ...last, messages: restored })));
  expect(after.messages).toEqual(restored.slice(-SNAPSHOT_MESSAGES));
});

test("a conversation that was removed stays so, whatever comes late", () => {
  const gone = fold({ kind: "loading" }, { name: "conversation.deleted", data: {} });
  expect(fold(gone, { name: "synced", data: { lastEvent: 3 } })).toEqual({ kind: "gone" });
});
