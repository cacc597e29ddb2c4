/**
 * Owns: the numbered record of one transition: what a commit writes, and what lets Postgres tell a late writer
 * from a fork. Steps count from 1 in each conversation; `previous` names the batch before.
 */
import { awaitedOperation, type Conversation } from "./conversation.ts";
import type { Effect, Notice } from "./effect.ts";
import type { Message } from "./message.ts";

export type Batch = {
  readonly step: number;
  readonly id: string;
  /** The id of batch `step - 1`; null for the first. */
  readonly previous: string | null;
  /** RFC 3339 UTC. */
  readonly at: string;
  /** The value after the transition. */
  readonly conversation: Conversation;
  /** The operation, by generation id, that this value waits for. */
  readonly awaits: string | null;
  readonly messages: readonly Message[];
  readonly notices: readonly Notice[];
  /** Set when the batch archives or un-archives. */
  readonly archived: boolean | null;
};

/** Who is about to perform the operation that the last batch ordered. */
export type Claim = {
  readonly operationId: string;
  /** A later order of the same operation is valid, for the one before it has not started. */
  readonly order: number;
  /** Of two with the same order the first performs; its own repetitions are the same. */
  readonly by: string;
};

/** What Postgres answers to a commit. */
export type Committed = {
  /** The row's step after the commit. */
  readonly confirmed: number;
  /** The id of the batch at that step. */
  readonly batchId: string | null;
  /** The operation that the row waits for now. */
  readonly awaits: string | null;
  /** The batches do not follow from the row: another history has been written, or this one's past is missing. */
  readonly fork: boolean;
};

/** The batch of one transition's effects. */
export function toBatch(
  head: { readonly step: number; readonly id: string; readonly previous: string | null; readonly at: string },
  conversation: Conversation,
  effects: readonly Effect[],
): Batch {
  const messages: Message[] = [];
  const notices: Notice[] = [];
  for (const effect of effects) {
    if (effect.kind === "persist_message") messages.push(effect.message);
    if (effect.kind === "notify_client") notices.push(effect.notice);
  }
  return {
    ...head,
    conversation,
    awaits: awaitedOperation(conversation.state),
    messages,
    notices,
    archived: null,
  };
}
