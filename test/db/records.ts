/**
 * Owns: records as the machine makes them: configurations, chains of revisions, messages. Without a database and without
 * a test runner, so that measurements can use them, too.
 */
import { randomUUID } from "node:crypto";
import { newConversation } from "../../machine/conversation.ts";
import { idAt } from "../../machine/ids.ts";
import type { Message, MessageBody } from "../../machine/message.ts";
import type { Revision } from "../../protocol/commit.ts";
import type { ConversationConfig } from "../../protocol/conversation.ts";

export function newId(): string {
  return idAt({ at: Date.now(), seed: randomUUID() }, 0);
}

export function configOf(id: string, changes: Partial<ConversationConfig> = {}): ConversationConfig {
  return {
    id,
    cwd: "/home/me/app",
    host: "laptop",
    model: "some-model",
    scripted: false,
    sandbox: { kind: "unavailable", reason: "not on this kernel" },
    initialMode: "unrestricted",
    parentId: null,
    continuedFrom: null,
    userInitiated: true,
    ...changes,
  };
}

export type Fields = Partial<Omit<Revision, "number" | "id" | "previous">>;

/** Revisions that follow one another; a conversation's `sequence` is not kept in step unless given. */
export function chain(
  fields: readonly Fields[],
  after: { number: number; id: string } | null = null,
): Revision[] {
  let head = after;
  return fields.map((field) => {
    const revision: Revision = {
      number: (head?.number ?? 0) + 1,
      id: randomUUID(),
      previous: head?.id ?? null,
      at: new Date().toISOString(),
      conversation: newConversation("unrestricted", 1_000),
      awaits: null,
      messages: [],
      notices: [],
      archived: null,
      ...field,
    };
    head = revision;
    return revision;
  });
}

export function message(sequence: number, body: MessageBody, id: string = newId()): Message {
  return { ...body, id, sequence, cycleId: null, createdAt: new Date().toISOString() };
}
