/**
 * Owns: the shape in which a conversation is shown (docs/http.md, Conversation), and reading one.
 * Not here: lists and the changes that need no workflow (conversations.ts), messages (messages.ts).
 */
import { eq } from "drizzle-orm";
import type { Mode, QueuedMessage, QueueHold, State } from "../machine/conversation.ts";
import type { Message } from "../machine/message.ts";
import type { ConversationConfig } from "../protocol/conversation.ts";
import type { SpentView } from "../protocol/spending.ts";
import { type UsageView, viewUsage } from "../machine/usage.ts";
import type { Database } from "./connect.ts";
import { cleanText } from "./json.ts";
import { readLast } from "./messages.ts";
import { conversationColumns, type ConversationRow, type Reader, toConfig, toState } from "./rows.ts";
import { conversations } from "./schema.ts";
import { spentOf } from "./spending.ts";

export type ConversationView = ConversationConfig & {
  readonly slug: string;
  readonly title: string;
  readonly mode: Mode;
  readonly state: State;
  readonly queue: readonly QueuedMessage[];
  readonly queueHeld: QueueHold | null;
  readonly usage: UsageView;
  /** By the conversation and its sub-agents. null: it is a sub-agent. */
  readonly spent: SpentView | null;
  /** Ids of the conversations that continue this one, oldest first. */
  readonly continuedTo: readonly string[];
  readonly archived: boolean;
  /** The number of the last event. */
  readonly lastEvent: number;
  /** RFC 3339 UTC, as are all times. */
  readonly createdAt: string;
  readonly updatedAt: string;
};

export const viewColumns = { ...conversationColumns, spent: spentOf.as("spent") };

type ViewRow = ConversationRow & { readonly spent: SpentView | null };

/** One conversation, sub-agents included; null when there is none. */
export async function getConversation(db: Database, id: string): Promise<ConversationView | null> {
  return readView(db.orm, id);
}

export type Snapshot = {
  readonly conversation: ConversationView;
  /** Ascending. */
  readonly messages: readonly Message[];
  readonly lastEvent: number;
};

/** A conversation and its last `limit` messages as of one moment, for the beginning of an event stream. */
export async function readSnapshot(db: Database, id: string, limit: number): Promise<Snapshot | null> {
  return db.orm.transaction(
    async (transaction) => {
      const conversation = await readView(transaction, id);
      if (conversation === null) return null;
      const messages = await readLast(transaction, id, limit);
      return { conversation, messages, lastEvent: conversation.lastEvent };
    },
    { isolationLevel: "repeatable read", accessMode: "read only" },
  );
}

async function readView(reader: Reader, id: string): Promise<ConversationView | null> {
  const [row] = await reader
    .select(viewColumns)
    .from(conversations)
    .where(eq(conversations.id, cleanText(id)));
  return row === undefined ? null : toView(row);
}

export function toView(row: ViewRow): ConversationView {
  return {
    ...toConfig(row),
    slug: row.slug,
    title: row.title,
    mode: row.mode,
    state: toState(row),
    queue: row.queue,
    queueHeld: row.machine.queueHeld,
    usage: viewUsage(row.usage),
    spent: row.spent,
    continuedTo: row.continuedTo,
    archived: row.archived,
    lastEvent: row.lastEvent,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}
