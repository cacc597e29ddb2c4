/**
 * Owns: a worker's memory of the messages it has read, so that a request gets only what is new, mostly with its own
 * commit. Postgres stays the truth: an entry that does not connect with what is stored is thrown away.
 */
import type { Database } from "../db/connect.ts";
import { lastMessages, readMessages } from "../db/messages.ts";
import { shareOfRoom } from "../llm/continuation.ts";
import type { Model } from "../llm/models.ts";
import type { Message } from "../machine/message.ts";
import { Memory } from "./memory.ts";

/** Messages read at once. */
const PAGE = 200;
/** Conversations remembered. */
const REMEMBERED = 50;
/** Characters of JSON of all that is remembered. */
const REMEMBERED_CHARACTERS = 64 * 1024 * 1024;
/** More than any model's window holds, and any request. */
const MAX_CHARACTERS = 48 * 1024 * 1024;

/** The history is more than can be sent. */
export class HistoryTooLarge extends Error {
  override readonly name = "HistoryTooLarge";
}

/** `characters` of their JSON. */
type Entry = { readonly messages: readonly Message[]; readonly characters: number };

const NOTHING: Entry = { messages: [], characters: 0 };

export class MessageCache {
  readonly #db: Database;
  readonly #known = new Memory<Entry>({ entries: REMEMBERED, characters: REMEMBERED_CHARACTERS });

  constructor(db: Database) {
    this.#db = db;
  }

  /** What is known without asking, ascending; possibly nothing. */
  getCached(conversationId: string): Entry {
    return this.#known.get(conversationId) ?? NOTHING;
  }

  /**
   * All messages of a conversation, ascending.
   *
   * @param known as recalled.
   * @param newMessages all that come after those, when they are at hand.
   * @throws HistoryTooLarge
   */
  async read(conversationId: string, known: Entry, newMessages: readonly Message[] | null): Promise<Entry> {
    const entry =
      newMessages === null
        ? ((await this.#extend(conversationId, known)) ?? (await this.#extend(conversationId, NOTHING)))
        : {
            messages: [...known.messages, ...newMessages],
            characters: known.characters + charactersOf(newMessages),
          };
    if (entry === null) return NOTHING;
    this.#known.set(conversationId, entry, entry.characters);
    return entry;
  }

  /** Nothing will be asked of this conversation any more. */
  forget(conversationId: string): void {
    this.#known.delete(conversationId);
  }

  /** null when the last known message is not the stored one. */
  async #extend(conversationId: string, known: Entry): Promise<Entry | null> {
    const last = known.messages.at(-1);
    const messages = [...known.messages];
    let { characters } = known;
    // The last known one is read again: it shows that both are of the same history.
    let after = last === undefined ? 0 : last.sequence - 1;
    for (let isFirst = true; ; isFirst = false) {
      const page = await readMessages(this.#db, conversationId, { after, limit: PAGE });
      if (isFirst && last !== undefined && page[0]?.id !== last.id) return null;
      const more = isFirst && last !== undefined ? page.slice(1) : page;
      messages.push(...more);
      characters += charactersOf(more);
      if (characters > MAX_CHARACTERS) throw new HistoryTooLarge();
      const end = page.at(-1);
      if (end === undefined || page.length < PAGE) return { messages, characters };
      after = end.sequence;
    }
  }
}

const charactersOf = (messages: readonly Message[]): number => JSON.stringify(messages).length;

const SUMMARY_PAGE = 100;
/** Characters of JSON: much of a history may say nothing that a summary could use. */
const SUMMARY_CHARACTERS = 16 * 1024 * 1024;

/**
 * What the request for a summary can use of a history: its beginning, which holds the task, and as much of its end as
 * there is room for. However long a history is, no more of it is in memory.
 */
export async function readForSummary(
  db: Database,
  conversationId: string,
  model: Model,
): Promise<readonly Message[]> {
  let page = await lastMessages(db, conversationId, SUMMARY_PAGE);
  let read = page;
  let share = shareOfRoom(page, model);
  let characters = charactersOf(page);
  while (share < 1 && characters < SUMMARY_CHARACTERS && page.length === SUMMARY_PAGE) {
    page = await readMessages(db, conversationId, { before: page[0]?.sequence, limit: SUMMARY_PAGE });
    read = [...page, ...read];
    share += shareOfRoom(page, model);
    characters += charactersOf(page);
  }
  const from = read[0]?.sequence ?? 0;
  const first = await readMessages(db, conversationId, { after: 0, before: from, limit: BEGINNING });
  return [...first, ...read];
}

/** Messages among which is the first that says something. */
const BEGINNING = 5;

/** The tool_use ids of all earlier responses, read from the results: each call has one before the next request. */
export function toolCallIds(messages: readonly Message[]): Set<string> {
  const ids = new Set<string>();
  for (const message of messages) if (message.type === "tool") ids.add(message.content[0].toolCallId);
  return ids;
}
