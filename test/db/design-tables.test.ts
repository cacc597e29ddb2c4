/** REQ-BED-007: the migrated database has the tables of the design: their columns, keys and defaults. */
import { expect, test } from "vitest";
import { commit } from "../../db/commit.ts";
import { deleteConversation } from "../../db/conversations.ts";
import { chain, createConversation, ownDatabase, userMessage, valueWith } from "./fixtures.ts";

/** Columns by table; true: may be null. */
const DESIGN: Readonly<Record<string, Readonly<Record<string, boolean>>>> = {
  conversations: {
    id: false,
    slug: false,
    cwd: false,
    parent_conversation_id: true,
    user_initiated: false,
    state: false,
    state_data: false,
    state_updated_at: false,
    created_at: false,
    updated_at: false,
    archived: false,
  },
  messages: {
    id: false,
    conversation_id: false,
    sequence_id: false,
    message_type: false,
    actor_kind: false,
    content: false,
    display_data: true,
    usage_data: true,
    created_at: false,
  },
};

test("both tables have every column of the design, and the same ones are required", async () => {
  const { sql } = await ownDatabase();
  for (const [table, columns] of Object.entries(DESIGN)) {
    const rows = await sql<{ name: string; nullable: boolean }[]>`
      select column_name as name, is_nullable = 'YES' as nullable from information_schema.columns
      where table_schema = 'public' and table_name = ${table}`;
    const found = Object.fromEntries(rows.map(({ name, nullable }) => [name, nullable]));
    expect(found, table).toMatchObject(columns);
  }
});

test("a conversation is idle and not archived by default; ids and slugs are unique", async () => {
  const { sql } = await ownDatabase();
  const defaults = await sql<{ name: string; value: string }[]>`
    select column_name as name, column_default as value from information_schema.columns
    where table_name = 'conversations' and column_name in ('state', 'archived') order by 1`;
  expect(defaults.map(({ name, value }) => [name, value])).toEqual([
    ["archived", "false"],
    ["state", "'idle'::text"],
  ]);
  const unique = await sql<{ columns: string }[]>`
    select pg_get_constraintdef(oid) as columns from pg_constraint
    where conrelid = 'conversations'::regclass and contype in ('p', 'u') order by 1`;
  expect(unique.map(({ columns }) => columns)).toEqual(["PRIMARY KEY (id)", "UNIQUE (slug)"]);
});

test("a message belongs to a conversation, a sub-agent to its parent, and both go with it", async () => {
  const db = await ownDatabase();
  const { id } = await createConversation(db, { messages: [userMessage(1, "x")] });
  const child = await createConversation(
    db,
    { messages: [userMessage(1, "y")] },
    { config: { parentId: id, userInitiated: false } },
  );
  const stored = await db.sql`
    select parent_conversation_id, user_initiated from conversations order by user_initiated`;
  expect(stored).toEqual([
    { parent_conversation_id: id, user_initiated: false },
    { parent_conversation_id: null, user_initiated: true },
  ]);
  await expect(
    db.sql`update messages set conversation_id = 'nobody' where conversation_id = ${child.id}`,
  ).rejects.toThrow(/foreign key/);
  await deleteConversation(db, id);
  expect(await db.sql`select from messages`).toHaveLength(0);
  expect(await db.sql`select from conversations`).toHaveLength(0);
});

test("a state is stored as its kind and its other fields; the summary is a message of the type continuation", async () => {
  const db = await ownDatabase();
  const { id, head } = await createConversation(db);
  const finalUsage = { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheCreationTokens: 4 };
  const state = { kind: "context_exhausted", summary: "In short.", source: "model", finalUsage } as const;
  const summary = {
    ...{ id: "s1", sequence: 1, cycleId: null, createdAt: "2025-01-01T00:00:00.000Z" },
    ...({ type: "continuation", actor: "llm_agent", content: [{ summary: "In short." }] } as const),
  };
  const fields = { messages: [summary], conversation: valueWith({ state, sequence: 1 }) };
  await commit(db, id, chain([fields], head));
  expect(await db.sql`select state, state_data from conversations`).toEqual([
    { state: "context_exhausted", state_data: { summary: "In short.", source: "model", finalUsage } },
  ]);
  expect(await db.sql`select message_type, actor_kind, sequence_id, content from messages`).toEqual([
    {
      ...{ message_type: "continuation", actor_kind: "llm_agent", sequence_id: 1 },
      content: [{ summary: "In short." }],
    },
  ]);
});
