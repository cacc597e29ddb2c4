/**
 * Owns: how rows become values again: a conversation with its queue in one statement, and a message.
 * Not here: which rows are read, and what is shown of them.
 */
import { getTableColumns, sql } from "drizzle-orm";
import type { Conversation, QueuedMessage, State } from "../machine/conversation.ts";
import type { Json, Message } from "../machine/message.ts";
import type { ConversationConfig } from "../protocol/conversation.ts";
import type { Orm } from "./connect.ts";
import { conversations, type messages } from "./schema.ts";

/** A pool or a transaction. */
export type Reader = Pick<Orm, "select">;

/** In SQL, so that one statement reads a conversation with its queue as of one moment. */
const queueOf = sql<QueuedMessage[]>`(
  select coalesce(jsonb_agg(jsonb_build_object(
    'messageId', q.message_id, 'delivery', q.delivery, 'text', q.text, 'images', q.images,
    'createdAt', to_char(q.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) order by q.position), '[]')
  from queue q where q.conversation_id = conversations.id)`;

const continuedToOf = sql<string[]>`(
  select coalesce(jsonb_agg(c.id order by c.created_at, c.id), '[]')
  from conversations c where c.continued_from = conversations.id)`;

export const conversationColumns = {
  ...getTableColumns(conversations),
  queue: queueOf.as("queue_rows"),
  continuedTo: continuedToOf.as("continued_to"),
};

export type ConversationRow = typeof conversations.$inferSelect & {
  readonly queue: QueuedMessage[];
  readonly continuedTo: string[];
};

export function toConfig(row: ConversationRow): ConversationConfig {
  return {
    id: row.id,
    cwd: row.cwd,
    host: row.host,
    model: row.model,
    scripted: row.scripted,
    sandbox: row.sandbox,
    initialMode: row.initialMode,
    parentId: row.parentConversationId,
    continuedFrom: row.continuedFrom,
    userInitiated: row.userInitiated,
  };
}

/** The value as it was committed. */
export function toConversation(row: ConversationRow): Conversation {
  return { ...row.machine, state: toState(row), mode: row.mode, usage: row.usage, queue: row.queue };
}

export function toState(row: Pick<ConversationRow, "state" | "stateData">): State {
  // commit.ts takes a state apart and this puts it together: the columns hold a State and nothing else.
  return { kind: row.state, ...row.stateData } as State;
}

/** A row of messages as Postgres itself writes it in JSON. */
export type MessageJson = {
  readonly id: string;
  readonly sequence_id: number;
  readonly cycle_id: string | null;
  readonly message_type: Message["type"];
  readonly actor_kind: Message["actor"];
  readonly content: Json;
  readonly display_data: Json;
  readonly usage_data: Json;
  readonly created_at: string;
};

export const messageOfJson = (row: MessageJson): Message =>
  toMessage({
    id: row.id,
    sequenceId: row.sequence_id,
    cycleId: row.cycle_id,
    messageType: row.message_type,
    actorKind: row.actor_kind,
    content: row.content,
    displayData: row.display_data,
    usageData: row.usage_data,
    createdAt: new Date(row.created_at),
  });

export function toMessage(row: Omit<typeof messages.$inferSelect, "conversationId">): Message {
  const message = {
    id: row.id,
    sequence: row.sequenceId,
    cycleId: row.cycleId,
    type: row.messageType,
    actor: row.actorKind,
    content: row.content,
    ...(row.displayData === null ? {} : { display: row.displayData }),
    ...(row.usageData === null ? {} : { usage: row.usageData }),
    createdAt: row.createdAt.toISOString(),
  };
  // As above: only commit.ts writes messages.
  return message as Message;
}
