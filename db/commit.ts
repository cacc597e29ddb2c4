/**
 * Owns: the one way in which a conversation's rows change as its machine moves: the fence of rules 1 to 3.
 * The decision itself is in Postgres, in `commit_batches` (migrations/0001_commit_batches.sql), so that a commit
 * is one round trip.
 */
import {
  pack,
  unpackNotice,
  type Batch,
  type Claim,
  type Committed,
  type Packed,
} from "../protocol/commit.ts";
import type { Conversation } from "../machine/conversation.ts";
import { blocksOf, type Message } from "../machine/message.ts";
import type { ConversationConfig } from "../protocol/conversation.ts";
import type { Database } from "./connect.ts";
import { encodeJson } from "./json.ts";
import { type MessageJson, messageOfJson } from "./rows.ts";
import { slugFrom, STAND_IN_TITLE, titleFrom } from "./title.ts";

/** What a first commit needs to make the row; the workflow's `CreateInput` is one. */
export type NewConversation = { readonly config: ConversationConfig; readonly title: string | null };

/**
 * Applies, in order and in one transaction, exactly those batches that are above the row's step (REQ-BED-007).
 *
 * `fork` means that nothing was written because the batches do not follow from the row, or that there is no row
 * (deleted, or its parent is) and `createInput` cannot make one: then `confirmed` is 0.
 * Rejects when the database cannot be reached (`isUnavailable`); the same call may be repeated.
 *
 * @param batches ascending by step. Those that are applied already are skipped.
 * @param claim is granted once: to another the answer says that the row waits for nothing.
 * @param createInput makes the row if there is none yet and the first batch has step 1; else ignored.
 */
export async function commit(
  db: Database,
  conversationId: string,
  batches: readonly Batch[],
  createInput?: NewConversation,
  claim?: Claim,
): Promise<Committed> {
  const parts = { createInput: createInput ?? null, claim: claim ?? null, since: null };
  return (await commitAndRead(db, conversationId, pack(batches), parts)).committed;
}

/** A message that the caller has read; what comes after it is what is news to it. */
export type LastRead = Pick<Message, "id" | "sequence">;

/**
 * The same, and in the same round trip the messages after `since`, ascending, for who is about to perform the
 * operation. `news` is null when the claim is not granted, there is no such message, or there are many after it.
 */
export async function commitAndRead(
  db: Database,
  conversationId: string,
  { batches, value }: Packed,
  {
    createInput,
    claim,
    since,
  }: { createInput: NewConversation | null; claim: Claim | null; since: LastRead | null },
): Promise<{ readonly committed: Committed; readonly news: readonly Message[] | null }> {
  const payload = encodeJson({
    id: conversationId,
    createInput: createInput === null ? null : rowOf(createInput, batches),
    claim,
    since: since === null ? null : { id: since.id, sequence: since.sequence },
    batches: batches.map((batch) => ({
      step: batch.step,
      id: batch.id,
      previous: batch.previous,
      at: batch.at,
      archived: batch.archived,
      title: titleFrom(batch.messages),
      messages: batch.messages,
      events: [
        ...batch.messages.map((message) => ({ name: "message.added", messageId: message.id })),
        ...batch.notices.map((notice) => unpackNotice(notice, value)),
      ],
    })),
    ...columnsOf(value),
    images: [...new Set(imagesOf(batches, value))],
  });
  const rows = await db.sql<
    { answer: Committed & { readonly news: readonly MessageJson[] | null } }[]
  >`select commit_batches(${payload}::text::jsonb) as answer`;
  const [row] = rows;
  if (row === undefined) throw new Error("commit_batches returned no row");
  const { news, ...committed } = row.answer;
  return { committed, news: news?.map(messageOfJson) ?? null };
}

function rowOf({ config, title }: NewConversation, batches: Packed["batches"]) {
  const chosen = title?.trim() === "" ? null : title;
  const found = chosen ?? titleFrom(batches.flatMap((batch) => batch.messages));
  const shown = found ?? STAND_IN_TITLE;
  return { ...config, title: shown, titled: found !== null, slug: slugFrom(shown) };
}

/** The columns of a value; `loadConversation` puts them together again. */
function columnsOf(value: Packed["value"]) {
  if (value === null) return {};
  const { state, mode, usage, queue, ...machine } = value.conversation satisfies Conversation;
  const { kind, ...stateData } = state;
  return {
    state: kind,
    stateData,
    mode,
    usage,
    machine,
    awaits: value.awaits,
    queue: queue.map((message, position) => ({ ...message, position })),
  };
}

function imagesOf(batches: Packed["batches"], value: Packed["value"]): string[] {
  const messages = batches.flatMap((batch) => batch.messages);
  const queue = value?.conversation.queue ?? [];
  const blocks = [...messages.flatMap(blocksOf), ...queue.flatMap((message) => message.images)];
  return blocks.flatMap((block) => (block.type === "image" && HASH.test(block.hash) ? [block.hash] : []));
}

const HASH = /^[0-9a-f]{64}$/;
