/**
 * Owns: the commands that people, operators and the launcher send to a conversation. A command is an update, which
 * returns an answer, and a signal of the same name and input, for the Temporal CLI and Web UI. The validator of an
 * update rejects it, so that a rejected update leaves nothing in the history. Only while the row is not loaded yet can
 * the rejection come from the handler. A signal has no answer: if it is not taken, it leaves a note.
 * Not here: the form of inputs (inputs.ts).
 */
import { ApplicationFailure, setHandler } from "@temporalio/workflow";
import type { SignalDefinition, UpdateDefinition } from "@temporalio/common";
import type { Conversation, Sandbox } from "../machine/conversation.ts";
import type { ConversationEvent } from "../machine/event.ts";
import { nextAfterCancel } from "../machine/queue.ts";
import { messageExists, sandboxOf } from "./activities.ts";
import * as contract from "../protocol/workflow.ts";
import type { Lifecycle } from "./conversation.ts";
import {
  isGiven,
  names,
  readArchive,
  readCancel,
  readDecision,
  readMessage,
  readMessageId,
  readRename,
  readRestart,
  readRow,
} from "./inputs.ts";
import { VERIFY_BEFORE_STOP_MS } from "../protocol/timing.ts";
import type { Applied, Session } from "./session.ts";

export function handleCommands(lifecycle: Lifecycle): void {
  setHandler(contract.openUpdate, async () => {
    const session = await readyOrThrow(lifecycle);
    return { ...revisionOf(session), created: lifecycle.created };
  });

  setHandler(contract.sendMessageUpdate, (input) => sendMessage(lifecycle, input, messageOrThrow(input)), {
    validator: (input: unknown) => {
      const message = messageOrThrow(input);
      // A repeated submit gets the same answer as the first.
      if (lifecycle.session?.recent.get(message.messageId) !== undefined) return;
      validate(lifecycle, input, { kind: "user_message", ...message });
    },
  });
  setHandler(contract.sendMessageSignal, async (input) => {
    const message = readMessage(input);
    const messageId = message?.messageId ?? null;
    if (messageId !== null && (await isKnown(lifecycle, messageId))) return;
    await take(lifecycle, "sendMessage", (session) =>
      message === null
        ? null
        : { kind: "user_message", ...message, messageId: messageId ?? session.newId(message) },
    );
  });

  handleEvent(lifecycle, contract.withdrawMessageUpdate, contract.withdrawMessageSignal, {
    answer: revisionOf,
    eventOf: (input) => {
      const messageId = readMessageId(input);
      return messageId === null ? null : { kind: "withdraw_message", messageId };
    },
  });
  handleEvent(lifecycle, contract.decideUpgradeUpdate, contract.decideUpgradeSignal, {
    answer: modeOf,
    eventOf: (input) => {
      const decision = readDecision(input);
      return decision === null ? null : { kind: "user_decide_upgrade", ...decision };
    },
  });
  handleEvent(lifecycle, contract.downgradeUpdate, contract.downgradeSignal, {
    answer: modeOf,
    // The validator judges everything but the sandbox, which only the host knows.
    eventOf: (input) => (isGiven(input) ? downgradeWith({ kind: "available", abi: 0 }) : null),
    complete: async (session) => downgradeWith(await lifecycle.nonCancellable(() => sandboxOf(session.host))),
  });
  handleEvent(lifecycle, contract.triggerContinuationUpdate, contract.triggerContinuationSignal, {
    answer: stateOf,
    eventOf: (input) => (names(input, "triggerContinuation") ? { kind: "user_trigger_continuation" } : null),
  });
  handleEvent(lifecycle, contract.releaseQueueUpdate, contract.releaseQueueSignal, {
    answer: stateOf,
    eventOf: (input) => (names(input, "releaseQueue") ? { kind: "user_release_queue" } : null),
  });
  handleEvent(lifecycle, contract.cancelUpdate, contract.cancelSignal, {
    answer: cancelledOf,
    eventOf: (input) => {
      const cancel = readCancel(input);
      return cancel === null ? null : { kind: "user_cancel", ...cancel };
    },
    // If there is nothing to stop, compare with the row: this history may be out of date.
    onIgnored: async (event) => {
      let isVerified = false;
      void lifecycle.verify().then((isOther) => {
        isVerified = true;
        if (isOther) lifecycle.session?.apply(event);
      });
      await lifecycle.waitFor(() => isVerified, VERIFY_BEFORE_STOP_MS);
    },
  });

  setHandler(
    contract.archiveUpdate,
    async (input) => {
      const { archived } = orThrow(readArchive(input));
      await sessionFor(lifecycle, input);
      const session = await lifecycle.archive(archived);
      return { revision: session?.outbox.revision ?? 0 };
    },
    { validator: (input: unknown) => void orThrow(readArchive(input)) },
  );
  setHandler(contract.archiveSignal, async (input) => {
    const read = readArchive(input);
    if (read === null) await noteInvalid(lifecycle, "archive");
    else await lifecycle.archive(read.archived);
  });

  setHandler(
    contract.removeUpdate,
    async () => {
      await readyOrThrow(lifecycle);
      await lifecycle.remove();
      return null;
    },
    { validator: (input: unknown) => void orThrow(names(input, "remove") || null) },
  );
  setHandler(contract.removeSignal, async (input) => {
    if (names(input, "remove")) await lifecycle.remove();
    else await noteInvalid(lifecycle, "remove");
  });

  setHandler(contract.restartedSignal, async (input) => {
    const restart = readRestart(input);
    if (restart === null) {
      await noteInvalid(lifecycle, "restarted");
      return;
    }
    const { policy, row, restarts } = restart;
    (await lifecycle.ready())?.noteRestarts(restarts);
    if (row !== undefined) await lifecycle.follow(row);
    // A session that was loaded from the row has applied a restart already.
    lifecycle.session?.apply({ kind: "restarted", policy });
  });

  setHandler(contract.moveToCurrentVersionSignal, () => undefined);

  setHandler(contract.renamedSignal, async (input) => {
    const rename = readRename(input);
    if (rename === null) await noteInvalid(lifecycle, "renamed");
    else (await lifecycle.ready())?.rename(rename.title, rename.event);
  });
}

