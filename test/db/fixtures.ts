/** Owns: databases, conversations and messages for the tests of db/. Not here: plain records (records.ts). */
import { afterAll, onTestFinished } from "vitest";
import { commit } from "../../db/commit.ts";
import { type Database, openDatabase } from "../../db/connect.ts";
import type { Revision } from "../../protocol/commit.ts";
import { type Conversation, newConversation, type QueuedMessage } from "../../machine/conversation.ts";
import type { Notice } from "../../machine/effect.ts";
import type { ImageBlock, Message } from "../../machine/message.ts";
import type { ConversationConfig } from "../../protocol/conversation.ts";
import { freshDatabase } from "../support/database.ts";
import { chain, configOf, message, newId, type Fields } from "./records.ts";

export { chain, configOf, message, newId, type Fields } from "./records.ts";

type TestDatabase = Database & { readonly url: string };

let shared: Promise<TestDatabase> | undefined;

/** One database for a test file, whose tests use conversations with different ids. */
export function testDatabase(): Promise<TestDatabase> {
  shared ??= openFresh();
  return shared;
}

afterAll(async () => {
  await (await shared)?.close();
});

/** A database of its own, for a test that looks at all conversations or at the connections. */
export async function ownDatabase(): Promise<TestDatabase> {
  const db = await openFresh();
  onTestFinished(() => db.close());
  return db;
}

async function openFresh(): Promise<TestDatabase> {
  const url = await freshDatabase();
  return { ...openDatabase(url, { max: 4, applicationName: "test" }), url };
}

export function userMessage(sequence: number, text: string, id: string = newId(), images: ImageBlock[] = []) {
  return message(
    sequence,
    {
      type: "user",
      actor: "human",
      content: [{ type: "text", text }, ...images],
      display: { kind: "direct" },
    },
    id,
  );
}

export function toolMessage(sequence: number, toolCallId: string, output: ImageBlock[] = []): Message {
  return message(sequence, {
    type: "tool",
    actor: "system",
    content: [{ toolCallId, name: "bash", status: "completed", output, durationMs: 3 }],
  });
}

export function queued(text: string, messageId: string = newId(), images: ImageBlock[] = []): QueuedMessage {
  return { messageId, delivery: "followUp", text, images, createdAt: new Date().toISOString() };
}

export const warned: Notice = { name: "context.warned", data: { contextRatio: 0.81 } };

export function valueWith(changes: Partial<Conversation>): Conversation {
  return { ...newConversation("unrestricted", 1_000), ...changes };
}

/** Commits a conversation's first revision. */
export async function createConversation(
  db: Database,
  fields: Fields = {},
  createInput: { config?: Partial<ConversationConfig>; title?: string | null } = {},
): Promise<{ id: string; head: Revision }> {
  const id = createInput.config?.id ?? newId();
  const [head] = chain([fields]);
  if (head === undefined) throw new Error("a chain of one has a head");
  const config = configOf(id, createInput.config);
  const committed = await commit(db, id, [head], { config, title: createInput.title ?? null });
  if (committed.diverged) throw new Error("the conversation was not created");
  return { id, head };
}
