/**
 * Owns: a revision, which is the numbered record of one transition, and the commit that writes several revisions.
 * Numbers count from 1 in each conversation. By `previous`, Postgres tells a late writer from a writer with another
 * history.
 */
import { awaitedOperation, type Conversation } from "../machine/conversation.ts";
import type { Notice } from "../machine/effect.ts";
import type { Charge, Message } from "../machine/message.ts";

export type Revision = {
  readonly number: number;
  readonly id: string;
  /** The id of revision `number - 1`; null for the first. */
  readonly previous: string | null;
  /** RFC 3339 UTC. */
  readonly at: string;
  /** The value after the transition. */
  readonly conversation: Conversation;
  /** The operation, by generation id, that this value waits for. */
  readonly awaits: string | null;
  readonly messages: readonly Message[];
  readonly notices: readonly Notice[];
  /** Absent in revisions of before there were any. */
  readonly charges?: readonly Charge[];
  /** Set when the revision archives or un-archives. */
  readonly archived: boolean | null;
};

/** The value after a revision. */
export type Value = Pick<Revision, "conversation" | "awaits">;

/** A notice whose data repeats the value is sent without that data. */
type ShortNotice =
  | { readonly name: "state.changed"; readonly data: { readonly cycleId: string | null } }
  | { readonly name: "queue.changed"; readonly data: Record<string, never> };

/** The part of a revision that a commit appends. */
type Appended = Omit<Revision, keyof Value | "notices"> & {
  readonly notices: readonly (Notice | ShortNotice)[];
};

/** Revisions on their way to Postgres. Each value would overwrite the one before, so only the last one is sent. */
export type Packed = { readonly revisions: readonly Appended[]; readonly value: Value | null };

/** The run of an activity that is about to perform the operation which the last revision ordered. */
export type Claim = {
  readonly operationId: string;
  /** A later order of the same operation is valid, because the earlier order has not started. */
  readonly dispatchAttempt: number;
  /** If two runs claim the same order, the first one performs it. Retries within one run have the same `by`. */
  readonly by: string;
  /**
   * Restarts of the whole system that the workflow knew of when it ordered the operation. If the row has more, the
   * claim comes too late.
   */
  readonly restarts: number;
};

/** Bytes of one commit as JSON, unless a single revision has more. Temporal takes at most 2 MiB in one piece. */
export const COMMIT_BYTES = 1024 * 1024;

/** The type of the failure of a commit that Postgres refuses and would refuse again; its message says why. */
export const COMMIT_REFUSED = "CommitRefused";

/** The last revision that a row has: its number and its id. */
export type RowVersion = { readonly revision: number; readonly revisionId: string };

/** Postgres's answer to a commit. */
export type Committed = {
  /** The number of the row's last revision after the commit. */
  readonly confirmed: number;
  /** The id of that revision. */
  readonly revisionId: string | null;
  /** The operation that the row waits for now. */
  readonly awaits: string | null;
  /** How often the whole system was restarted with this conversation open. */
  readonly restarts: number;
  /** The revisions do not follow from the row: the row has another history, or lacks revisions before these. */
  readonly diverged: boolean;
};

/** The part of a transition that is stored: the value after it, and what it adds. */
export type Change = Pick<Revision, "conversation" | "messages" | "notices" | "charges">;

/** The revision of one transition. */
export function toRevision(
  head: {
    readonly number: number;
    readonly id: string;
    readonly previous: string | null;
    readonly at: string;
  },
  { conversation, messages, notices, charges = [] }: Change,
): Revision {
  const awaits = awaitedOperation(conversation.state);
  const charged = charges.length === 0 ? {} : { charges };
  return { ...head, conversation, awaits, messages, notices, ...charged, archived: null };
}

export function pack(revisions: readonly Revision[]): Packed {
  const last = revisions.at(-1);
  return {
    revisions: revisions.map((revision) => {
      const { conversation, awaits, notices, ...appended } = revision;
      return {
        ...appended,
        notices: revision === last ? notices.map((notice) => shorten(notice, revision)) : notices,
      };
    }),
    value: last === undefined ? null : { conversation: last.conversation, awaits: last.awaits },
  };
}

/** Restores a notice of a packed revision to its full form. */
export function unpackNotice(notice: Notice | ShortNotice, value: Value | null): Notice {
  if (value === null) return notice as Notice;
  const { state, queue, queueHeld } = value.conversation;
  if (notice.name === "state.changed") return { name: notice.name, data: { state, ...notice.data } };
  if (notice.name === "queue.changed")
    return { name: notice.name, data: { queue, queueHeld, ...notice.data } };
  return notice;
}

function shorten(notice: Notice, { conversation }: Value): Notice | ShortNotice {
  if (notice.name === "state.changed" && notice.data.state === conversation.state)
    return { name: notice.name, data: { cycleId: notice.data.cycleId } };
  const { queue, queueHeld } = conversation;
  if (notice.name === "queue.changed" && notice.data.queue === queue && notice.data.queueHeld === queueHeld)
    return { name: notice.name, data: {} };
  return notice;
}
