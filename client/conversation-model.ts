/**
 * Owns: a conversation as a client knows it, and how each event changes it. A pure fold: the same events in the same
 * order give the same value, and an event that comes again changes nothing.
 * Not here: how events arrive (stream.ts), how they are shown.
 */
import { runningIn, type State } from "../machine/conversation.ts";
import type { Conversation, ConversationEvent, Message } from "./events.ts";
import {
  addToAnswer,
  addToOutput,
  answerIn,
  type LiveAnswer,
  type LiveOutput,
} from "../protocol/live-text.ts";

export type ConversationModel =
  | { readonly kind: "loading" }
  | LoadedConversation
  /** It was removed, or there never was one. */
  | { readonly kind: "gone" };

export type LoadedConversation = {
  readonly kind: "loaded";
  readonly conversation: Conversation;
  /** When the state's kind was seen to change, in milliseconds since the epoch; from a snapshot, its last change. */
  readonly since: number;
  /** Ascending, without gaps: the last ones, and those before them that were asked for. */
  readonly messages: readonly Message[];
  /** There are earlier messages. */
  readonly hasEarlier: boolean;
  readonly answer: LiveAnswer | null;
  readonly output: LiveOutput | null;
  /** What was missed has arrived. */
  readonly isSynced: boolean;
};

/** What changes a model: an event, or earlier messages that the client has read. */
export type ConversationInput =
  | ConversationEvent
  | { readonly name: "earlier.loaded"; readonly data: { readonly messages: readonly Message[] } };

/**
 * The model after an input.
 *
 * @param now milliseconds since the epoch
 */
export function reduceConversation(
  model: ConversationModel,
  input: ConversationInput,
  now: number,
): ConversationModel {
  if (input.name === "conversation.deleted") return { kind: "gone" };
  if (input.name === "snapshot") return fromSnapshot(model, input.data);
  return model.kind === "loaded" ? reduceLoaded(model, input, now) : model;
}

/** A conversation of which no message is known. */
export const known = (conversation: Conversation): LoadedConversation => ({
  kind: "loaded",
  conversation,
  since: Date.parse(conversation.updatedAt),
  messages: [],
  hasEarlier: true,
  answer: null,
  output: null,
  isSynced: false,
});

type Snapshot = Extract<ConversationEvent, { name: "snapshot" }>["data"];

function fromSnapshot(model: ConversationModel, { conversation, messages }: Snapshot): LoadedConversation {
  const known = model.kind === "loaded" ? model : null;
  const earlier = known === null ? [] : earlierOf(known.messages, messages);
  const running = runningIn(conversation.state);
  return {
    kind: "loaded",
    conversation,
    since: Date.parse(conversation.updatedAt),
    messages: [...earlier, ...messages],
    hasEarlier: ((earlier[0] ?? messages[0])?.sequence ?? 1) > 1,
    // What is being written goes on where it was, so that text never vanishes and comes again.
    answer: known?.answer?.requestId === running ? known.answer : null,
    output: known?.output?.toolCallId === running ? known.output : null,
    isSynced: false,
  };
}

/** The known messages before a snapshot, if they are of the same history and adjoin it. */
function earlierOf(known: readonly Message[], [first]: readonly Message[]): readonly Message[] {
  if (first === undefined) return [];
  const place = known.findIndex(({ sequence }) => sequence === first.sequence);
  if (place === -1) return known.at(-1)?.sequence === first.sequence - 1 ? known : [];
  return known[place]?.id === first.id ? known.slice(0, place) : [];
}

function reduceLoaded(
  model: LoadedConversation,
  input: Exclude<ConversationInput, { name: "snapshot" | "conversation.deleted" }>,
  now: number,
): LoadedConversation {
  switch (input.name) {
    case "synced":
      return { ...model, isSynced: true };
    case "resync":
      return { ...model, isSynced: false };
    case "message.added":
      return added(model, input.data);
    case "message.removed":
      return { ...model, messages: model.messages.filter(({ id }) => id !== input.data.id) };
    case "earlier.loaded":
      return withEarlier(model, input.data.messages);
    case "state.changed":
      return inState(model, input.data.state, now);
    case "mode.changed":
      return with_(model, { mode: input.data.mode });
    case "queue.changed":
      return with_(model, input.data);
    case "usage.changed":
      return with_(model, input.data);
    case "spending.changed":
      return with_(model, { spent: input.data });
    case "conversation.changed":
      return with_(model, { title: input.data.title, archived: input.data.archived });
    case "text.delta":
      return { ...model, answer: addToAnswer(model.answer, "text", input.data) };
    case "thinking.delta":
      return { ...model, answer: addToAnswer(model.answer, "thinking", input.data) };
    case "tool.output":
      return { ...model, output: addToOutput(model.output, input.data) };
    // The state and the usage say the same.
    case "context.warned":
    case "context.exhausted":
    case "llm.retry_scheduled":
    case "subagent.spawned":
    case "subagent.finished":
      return model;
  }
}

const with_ = (model: LoadedConversation, facts: Partial<Conversation>): LoadedConversation => ({
  ...model,
  conversation: { ...model.conversation, ...facts },
});

function added(model: LoadedConversation, message: Message): LoadedConversation {
  const last = model.messages.at(-1)?.sequence ?? 0;
  // It came twice.
  if (message.sequence <= last) return model;
  const isAnswer = message.type === "agent" && message.display.requestId === model.answer?.requestId;
  const isOutput = message.type === "tool" && message.content[0].toolCallId === model.output?.toolCallId;
  return {
    ...model,
    messages: [...model.messages, message],
    // The stored message takes the place of its live text in the same moment.
    answer: isAnswer ? null : model.answer,
    output: isOutput ? null : model.output,
  };
}

function withEarlier(model: LoadedConversation, earlier: readonly Message[]): LoadedConversation {
  const first = model.messages[0]?.sequence ?? 1;
  const before = earlier.filter(({ sequence }) => sequence < first);
  if (before.at(-1)?.sequence !== first - 1) return model;
  return { ...model, messages: [...before, ...model.messages], hasEarlier: (before[0]?.sequence ?? 1) > 1 };
}

function inState(model: LoadedConversation, state: State, now: number): LoadedConversation {
  return {
    ...model,
    conversation: { ...model.conversation, state },
    since: state.kind === model.conversation.state.kind ? model.since : now,
    answer: answerIn(state, model.answer),
  };
}
