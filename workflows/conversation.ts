/**
 * Owns: the workflow `conversation`: its phases, what happens at a divergence, and how a run ends. A run ends when the
 * conversation is archived, removed, finished (a sub-agent) or has been idle for a day. It continues as new when its
 * history is long. The conversation itself does not end with the run.
 * Not here: one history from its beginning to its divergence (session.ts); the commands (commands.ts).
 */
import {
  allHandlersFinished,
  CancellationScope,
  condition,
  proxySinks,
  setHandler,
  sleep,
} from "@temporalio/workflow";
import type { ConversationMetadata, Loaded, StoredConversation } from "../protocol/activities.ts";
import type { RowVersion } from "../protocol/commit.ts";
import type { Context } from "../machine/context.ts";
import { isWorking, newConversation, type SubAgentOutcome } from "../machine/conversation.ts";
import { outcomeOf } from "../machine/outcome.ts";
import { STOP_BEFORE_REMOVAL_MS } from "../protocol/timing.ts";
import type { WorkflowSinks } from "../protocol/sinks.ts";
import { isUnauthenticated } from "../protocol/unauthenticated.ts";
import { load, remove } from "./activities.ts";
import { handleCommands } from "./commands.ts";
import type { Divergence } from "./committer.ts";
import { stateQuery, type ConversationStart, type CreateInput } from "../protocol/workflow.ts";
import { isHistoryLong } from "./history-length.ts";
import { lostNote, withoutWithdrawn, type Request } from "./requests.ts";
import { continueAsNew, isAnotherVersionCurrent } from "./worker-version.ts";
import { Session, type Applied, type Beginning } from "./session.ts";

const IDLE_CLOSE_MS = 24 * 60 * 60 * 1_000;
/** The pause after the second refusal in a row; each further refusal doubles it, up to a minute. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

const OTHER_HISTORY_NOTE =
  "This conversation's workflow was reset or started anew. It continues from what is stored; nothing stored was changed.";
const UNSTORABLE = "its text could not be stored.";
const refusedNote = (reason: string): string =>
  `The last change of this conversation could not be stored (${reason}). It continues from what is stored before it.`;

const { runs } = proxySinks<WorkflowSinks>();

export async function conversation(start: ConversationStart): Promise<SubAgentOutcome | null> {
  // None of our processes has started this workflow. The next message starts the conversation from its row.
  if (isUnauthenticated(start)) return null;
  runs.began(Date.now());
  const lifecycle = new Lifecycle(start);
  handleCommands(lifecycle);
  setHandler(stateQuery, () => {
    const session = lifecycle.latest;
    return {
      conversation: session?.conversation ?? newConversation("restricted", 0),
      revision: session?.outbox.revision ?? 0,
      revisionId: session?.outbox.revisionId ?? null,
      unconfirmed: session?.outbox.unconfirmed.length ?? 0,
    };
  });
  // `temporal workflow cancel` counts as the person's cancel; it does not end the workflow. A sub-agent whose parent's
  // workflow has ended gets the same from the server.
  CancellationScope.current().cancelRequested.catch(() => lifecycle.cancel());
  return CancellationScope.nonCancellable(() => live(lifecycle, start));
}

async function live(lifecycle: Lifecycle, start: ConversationStart): Promise<SubAgentOutcome | null> {
  await lifecycle.begin();
  for (;;) {
    const before = lifecycle.session?.outbox.revision;
    const leaves = await lifecycle.waitFor(
      () => lifecycle.isQuiescent && (lifecycle.isFinished || lifecycle.shouldContinueAsNew),
      IDLE_CLOSE_MS,
    );
    const { session } = lifecycle;
    if (!leaves) {
      const isIdle = lifecycle.isQuiescent && session !== null && before === session.outbox.revision;
      if (isIdle && !isWorking(session.conversation.state)) return null;
      continue;
    }
    const carried = lifecycle.isFinished ? null : (session?.toContinueAsNew() ?? null);
    if (carried === null) return session === null ? null : outcomeOf(session.conversation.state);
    await continueAsNew<typeof conversation>({ conversationId: start.conversationId, carried });
  }
}

type Phase =
  /** The row is being read, for the first time or after a divergence. */
  | { readonly kind: "loading" }
  /** There is neither a row nor a create input. */
  | { readonly kind: "absent" }
  | { readonly kind: "open"; readonly session: Session }
  /** The rows are being deleted, or are gone. */
  | { readonly kind: "removed" };

