/**
 * Owns: the numbered record of one transition: what a commit writes, and what lets Postgres tell a late writer
 * from a fork. Steps count from 1 in each conversation; `previous` names the batch before.
 */
import { awaitedOperation, type Conversation } from "../machine/conversation.ts";
import type { Notice } from "../machine/effect.ts";
import type { Message } from "../machine/message.ts";

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

/** The value after a batch. */
export type Value = Pick<Batch, "conversation" | "awaits">;

/** A notice that says nothing but what the value says is sent without it. */
type ShortNotice =
  | { readonly name: "state.changed"; readonly data: { readonly cycleId: string | null } }
  | { readonly name: "queue.changed"; readonly data: Record<string, never> };

/** What one batch appends. */
export type Appended = Omit<Batch, keyof Value | "notices"> & {
  readonly notices: readonly (Notice | ShortNotice)[];
};

/** Batches on their way to Postgres: each value would be overwritten by the next, so only the last is sent, once. */
export type Packed = { readonly batches: readonly Appended[]; readonly value: Value | null };

/** Who is about to perform the operation that the last batch ordered. */
export type Claim = {
  readonly operationId: string;
  /** A later order of the same operation is valid, for the one before it has not started. */
  readonly dispatchAttempt: number;
  /** Of two with the same order the first performs; its own repetitions are the same. */
  readonly by: string;
  /** The restarts of the whole system that who ordered it knew of; fewer than the row has, and it is too late. */
  readonly restarts: number;
};

/** Of one commit as JSON, unless a single batch has more: Temporal takes at most 2 MiB in one piece. */
export const COMMIT_BYTES = 1024 * 1024;

/** The type of the failure of a commit that Postgres refuses, and would refuse again; its message says why. */
export const COMMIT_REFUSED = "CommitRefused";

/** A row's place in its conversation's history: the step that it has, and the id of that step's batch. */
export type RowVersion = { readonly step: number; readonly batchId: string };

/** What Postgres answers to a commit. */
export type Committed = {
  /** The row's step after the commit. */
  readonly confirmed: number;
  /** The id of the batch at that step. */
  readonly batchId: string | null;
  /** The operation that the row waits for now. */
  readonly awaits: string | null;
  /** How often the whole system was restarted with this conversation open. */
  readonly restarts: number;
  /** The batches do not follow from the row: another history has been written, or this one's past is missing. */
  readonly fork: boolean;
};

/** What a step stores: the value after it, and what it adds. */
export type Change = Pick<Batch, "conversation" | "messages" | "notices">;

/** The batch of one transition. */
export function toBatch(
  head: { readonly step: number; readonly id: string; readonly previous: string | null; readonly at: string },
  { conversation, messages, notices }: Change,
): Batch {
  const awaits = awaitedOperation(conversation.state);
  return { ...head, conversation, awaits, messages, notices, archived: null };
}

export function pack(batches: readonly Batch[]): Packed {
  const last = batches.at(-1);
  return {
    batches: batches.map((batch) => {
      const { conversation, awaits, notices, ...appended } = batch;
      return {
        ...appended,
        notices: batch === last ? notices.map((notice) => shorten(notice, batch)) : notices,
      };
    }),
    value: last === undefined ? null : { conversation: last.conversation, awaits: last.awaits },
  };
}

/** The notices of a packed batch, whole again. */
export function unpackNotice(notice: Notice | ShortNotice, value: Value | null): Notice {
  if (value === null) return notice as Notice;
  const { state, queue } = value.conversation;
  if (notice.name === "state.changed") return { name: notice.name, data: { state, ...notice.data } };
  if (notice.name === "queue.changed") return { name: notice.name, data: { queue, ...notice.data } };
  return notice;
}

function shorten(notice: Notice, { conversation }: Value): Notice | ShortNotice {
  if (notice.name === "state.changed" && notice.data.state === conversation.state)
    return { name: notice.name, data: { cycleId: notice.data.cycleId } };
  if (notice.name === "queue.changed" && notice.data.queue === conversation.queue)
    return { name: notice.name, data: {} };
  return notice;
}
