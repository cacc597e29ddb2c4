/** Owns: the list of conversations as a client knows it, and how each event changes it. A pure fold. */
import type { State } from "../machine/conversation.ts";
import type { Conversation, ListEvent, ListFacts } from "./events.ts";

export type ListedConversation = ListFacts & {
  readonly state: State;
  /** When the state's kind was seen to change, in milliseconds since the epoch. */
  readonly since: number;
};

export type ListModel = {
  /** The list was read. Before that it may have some conversations, but not all. */
  readonly isLoaded: boolean;
  readonly conversations: ReadonlyMap<string, ListedConversation>;
};

export const EMPTY_LIST: ListModel = { isLoaded: false, conversations: new Map() };

export type ListInput =
  | ListEvent
  /** All of them, as they were read. */
  | { readonly name: "list.loaded"; readonly data: { readonly conversations: readonly Conversation[] } };

/** @param now milliseconds since the epoch */
export function reduceList(model: ListModel, input: ListInput, now: number): ListModel {
  switch (input.name) {
    case "synced":
    case "resync":
      return model;
    case "list.loaded": {
      const read = input.data.conversations.map(
        (conversation) => [conversation.id, listed(conversation)] as const,
      );
      return { isLoaded: true, conversations: new Map(read) };
    }
    case "conversation.changed": {
      const { data } = input;
      const known = model.conversations.get(data.id);
      const state = known?.state ?? { kind: "idle" as const };
      return withOne(model, { ...known, ...data, state, since: known?.since ?? now });
    }
    case "state.changed": {
      const { id, state } = input.data;
      const known = model.conversations.get(id);
      if (known === undefined) return model;
      const since = known.state.kind === state.kind ? known.since : now;
      return withOne(model, { ...known, state, since, updatedAt: new Date(now).toISOString() });
    }
    case "conversation.deleted": {
      const conversations = new Map(model.conversations);
      conversations.delete(input.data.id);
      return { ...model, conversations };
    }
  }
}

function withOne(model: ListModel, conversation: ListedConversation): ListModel {
  return { ...model, conversations: new Map(model.conversations).set(conversation.id, conversation) };
}

function listed(conversation: Conversation): ListedConversation {
  const { id, slug, title, cwd, host, model, scripted, mode, archived } = conversation;
  const { continuedFrom, createdAt, updatedAt, state } = conversation;
  const facts = { id, slug, title, cwd, host, model, scripted, mode, archived, continuedFrom };
  return { ...facts, createdAt, updatedAt, state, since: Date.parse(updatedAt) };
}
