/**
 * Owns: what became of the messages accepted last, so that a repeated submit answers as the first did even where
 * Temporal's own deduplication by update id ends: at a continue-as-new (temporal#6375). Older ones are in
 * Postgres, where the API looks first.
 */
import type { QueuedMessage } from "../machine/conversation.ts";
import type { Message } from "../machine/message.ts";
import type { RecentMessage } from "../protocol/workflow.ts";

/** More than can be accepted between the API's look into Postgres and its update. */
const REMEMBERED = 128;

export class RecentMessages {
  readonly #messages: Map<string, RecentMessage>;

  constructor(messages: readonly RecentMessage[]) {
    this.#messages = new Map(messages.map((message) => [message.messageId, message]));
  }

  get(messageId: string): RecentMessage | undefined {
    return this.#messages.get(messageId);
  }

  entries(): readonly RecentMessage[] {
    return [...this.#messages.values()];
  }

  /** Notes what a transition stored and what waits after it. */
  note(messages: readonly Message[], queue: readonly QueuedMessage[]): void {
    for (const { messageId, delivery } of queue) this.#set({ messageId, sequence: null, delivery });
    for (const message of messages) {
      if (message.type !== "user") continue;
      const { id, sequence, display } = message;
      this.#set({ messageId: id, sequence, delivery: display.kind });
    }
    for (const id of this.#messages.keys()) {
      if (this.#messages.size <= REMEMBERED) break;
      this.#messages.delete(id);
    }
  }

  #set(message: RecentMessage): void {
    this.#messages.set(message.messageId, message);
  }
}
