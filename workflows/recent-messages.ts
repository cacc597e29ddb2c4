/**
 * Owns: what became of the last accepted messages, so that a repeated submit gets the same answer as the first.
 * Temporal's own deduplication by update id ends at a continue-as-new (temporal#6375). Older messages are in Postgres,
 * where the API looks first.
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

  /** Records the messages that a transition stored, and those that wait after it. */
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