/** One run of the workflow: one session after the other. */
export class Lifecycle {
  readonly #start: ConversationStart;
  readonly #scope = new CancellationScope({ cancellable: false });
  #phase: Phase = { kind: "loading" };
  #latest: Session | null = null;
  #isCancelled = false;
  #created = false;

  constructor(start: ConversationStart) {
    this.#start = start;
  }

  /** null: no session is open now. */
  get session(): Session | null {
    return this.#phase.kind === "open" ? this.#phase.session : null;
  }

  /** The current session; while the row is being loaded, the previous one. */
  get latest(): Session | null {
    return this.#latest;
  }

  /** This run made the row. */
  get created(): boolean {
    return this.#created;
  }

  get #isRemoved(): boolean {
    return this.#phase.kind === "removed";
  }

  /** Nothing is in flight or unconfirmed, and no caller waits for an answer. */
  get isQuiescent(): boolean {
    return this.#phase.kind !== "loading" && this.session?.isQuiescent !== false && allHandlersFinished();
  }

  /**
   * After a cancel another run has to take over: the server asks a run to cancel only once. Another version of the
   * workers can take over only with a new run.
   */
  get shouldContinueAsNew(): boolean {
    return this.#isCancelled || isHistoryLong() || isAnotherVersionCurrent();
  }

  /** There is nothing more to do for this workflow. */
  get isFinished(): boolean {
    if (this.session === null) return this.#phase.kind !== "loading";
    const { conversation, archived } = this.session;
    return outcomeOf(conversation.state) !== null || (archived && !isWorking(conversation.state));
  }

  async begin(): Promise<void> {
    const { carried } = this.#start;
    if (carried === undefined) return this.#load();
    this.#open({ ...carried, row: carried, createInput: null, refusals: 0 }).resume(carried.operations);
  }

  /** The session as soon as the row is loaded; null: there is no such conversation (any more). */
  async ready(): Promise<Session | null> {
    while (this.#phase.kind === "loading") await this.wait(() => this.#phase.kind !== "loading");
    return this.session;
  }

  /** Runs work that must go on even if the workflow is cancelled. */
  nonCancellable<T>(work: () => Promise<T>): Promise<T> {
    return this.#scope.run(work);
  }

  wait(isSo: () => boolean): Promise<void> {
    return this.nonCancellable(() => condition(isSo));
  }

  /** False when the time has passed first. */
  waitFor(isSo: () => boolean, milliseconds: number): Promise<boolean> {
    return this.nonCancellable(() => condition(isSo, milliseconds));
  }

  /**
   * Asks Postgres whether the row has this session's history; if not, the next session begins.
   *
   * @returns true if this session is closed: its earlier answer does not hold any more.
   */
  async verify(): Promise<boolean> {
    const { session } = this;
    if (session === null) return false;
    await session.verify();
    await this.ready();
    return session.isClosed;
  }

  /**
   * A caller has read the row at this version; null: there was no row. If this history has not reached the version, the
   * workflow loads the row. If the version is older, it may have been read just before this history went on. Then the
   * workflow asks Postgres, and other commands do not wait meanwhile.
   */
  async follow(row: RowVersion | null): Promise<void> {
    const { session } = this;
    if (session === null || (row !== null && session.outbox.has(row))) return;
    if (row !== null && session.isBehind(row))
      await this.#load({ kind: "other_history", requests: session.close() });
    else void this.verify();
  }

  /** The server was asked to cancel the workflow. */
  async cancel(): Promise<void> {
    const session = await this.ready();
    this.#isCancelled = true;
    if (session === null) return;
    const event = {
      kind: "user_cancel",
      queue: "run",
      by: session.isSubAgent ? "parent" : "user",
    } as const;
    if (session.apply(event).kind === "ignored" && (await this.verify())) this.session?.apply(event);
  }

  /** Cancels until no run is in progress. The messages that wait are held: none starts a run. */
  async stop(): Promise<void> {
    for (;;) {
      const session = await this.ready();
      if (session === null || !isWorking(session.conversation.state)) return;
      session.apply({ kind: "user_cancel", queue: "hold", by: "user" });
      await this.wait(() => session.isClosed || session.conversation.state.kind !== "cancelling");
    }
  }

  /** Archiving stops the work first. @returns the session that has the change */
  async archive(archived: boolean): Promise<Session | null> {
    if (archived) await this.stop();
    for (;;) {
      const session = await this.ready();
      if (session?.setArchived(archived).kind !== "dropped") return session;
    }
  }

  /** Stops the work and deletes the rows. A tool that does not end does not prevent the deletion. */
  async remove(): Promise<void> {
    if ((await this.ready()) === null) return;
    let isStopped = false;
    void this.stop().then(() => (isStopped = true));
    await this.waitFor(() => isStopped, STOP_BEFORE_REMOVAL_MS);
    const { conversationId } = this.#start;
    const createdAt = this.#latest?.createdAt ?? null;
    this.#latest?.close();
    this.#phase = { kind: "removed" };
    await this.nonCancellable(() => remove({ conversationId, createdAt }));
  }

  /**
   * Begins a session from the row, which is authoritative (architecture, rule 10): in a run without carried state, and
   * after a divergence, which has closed the previous session.
   */
  async #load(divergence: Divergence | null = null): Promise<void> {
    this.#phase = { kind: "loading" };
    if (divergence?.kind === "refused") await this.#pauseAfter(divergence.inARow);
    const requests = divergence?.requests ?? [];
    const askedMessageIds = requests.flatMap((each) =>
      each.kind === "user_message" ? [each.messageId] : [],
    );
    const { conversationId, createInput: wanted = null } = this.#start;
    // A history that diverged has a row, or had one: the row of a sub-agent may be gone with its parent's. So no row is
    // created.
    const createInput = divergence === null ? wanted : null;
    const loaded =
      createInput?.context === undefined
        ? await this.nonCancellable(() => load({ conversationId, createInput, askedMessageIds }))
        : unasked(createInput, createInput.context);
    if (this.#isRemoved) return;
    if (loaded?.stored) {
      this.#continue(loaded, loaded.stored, divergence);
      return;
    }
    if (loaded === null || createInput === null) {
      this.#phase = { kind: "absent" };
      return;
    }
    this.#created = true;
    this.#open({
      ...loaded,
      conversation: newConversation(createInput.config.initialMode, loaded.context.contextWindow),
      archived: false,
      title: { text: createInput.title, event: 0 },
      createdAt: new Date().toISOString(),
      recentMessages: [],
      row: null,
      createInput,
      refusals: 0,
    }).begin(createInput);
  }

  /** Puts a working state that no activity works for to idle, and gives the session the accepted requests again. */
  #continue(fixed: ConversationMetadata, stored: StoredConversation, divergence: Divergence | null): void {
    const refusals = divergence?.kind === "refused" ? divergence.inARow : 0;
    const session = this.#open({ ...fixed, ...stored, row: stored, createInput: null, refusals });
    session.show();
    if (divergence?.kind === "other_history") tell(session, OTHER_HISTORY_NOTE);
    if (divergence?.kind === "refused") tell(session, refusedNote(divergence.reason));
    session.apply({ kind: "restarted", policy: "idle" });
    const known = new Set(stored.knownMessageIds);
    for (const request of withoutWithdrawn(divergence?.requests ?? [], known)) {
      // A request that Postgres refuses again is given up. Its text may be what Postgres cannot store.
      if (refusals > 1)
        tell(session, lostNote(request.kind === "user_message" ? { ...request, text: UNSTORABLE } : request));
      else giveAgain(session, request);
    }
  }

  #open(beginning: Beginning): Session {
    const session = new Session(beginning, {
      scope: this.#scope,
      shouldContinueAsNew: () => this.shouldContinueAsNew,
      onDivergence: (divergence) => void this.#load(divergence),
    });
    this.#latest = session;
    this.#phase = { kind: "open", session };
    return session;
  }

  /**
   * A single refusal may be a coincidence, so there is no pause after the first. From the second in a row on, the
   * workflow pauses before the next session.
   */
  async #pauseAfter(refusals: number): Promise<void> {
    if (refusals < 2) return;
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** (refusals - 2), LONGEST_PAUSE_MS);
    await this.nonCancellable(() => sleep(pause, { summary: "after a commit that was refused" }));
  }
}

/** An accepted message must not be lost: if it cannot start a run now, it waits for the end of the current run. */
function giveAgain(session: Session, request: Request): void {
  if (request.kind === "archive") {
    session.setArchived(request.archived);
    return;
  }
  if (session.apply(request).kind !== "rejected") return;
  const isMessage = request.kind === "user_message";
  if (isMessage && session.apply({ ...request, delivery: "followUp" }).kind === "accepted") return;
  tell(session, lostNote(request));
}

const tell = (session: Session, text: string): Applied => session.apply({ kind: "noted", text });

/**
 * A first run whose context is known does not look for a row. If there is one, the first commit finds the divergence.
 */
const unasked = ({ config, hidesTitle = false }: CreateInput, context: Context): Loaded => ({
  config,
  context,
  subAgentContext: context,
  ...(hidesTitle ? { hidesTitle } : {}),
  stored: null,
});