/** How a command becomes an event, and how it is answered. */
type EventCommand<Result> = {
  /** null: the input does not have the documented form. */
  readonly eventOf: (input: unknown) => ConversationEvent | null;
  /** @param before the conversation before the event */
  readonly answer: (session: Session, before: Conversation) => Result;
  /** Makes the event that counts, after the validator and before it is applied. */
  readonly complete?: (session: Session) => Promise<ConversationEvent>;
  /** Runs before the answer to an update whose event was ignored. */
  readonly onIgnored?: (event: ConversationEvent) => Promise<void>;
};

function handleEvent<Result, UpdateInput, SignalInput>(
  lifecycle: Lifecycle,
  update: UpdateDefinition<Result, [UpdateInput]>,
  signal: SignalDefinition<[SignalInput]>,
  { eventOf, complete, answer, onIgnored }: EventCommand<Result>,
): void {
  setHandler(
    update,
    async (input) => {
      const given = orThrow(eventOf(input));
      const event = (await complete?.(await sessionFor(lifecycle, input))) ?? given;
      const { session, before, applied } = await inSession(lifecycle, input, (open) => ({
        session: open,
        before: open.conversation,
        applied: applyOrThrow(open, event),
      }));
      if (applied.kind === "ignored") await onIgnored?.(event);
      return answer(lifecycle.session ?? session, before);
    },
    { validator: (input: UpdateInput) => validate(lifecycle, input, orThrow(eventOf(input))) },
  );
  setHandler(signal, async (input) => {
    const given = eventOf(input);
    const session = given === null || complete === undefined ? null : await lifecycle.ready();
    const event = session === null ? given : ((await complete?.(session)) ?? given);
    await take(lifecycle, signal.name, () => event);
  });
}

const downgradeWith = (sandbox: Sandbox) => ({ kind: "user_request_downgrade", sandbox }) as const;

const revisionOf = ({ outbox }: Session): contract.Accepted => ({ revision: outbox.revision });

const stateOf = (session: Session): contract.StateResult => ({
  ...revisionOf(session),
  state: session.conversation.state,
});

const cancelledOf = (session: Session, before: Conversation): contract.CancelResult => ({
  ...stateOf(session),
  next: nextAfterCancel(before, session.conversation),
  queueHeld: session.conversation.queueHeld,
});

const modeOf = (session: Session): contract.ModeResult => ({
  ...stateOf(session),
  mode: session.conversation.mode,
});

// ---- updates

function messageOrThrow(input: unknown): contract.SendMessageInput {
  return { ...orThrow(readMessage(input)), messageId: orThrow(readMessageId(input)) };
}

