/**
 * Owns: a worker's cache of the messages it has read. A request reads only the new messages, mostly with its own
 * commit. Postgres is authoritative: an entry that does not connect with the stored messages is discarded.
 */
import { LRUCache } from "lru-cache";
import type { Database } from "../db/connect.ts";
import { lastMessages, readMessages } from "../db/messages.ts";
import { shareOfRoom } from "../llm/continuation.ts";
import type { Model } from "../llm/models.ts";
import type { Message } from "../machine/message.ts";

/** Messages read at once. */
const PAGE = 200;
/** Conversations remembered. */
const REMEMBERED = 50;
/** Characters of JSON of all entries together. */
const REMEMBERED_CHARACTERS = 64 * 1024 * 1024;
/** More than any model's window or any request can hold. */
const MAX_CHARACTERS = 48 * 1024 * 1024;

/** The history is larger than a request may be. */
export class HistoryTooLarge extends Error {
  override readonly name = "HistoryTooLarge";
}

/** `characters`: length of the messages' JSON. */
type Entry = { readonly messages: readonly Message[]; readonly characters: number };

const NOTHING: Entry = { messages: [], characters: 0 };

export class MessageCache {
  readonly #db: Database;
  readonly #known = new LRUCache<string, Entry>({
    max: REMEMBERED,
    maxSize: REMEMBERED_CHARACTERS,
    sizeCalculation: ({ characters }) => characters,
  });

  constructor(db: Database) {
    this.#db = db;
  }

  /** The cached messages, ascending; possibly none. */
  getCached(conversationId: string): Entry {
    return this.#known.get(conversationId) ?? NOTHING;
  }

  /**
   * All messages of a conversation, ascending.
   *
   * @param known from `getCached`.
   * @param newMessages all messages after those; null: they are read here.
   * @throws HistoryTooLarge
   */
  async read(conversationId: string, known: Entry, newMessages: readonly Message[] | null): Promise<Entry> {
    const entry =
      newMessages === null
        ? ((await this.#extend(conversationId, known)) ?? (await this.#extend(conversationId, NOTHING)))
        : append(known, newMessages);
    if (entry === null) return NOTHING;
    this.#known.set(conversationId, entry);
    return entry;
  }

  /** The conversation makes no more requests. */
  forget(conversationId: string): void {
    this.#known.delete(conversationId);
  }

  /** null when the last known message is not the stored one. */
  async #extend(conversationId: string, known: Entry): Promise<Entry | null> {
    const last = known.messages.at(-1);
    let entry = known;
    // The last known message is read again: it shows that both are of the same history.
    let after = last === undefined ? 0 : last.sequence - 1;
    for (let isFirst = true; ; isFirst = false) {
      const page = await readMessages(this.#db, conversationId, { after, limit: PAGE });
      if (isFirst && last !== undefined && page[0]?.id !== last.id) return null;
      const more = isFirst && last !== undefined ? page.slice(1) : page;
      entry = append(entry, more);
      if (entry.characters > MAX_CHARACTERS) throw new HistoryTooLarge();
      const end = page.at(-1);
      if (end === undefined || page.length < PAGE) return entry;
      after = end.sequence;
    }
  }
}

function append({ messages, characters }: Entry, added: readonly Message[]): Entry {
  const kept = added.map(withoutDiffs);
  return { messages: [...messages, ...kept], characters: characters + charactersOf(kept) };
}

/** The model does not get diffs, so they neither take memory nor count for the size of a request. */
function withoutDiffs(message: Message): Message {
  if (message.type !== "tool") return message;
  const { display: _display, ...rest } = message;
  return rest;
}

const charactersOf = (messages: readonly Message[]): number => JSON.stringify(messages).length;

const SUMMARY_PAGE = 100;
/** Characters of JSON. Much of a history may hold nothing that a summary could use. */
const SUMMARY_CHARACTERS = 16 * 1024 * 1024;

/**
 * Reads the part of a history that the request for a summary can use: its beginning, which holds the task, and as much
 * of its end as there is room for. However long the history is, no more of it is in memory.
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

/** The first message with content is among this many messages. */
const BEGINNING = 5;

/** The tool_use ids of all earlier responses, read from the results: each call has one before the next request. */
export function toolCallIds(messages: readonly Message[]): Set<string> {
  const ids = new Set<string>();
  for (const message of messages) if (message.type === "tool") ids.add(message.content[0].toolCallId);
  return ids;
}
