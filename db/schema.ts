/**
 * Owns: the tables (REQ-BED-007). Their migrations are generated from here (`npx drizzle-kit generate --config
 * db/drizzle.config.ts`), except the function `commit_revisions` and the triggers, which are written by hand.
 */
import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  customType,
  date,
  foreignKey,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
  unique,
} from "drizzle-orm/pg-core";
import type { Claim } from "../protocol/commit.ts";
import type { Conversation, Mode, QueuedMessage, State, Usage } from "../machine/conversation.ts";
import type { ImageBlock, Json, Message } from "../machine/message.ts";
import type { Sandbox } from "../machine/conversation.ts";

/** The parts of the machine's value that have no column of their own. */
export type MachineData = Omit<Conversation, "state" | "mode" | "queue" | "usage">;

const time = (name: string) => timestamp(name, { withTimezone: true, precision: 3 });
const counter = (name: string) => bigint(name, { mode: "number" });
/** The number of a transaction, which never comes again in a database. */
const transactionId = customType<{ data: string }>({ dataType: () => "xid8" });
const bytes = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });

export const conversations = pgTable(
  "conversations",
  {
    id: text("id").primaryKey(),
    slug: text("slug").notNull().unique(),
    title: text("title").notNull(),
    /** The title was chosen, or derived from the first message; else it is a stand-in. */
    titled: boolean("titled").notNull(),
    cwd: text("cwd").notNull(),
    host: text("host").notNull(),
    model: text("model").notNull(),
    scripted: boolean("scripted").notNull(),
    sandbox: jsonb("sandbox").$type<Sandbox>().notNull(),
    initialMode: text("initial_mode").$type<Mode>().notNull(),
    parentConversationId: text("parent_conversation_id"),
    continuedFrom: text("continued_from"),
    userInitiated: boolean("user_initiated").notNull(),
    state: text("state").$type<State["kind"]>().notNull().default("idle"),
    /** The state's fields without its kind. */
    stateData: jsonb("state_data").$type<Record<string, Json>>().notNull(),
    stateUpdatedAt: time("state_updated_at").notNull(),
    mode: text("mode").$type<Mode>().notNull(),
    usage: jsonb("usage").$type<Usage>().notNull(),
    machine: jsonb("machine").$type<MachineData>().notNull(),
    /** Number and id of the last revision, and the operation that the state waits for. */
    revision: counter("revision").notNull(),
    revisionId: text("revision_id"),
    awaits: text("awaits"),
    /** The claim that was granted on that operation (protocol/commit.ts). */
    claim: jsonb("claim").$type<Claim>(),
    /**
     * How often the whole system was restarted with this conversation open. Operations ordered before do not begin
     * after.
     */
    restarts: integer("restarts").notNull().default(0),
    /** The transaction that changed the row last; a trigger sets it. */
    changed: transactionId("changed")
      .notNull()
      .default(sql`pg_current_xact_id()`),
    lastEvent: counter("last_event").notNull(),
    archived: boolean("archived").notNull().default(false),
    createdAt: time("created_at").notNull(),
    updatedAt: time("updated_at").notNull(),
  },
  (t) => [
    foreignKey({ columns: [t.parentConversationId], foreignColumns: [t.id] }).onDelete("cascade"),
    foreignKey({ columns: [t.continuedFrom], foreignColumns: [t.id] }).onDelete("set null"),
    index("conversations_newest")
      .on(t.createdAt, t.id)
      .where(sql`parent_conversation_id is null`),
    index("conversations_children").on(t.parentConversationId, t.createdAt, t.id),
    index("conversations_continued").on(t.continuedFrom, t.createdAt, t.id),
  ],
);

/** Conversations that were removed, without sub-agents, for clients that come back to their list. A trigger adds them. */
export const removals = pgTable("removals", {
  conversationId: text("conversation_id").primaryKey(),
  changed: transactionId("changed")
    .notNull()
    .default(sql`pg_current_xact_id()`),
  removedAt: time("removed_at").notNull().defaultNow(),
});

const conversationId = () =>
  text("conversation_id")
    .notNull()
    .references(() => conversations.id, { onDelete: "cascade" });

