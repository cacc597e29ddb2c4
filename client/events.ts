/** Owns: the types of what event streams carry, taken from the server's schemas (docs/http.md, Events). */
import type { z } from "zod";
import type { eventData, EventName } from "../api/schemas/event.ts";
import type { conversation } from "../api/schemas/conversation.ts";

export type { Message } from "../machine/message.ts";
export type { State } from "../machine/conversation.ts";

export type Conversation = z.output<typeof conversation>;

type Data = { readonly [Name in EventName]: z.output<(typeof eventData)[Name]> };

type Event<Name extends EventName> = { [N in Name]: { readonly name: N; readonly data: Data[N] } }[Name];

/** An event of one conversation. */
export type ConversationEvent = Event<Exclude<EventName, "stream.opened" | "stream.full" | "heartbeat">>;

/** The facts of a conversation that the list has. */
export type ListFacts = Pick<
  Conversation,
  | "id"
  | "slug"
  | "title"
  | "cwd"
  | "host"
  | "model"
  | "scripted"
  | "mode"
  | "archived"
  | "continuedFrom"
  | "createdAt"
  | "updatedAt"
>;

/** An event of the list. */
export type ListEvent =
  | { readonly name: "synced" | "resync"; readonly data: object }
  | { readonly name: "conversation.changed"; readonly data: ListFacts }
  | {
      readonly name: "state.changed";
      readonly data: Data["state.changed"] & { readonly id: string };
    }
  | { readonly name: "conversation.deleted"; readonly data: { readonly id: string } };
