/** Owns: reading the numbered, durable events of a conversation (docs/http.md, Events). */
import type { Notice } from "../machine/effect.ts";
import type { Message } from "../machine/message.ts";
import type { Database } from "./connect.ts";

export type StoredEvent =
  | Notice
  | { readonly name: "message.added"; readonly data: Message }
  | {
      readonly name: "conversation.changed";
      readonly data: { readonly title: string; readonly archived: boolean };
    };

export type EventView = StoredEvent & {
  /** 1, 2, 3, … within the conversation, without gaps. */
  readonly number: number;
};

/** At most `limit` events with a number above `after`, ascending. */
export async function readEvents(db: Database, id: string, after: number, limit: number): Promise<EventView[]> {
  throw new Error("todo");
}

/** The number of the last event, 0 before the first; null when there is no such conversation. */
export async function lastEventOf(db: Database, id: string): Promise<number | null> {
  throw new Error("todo");
}
