/**
 * Owns: the commit, the only way in which a transition changes a conversation's rows: the fence of rules 1 to 3. The
 * function `commit_revisions` in Postgres (migrations/0004_spending.sql) decides what applies, so that a commit
 * is one round trip.
 */
import {
  pack,
  unpackNotice,
  type Revision,
  type Claim,
  type Committed,
  type Packed,
} from "../protocol/commit.ts";
import type { Conversation } from "../machine/conversation.ts";
import { blocksOf, type Charge, type Message } from "../machine/message.ts";
import type { ConversationConfig } from "../protocol/conversation.ts";
import { IMAGE_HASH } from "../protocol/formats.ts";
import { dayOf, type Sums } from "../protocol/spending.ts";
import { STAND_IN_TITLE, titleFrom } from "../protocol/title.ts";
import type { Database } from "./connect.ts";
import { encodeJson } from "./json.ts";
import { type MessageJson, messageOfJson } from "./rows.ts";
import { slugFrom } from "./slug.ts";

/** The input from which a first commit creates the row; the workflow's `CreateInput` is one. */
export type NewConversation = { readonly config: ConversationConfig; readonly title: string | null };

/**
 * Applies, in order and in one transaction, exactly the revisions that are above the row's (REQ-BED-007).
 *
 * `diverged` means that nothing was written: either the revisions do not follow from the row, or there is no row and
 * `createInput` cannot make one. In the second case the row or its parent is deleted, and `confirmed` is 0.
 * Rejects when the database cannot be reached (`isUnavailable`); the same call may be repeated.
 *
 * @param revisions ascending. Revisions that are applied already are skipped.
 * @param claim is granted once. The answer to any other claim says that the row waits for nothing.
 * @param createInput makes the row if there is none yet and the first revision has number 1; else ignored.
 */
export async function commit(
  db: Database,
  conversationId: string,
  revisions: readonly Revision[],
  createInput?: NewConversation,
  claim?: Claim,
): Promise<Committed> {
  const parts = { createInput: createInput ?? null, claim: claim ?? null, lastRead: null };
  return (await commitAndRead(db, conversationId, pack(revisions), parts)).committed;
}

/** A message that the caller has read; its cursor in the conversation. */
export type LastRead = Pick<Message, "id" | "sequence">;

/** Which sums the claimant wants to know: of its conversation; of the day, `YYYY-MM-DD`. */
export type WantedSums = { readonly conversation: boolean; readonly day: string | null };

/** Those that were asked for; the others are null. */
export type FoundSums = { readonly [K in keyof Sums]: Sums[K] | null };

/**
 * The same, and in the same round trip reads the messages after `lastRead`, ascending, for the activity that is about
 * to perform the operation. `newMessages` is null when the claim is not granted, there is no such message, or there are
 * many after it. `sums` is null when the claim is not granted, or none are wanted.
 */
export async function commitAndRead(
  db: Database,
  conversationId: string,
  { revisions, value }: Packed,
  {
    createInput,
    claim,
    lastRead,
    sums = null,
  }: {
    createInput: NewConversation | null;
    claim: Claim | null;
    lastRead: LastRead | null;
    sums?: WantedSums | null;
  },
): Promise<CommittedAndRead> {
  const payload = encodeJson({
    id: conversationId,
    createInput: createInput === null ? null : rowOf(createInput, revisions),
    claim,
    lastRead: lastRead === null ? null : { id: lastRead.id, sequence: lastRead.sequence },
    sums,
    charges: revisions.flatMap(({ number, at, charges = [] }) =>
      charges.map((charge) => ({ number, day: dayOf(new Date(at)), ...countable(charge) })),
    ),
    revisions: revisions.map((revision) => ({
      number: revision.number,
      id: revision.id,
      previous: revision.previous,
      at: revision.at,
      archived: revision.archived,
      title: titleFrom(revision.messages),
      messages: revision.messages,
      events: [
        ...revision.messages.map((message) => ({ name: "message.added", messageId: message.id })),
        ...revision.notices.map((notice) => unpackNotice(notice, value)),
      ],
    })),
    ...columnsOf(value),
    images: [...new Set(imagesOf(revisions, value))],
  });
  const rows = await db.sql<
    {
      answer: Committed & {
        readonly newMessages: readonly MessageJson[] | null;
        readonly sums: FoundSums | null;
      };
    }[]
  >`select commit_revisions(${payload}::text::jsonb) as answer`;
  const [row] = rows;
  if (row === undefined) throw new Error("commit_revisions returned no row");
  const { newMessages, sums: found, ...committed } = row.answer;
  return { committed, newMessages: newMessages?.map(messageOfJson) ?? null, sums: found };
}

type CommittedAndRead = {
  readonly committed: Committed;
  readonly newMessages: readonly Message[] | null;
  readonly sums: FoundSums | null;
};

/** Tokens and billionths of a dollar, far beyond what one request can have. */
const MOST_TOKENS = 1e12;
const MOST_NANODOLLARS = 1e15;

/** A provider may report any number, and none of them may stop a commit. */
function countable({ nanodollars, ...tokens }: Charge) {
  const { inputTokens, outputTokens, cacheReadTokens, cacheCreationTokens } = tokens;
  return {
    inputTokens: whole(inputTokens, MOST_TOKENS),
    outputTokens: whole(outputTokens, MOST_TOKENS),
    cacheReadTokens: whole(cacheReadTokens, MOST_TOKENS),
    cacheCreationTokens: whole(cacheCreationTokens, MOST_TOKENS),
    nanodollars: nanodollars === null ? null : whole(nanodollars, MOST_NANODOLLARS),
  };
}

const whole = (value: number, most: number): number =>
  Number.isFinite(value) ? Math.min(Math.max(0, Math.ceil(value)), most) : 0;

function rowOf({ config, title }: NewConversation, revisions: Packed["revisions"]) {
  const chosen = title?.trim() === "" ? null : title;
  const found = chosen ?? titleFrom(revisions.flatMap((revision) => revision.messages));
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

function imagesOf(revisions: Packed["revisions"], value: Packed["value"]): string[] {
  const messages = revisions.flatMap((revision) => revision.messages);
  const queue = value?.conversation.queue ?? [];
  const blocks = [...messages.flatMap(blocksOf), ...queue.flatMap((message) => message.images)];
  return blocks.flatMap((block) =>
    block.type === "image" && IMAGE_HASH.test(block.hash) ? [block.hash] : [],
  );
}
