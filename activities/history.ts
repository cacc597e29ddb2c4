/**
 * Owns: a worker's memory of the messages it has read, so that a request gets only what is new, mostly with its own
 * commit. Postgres stays the truth: an entry that does not connect with what is stored is thrown away.
 */
import type { Database } from "../db/connect.ts";
import { readMessages } from "../db/messages.ts";
import type { Message } from "../machine/message.ts";

const PAGE = 1_000;
/** Conversations remembered; the least recently used one is forgotten first. */
const REMEMBERED = 50;

export class History {
  readonly #db: Database;
  readonly #known = new Map<string, readonly Message[]>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** What is known without asking, ascending; possibly nothing. */
  recall(conversationId: string): readonly Message[] {
    return this.#known.get(conversationId) ?? [];
  }

  /**
   * All messages of a conversation, ascending.
   *
   * @param known as recalled.
   * @param news all that come after those, when they are at hand.
   */
  async read(
    conversationId: string,
    known: readonly Message[],
    news: readonly Message[] | null,
  ): Promise<readonly Message[]> {
    const messages =
      news === null
        ? ((await this.#extend(conversationId, known)) ?? (await this.#extend(conversationId, [])) ?? [])
        : [...known, ...news];
    this.#known.delete(conversationId);
    this.#known.set(conversationId, messages);
    for (const id of this.#known.keys()) {
      if (this.#known.size <= REMEMBERED) break;
      this.#known.delete(id);
    }
    return messages;
  }

  /** Nothing will be asked of this conversation any more. */
  forget(conversationId: string): void {
    this.#known.delete(conversationId);
  }

  /** null when the last known message is not the stored one. */
  async #extend(conversationId: string, known: readonly Message[]): Promise<readonly Message[] | null> {
    const last = known.at(-1);
    const messages = [...known];
    // The last known one is read again: it shows that both are of the same history.
    let after = last === undefined ? 0 : last.sequence - 1;
    for (;;) {
      const page = await readMessages(this.#db, conversationId, { after, limit: PAGE });
      const isFirst = after === (last === undefined ? 0 : last.sequence - 1);
      if (isFirst && last !== undefined && page[0]?.id !== last.id) return null;
      messages.push(...(isFirst && last !== undefined ? page.slice(1) : page));
      const end = page.at(-1);
      if (end === undefined || page.length < PAGE) return messages;
      after = end.sequence;
    }
  }
}

/** The tool_use ids of all earlier responses, read from the results: each call has one before the next request. */
export function toolCallIds(messages: readonly Message[]): Set<string> {
  const ids = new Set<string>();
  for (const message of messages) if (message.type === "tool") ids.add(message.content[0].toolCallId);
  return ids;
}