export const messages = pgTable(
  "messages",
  {
    conversationId: conversationId(),
    id: text("id").notNull(),
    sequenceId: integer("sequence_id").notNull(),
    messageType: text("message_type").$type<Message["type"]>().notNull(),
    actorKind: text("actor_kind").$type<Message["actor"]>().notNull(),
    content: jsonb("content").$type<Json>().notNull(),
    displayData: jsonb("display_data").$type<Json>(),
    usageData: jsonb("usage_data").$type<Json>(),
    cycleId: text("cycle_id"),
    createdAt: time("created_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.conversationId, t.id] }),
    unique("messages_sequence").on(t.conversationId, t.sequenceId),
    // One tool message answers every call, so these are all tool_use ids. Hashed, because an index entry is bounded.
    index("messages_tool_call")
      .on(t.conversationId, sql`md5(content -> 0 ->> 'toolCallId')`)
      .where(sql`message_type = 'tool'`),
  ],
);

/** `message.added` refers to its message; every other event holds its data. */
export const events = pgTable(
  "events",
  {
    conversationId: conversationId(),
    number: counter("number").notNull(),
    name: text("name").notNull(),
    data: jsonb("data").$type<Json>(),
    messageId: text("message_id"),
    createdAt: time("created_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.conversationId, t.number] })],
);

export const queue = pgTable(
  "queue",
  {
    conversationId: conversationId(),
    messageId: text("message_id").notNull(),
    position: integer("position").notNull(),
    delivery: text("delivery").$type<QueuedMessage["delivery"]>().notNull(),
    text: text("text").notNull(),
    images: jsonb("images").$type<readonly ImageBlock[]>().notNull(),
    createdAt: time("created_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.conversationId, t.messageId] })],
);

/** Bytes under the lower-case hex SHA-256 of them, whichever conversations refer to them. */
export const images = pgTable("images", {
  hash: text("hash").primaryKey(),
  mediaType: text("media_type").notNull(),
  width: integer("width").notNull(),
  height: integer("height").notNull(),
  bytes: bytes("bytes").notNull(),
  /** Renewed when the same bytes are put again. */
  createdAt: time("created_at").notNull().defaultNow(),
});

/** Which conversation may read which image. Without a foreign key to images: missing bytes must not stop a commit. */
export const imageRefs = pgTable(
  "image_refs",
  { conversationId: conversationId(), hash: text("hash").notNull() },
  (t) => [primaryKey({ columns: [t.conversationId, t.hash] }), index("image_refs_hash").on(t.hash)],
);

/**
 * What a conversation and its sub-agents have spent, by day (UTC) and model. Without a foreign key: the sum of a day
 * keeps what a removed conversation has spent, under the empty id (spending.ts).
 */
export const spending = pgTable(
  "spending",
  {
    /** Never a sub-agent's. */
    conversationId: text("conversation_id").notNull(),
    day: date("day", { mode: "string" }).notNull(),
    model: text("model").notNull(),
    inputTokens: counter("input_tokens").notNull(),
    outputTokens: counter("output_tokens").notNull(),
    cacheReadTokens: counter("cache_read_tokens").notNull(),
    cacheCreationTokens: counter("cache_creation_tokens").notNull(),
    /** Billionths of a US dollar, of the requests whose model had a price. */
    nanodollars: counter("nanodollars").notNull(),
    /** Requests whose model had none. */
    unpricedRequests: counter("unpriced_requests").notNull(),
  },
  (t) => [primaryKey({ columns: [t.conversationId, t.day, t.model] }), index("spending_day").on(t.day)],
);

/** One row: the provider's last list of models. */
export const providerModels = pgTable("provider_models", {
  only: boolean("only").primaryKey().default(true),
  list: jsonb("list").$type<Json>().notNull(),
  updatedAt: time("updated_at").notNull().defaultNow(),
});

/**
 * What processes did for a turn, and how long it took (observability/spans.ts): for people, and swept after some days. No
 * key over the whole row: a span is written once.
 */
export const spans = pgTable(
  "spans",
  {
    conversationId: conversationId(),
    cycleId: text("cycle_id"),
    operationId: text("operation_id"),
    traceId: text("trace_id").notNull(),
    spanId: text("span_id").notNull(),
    name: text("name").notNull(),
    startedAt: time("started_at").notNull(),
    endedAt: time("ended_at").notNull(),
    marks: jsonb("marks").$type<readonly { readonly name: string; readonly at: number }[]>().notNull(),
    attributes: jsonb("attributes").$type<Readonly<Record<string, string | number | boolean>>>().notNull(),
  },
  (t) => [
    index("spans_of_cycle").on(t.conversationId, t.cycleId, t.startedAt),
    // Rows come in the order of their time, so a few pages of this index cover the table.
    index("spans_age").using("brin", t.startedAt),
  ],
);