/** A repeated submit gets the same answer as the first. */
const sendMessage = (
  lifecycle: Lifecycle,
  input: unknown,
  message: contract.SendMessageInput,
): Promise<contract.SendMessageResult> =>
  inSession(lifecycle, input, (session) => {
    if (session.recent.get(message.messageId) === undefined)
      applyOrThrow(session, { kind: "user_message", ...message });
    const known = session.recent.get(message.messageId);
    if (known === undefined) throw new Error("an accepted message is remembered");
    return { ...revisionOf(session), ...known };
  });

/** An update on a conversation that does not exist fails. */
async function readyOrThrow(lifecycle: Lifecycle): Promise<Session> {
  const session = await lifecycle.ready();
  if (session !== null) return session;
  throw failureOf({ code: "not_found", message: "There is no such conversation.", state: null });
}

/**
 * If the caller has read a version of the row that this history does not have, the workflow loads the row first: a
 * history that was rolled back must not judge the request.
 */
async function sessionFor(lifecycle: Lifecycle, input: unknown): Promise<Session> {
  for (;;) {
    const session = await readyOrThrow(lifecycle);
    const row = readRow(input);
    if (row === undefined || !session.isBehind(row)) return session;
    await lifecycle.follow(row);
  }
}

/** Does the work in the same turn as the check that the session is open, so that nothing comes between the two. */
async function inSession<T>(lifecycle: Lifecycle, input: unknown, work: (session: Session) => T): Promise<T> {
  for (;;) {
    const session = await sessionFor(lifecycle, input);
    if (!session.isClosed) return work(session);
  }
}

function applyOrThrow(session: Session, event: ConversationEvent): Applied {
  const applied = session.apply(event);
  if (applied.kind !== "rejected") return applied;
  throw failureOf({ ...applied.rejection, state: session.conversation.state });
}

/** @throws the rejection that the handler would throw. While the row is not loaded, only the handler can judge. */
function validate({ session }: Lifecycle, input: unknown, event: ConversationEvent): void {
  const row = readRow(input);
  if (session === null || (row !== undefined && session.isBehind(row))) return;
  const rejection = session.rejectionOf(event);
  if (rejection !== null) throw failureOf({ ...rejection, state: session.conversation.state });
}

function orThrow<T>(input: T | null): T {
  if (input !== null) return input;
  const message = "The input does not have the documented form.";
  throw failureOf({ code: "invalid_request", message, state: null });
}

function failureOf(refusal: contract.UpdateRejection): ApplicationFailure {
  const { message, code: type } = refusal;
  return ApplicationFailure.create({ message, type, nonRetryable: true, details: [refusal] });
}

// ---- signals

/**
 * Applies an event, or leaves a note that says why not. It waits only once before it applies the event, so that signals
 * that arrive together are taken in their order.
 */
async function take(
  lifecycle: Lifecycle,
  name: string,
  eventOf: (session: Session) => ConversationEvent | null,
): Promise<void> {
  for (let isVerified = false; ;) {
    const session = await lifecycle.ready();
    if (session === null) return;
    const event = eventOf(session);
    if (event === null) return noteInvalid(lifecycle, name);
    const applied = session.apply(event);
    if (applied.kind === "accepted") return;
    if (applied.kind === "dropped") continue;
    // The row is authoritative: an event that is not taken is judged once more if this history turns out to differ from
    // the row.
    if (!isVerified) {
      isVerified = true;
      if (await lifecycle.verify()) continue;
    }
    if (applied.kind === "ignored") return;
    return note(lifecycle, name, applied.rejection);
  }
}

const noteInvalid = (lifecycle: Lifecycle, name: string): Promise<void> =>
  note(lifecycle, name, {
    code: "invalid_request",
    message: "its input does not have the documented form.",
  });

/** Leaves the note in the current session, or in the next one. */
async function note(
  lifecycle: Lifecycle,
  name: string,
  { code, message }: { readonly code: string; readonly message: string },
): Promise<void> {
  const text = `The signal ${name} was not taken (${code}): ${message}`;
  for (;;) {
    const applied = (await lifecycle.ready())?.apply({ kind: "noted", text });
    if (applied?.kind !== "dropped") return;
  }
}

/** An id typed by hand may belong to an old message. */
async function isKnown(lifecycle: Lifecycle, messageId: string): Promise<boolean> {
  const session = await lifecycle.ready();
  if (session === null || session.recent.get(messageId) !== undefined) return true;
  return lifecycle.nonCancellable(() => messageExists({ conversationId: session.id, messageId }));
}
