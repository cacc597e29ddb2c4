/**
 * Owns: one history of a conversation. Only `transition` changes its value. The session records a change, then commits
 * it, then performs its effects. A divergence closes the session for good; the next one begins from the row
 * (conversation.ts).
 */
import type { CancellationScope } from "@temporalio/workflow";
import type { ConversationMetadata, ToolToStop } from "../protocol/activities.ts";
import type { Change, RowVersion } from "../protocol/commit.ts";
import type { Conversation } from "../machine/conversation.ts";
import type { Operation, Stop } from "../machine/effect.ts";
import type { ConversationEvent } from "../machine/event.ts";
import type { Rejection } from "../machine/rejection.ts";
import { isNextRunDue } from "../machine/queue.ts";
import { transition } from "../machine/transition.ts";
import { stopTools } from "./activities.ts";
import { Committer, type Divergence } from "./committer.ts";
import { plainTitle, titleFrom, type KnownTitle } from "../protocol/title.ts";
import type { ContinueAsNewState, CreateInput, RecentMessage } from "../protocol/workflow.ts";
import { InFlight } from "./in-flight.ts";
import { Outbox } from "./outbox.ts";
import { carriesCommit } from "./operations.ts";
import { RecentMessages } from "./recent-messages.ts";
import { isPersonEvent, type Request } from "./requests.ts";
import { newRevisionId } from "./revision-id.ts";
import { SubAgents } from "./sub-agents.ts";
import { ToolHost } from "./tool-host.ts";
import { Visibility } from "./visibility.ts";

/** The result of an event. Only an accepted event makes a revision. */
export type Applied =
  | { readonly kind: "accepted" }
  /** The event has no effect in this state. */
  | { readonly kind: "ignored" }
  | { readonly kind: "rejected"; readonly rejection: Rejection }
  /** This session is closed. The caller may try the next one. */
  | { readonly kind: "dropped" };

/** The state that a session begins with. */
export type Beginning = ConversationMetadata & {
  readonly conversation: Conversation;
  readonly archived: boolean;
  readonly title?: KnownTitle;
  /** From the row; null when it is not known. */
  readonly createdAt: string | null;
  readonly recentMessages: readonly RecentMessage[];
  /** The row's version and restarts; null: the first commit creates the row, from the create input. */
  readonly row: (RowVersion & { readonly restarts: number }) | null;
  readonly createInput: CreateInput | null;
  /** How often in a row Postgres has refused a revision before this session. */
  readonly refusals: number;
};

/** What a session needs from its workflow run. */
export type WorkflowRun = {
  /** All work runs in this scope, so that a cancel of the workflow reaches only the machine. */
  readonly scope: CancellationScope;
  /** The next run should take over as soon as nothing is in flight. */
  readonly shouldContinueAsNew: () => boolean;
  /** The session has closed itself. */
  readonly onDivergence: (divergence: Divergence) => void;
};

export class Session {
  readonly #fixed: ConversationMetadata;
  readonly #run: WorkflowRun;
  readonly #committer: Committer;
  readonly #subAgents: SubAgents;
  readonly #visibility: Visibility;
  readonly #tools = new ToolHost((text) => void this.apply({ kind: "noted", text }));
  readonly #inFlight: InFlight;
  readonly recent: RecentMessages;
  readonly createdAt: string | null;
  #conversation: Conversation;
  #archived: boolean;
  #title: KnownTitle;
  #closed = false;

  constructor(beginning: Beginning, run: WorkflowRun) {
    const { config, context, subAgentContext, conversation, archived, createdAt, row } = beginning;
    const { title = { text: null, event: 0 }, hidesTitle = false } = beginning;
    this.#fixed = { config, context, subAgentContext, ...(hidesTitle ? { hidesTitle } : {}) };
    this.#run = run;
    this.#conversation = conversation;
    this.#archived = archived;
    this.#title = { ...title, text: plainTitle(title.text) };
    this.createdAt = createdAt;
    this.recent = new RecentMessages(beginning.recentMessages);
    this.#visibility = new Visibility(config, hidesTitle);
    this.#subAgents = new SubAgents(this.#fixed);
    this.#inFlight = new InFlight(run.scope, (event) => this.apply(event));
    const { createInput, refusals } = beginning;
    const restarts = row?.restarts ?? 0;
    const options = {
      conversationId: config.id,
      outbox: new Outbox(row),
      // What is inherited comes with the first revisions.
      createInput: createInput === null ? null : { ...createInput, inherited: null },
      refusals,
      restarts,
    };
    this.#committer = new Committer(options, run.scope, (divergence) => {
      this.close();
      run.onDivergence(divergence);
    });
  }

  get id(): string {
    return this.#fixed.config.id;
  }

  get conversation(): Conversation {
    return this.#conversation;
  }

  /** Where the conversation's tools run. */
  get host(): string {
    return this.#fixed.config.host;
  }

  get isSubAgent(): boolean {
    return this.#fixed.context.isSubAgent;
  }

  get archived(): boolean {
    return this.#archived;
  }

  get outbox(): Outbox {
    return this.#committer.outbox;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Nothing in flight, and nothing unconfirmed. */
  get isQuiescent(): boolean {
    return this.#inFlight.isEmpty && this.#committer.isFlushed;
  }

  /** Changes the value, commits and performs. An event that is not accepted changes nothing. */
  apply(event: ConversationEvent): Applied {
    if (this.#closed) return { kind: "dropped" };
    const at = Date.now();
    const seed = this.newId(event, at);
    const result = transition(this.#conversation, this.#fixed.context, { ...event, stamp: { at, seed } });
    if (result.kind !== "accepted") return result;
    this.recent.note(result.messages, result.conversation.queue);
    // A message to an archived conversation un-archives it.
    const archived = this.#archived && event.kind === "user_message" ? false : null;
    this.#record(seed, result, archived, at);
    if (isPersonEvent(event)) this.#committer.accept(event);
    this.#stop(result.stop);
    // A revision of its own for the next run, so that clients are told of the rest between the two. The commit of its
    // request carries both.
    if (isNextRunDue(result.conversation)) this.apply({ kind: "next_run_due" });
    else this.#startAll(result.start);
    return { kind: "accepted" };
  }

  /**
   * The rejection that `apply` would return. It changes nothing, so validators may call it: they must not touch the
   * workflow.
   */
  rejectionOf(event: ConversationEvent): Rejection | null {
    const stamp = { at: 0, seed: "00000000-0000-4000-8000-000000000000" };
    const result = transition(this.#conversation, this.#fixed.context, { ...event, stamp });
    return result.kind === "rejected" ? result.rejection : null;
  }

  setArchived(archived: boolean): Applied {
    if (this.#closed) return { kind: "dropped" };
    if (this.#archived === archived) return { kind: "ignored" };
    const request = { kind: "archive", archived } as const;
    this.#record(this.newId(request), unchanged(this.#conversation), archived);
    this.#committer.accept(request);
    void this.#committer.flush();
    return { kind: "accepted" };
  }

  /** Postgres has a new title, and this event tells of it. */
  rename(title: string, event: number): void {
    if (this.#closed || event <= this.#title.event) return;
    this.#title = { text: plainTitle(title), event };
    this.show();
  }

  /** Records the first revisions of a conversation that has no row yet. */
  begin({ inherited, task }: CreateInput): void {
    this.outbox.record(this.newId("open"), unchanged(this.#conversation), null, Date.now());
    if (inherited !== null) this.apply({ kind: "continued", ...inherited });
    if (task !== null) {
      this.apply({ kind: "task_given", messageId: task.messageId, task: task.text });
      return;
    }
    this.show();
    void this.#committer.flush();
  }

  /** Performs the operations that the previous run has left to this one. */
  resume(operations: readonly Operation[]): void {
    this.show();
    for (const operation of operations) this.#start(operation);
  }

  /** An id derived from this history's last revision, the time and the cause: no other history makes it again. */
  newId(cause: unknown, at = Date.now()): string {
    return newRevisionId(this.outbox.revisionId ?? this.id, at, cause);
  }

  /** The row has revisions that this history does not have: this history was rolled back. */
  isBehind(row: RowVersion): boolean {
    return !this.outbox.isOld(row.revision) && !this.outbox.has(row);
  }

  /** Resolves when Postgres has said whether the row has this history; closes this session if it does not. */
  verify(): Promise<void> {
    return this.#committer.verify();
  }

  /** The whole system was restarted. Operations that were ordered before do not begin any more. */
  noteRestarts(count: number): void {
    this.#committer.noteRestarts(count);
  }

  /**
   * Ends the session: it commits and performs nothing more and ignores all answers. Returns the accepted requests that
   * are not known to be stored.
   */
  close(): readonly Request[] {
    this.#closed = true;
    this.#inFlight.forget();
    return this.#committer.close();
  }

  /** Shows the current state to operators. */
  show(): void {
    this.#visibility.show(this.#conversation, this.outbox.revision, this.#title.text);
  }

  /** The state for the next run; null while there is no row. */
  toContinueAsNew(): ContinueAsNewState | null {
    const { confirmed } = this.outbox;
    if (confirmed === null) return null;
    return {
      ...this.#fixed,
      conversation: this.#conversation,
      ...confirmed,
      restarts: this.#committer.restarts,
      archived: this.#archived,
      title: this.#title,
      createdAt: this.createdAt,
      operations: this.#inFlight.deferred,
      recentMessages: this.recent.entries(),
    };
  }

  #record(id: string, change: Change, archived: boolean | null, at = Date.now()): void {
    this.#conversation = change.conversation;
    this.#archived = archived ?? this.#archived;
    // As the commit does it: the first message gives a title to a conversation that has none.
    if (this.#title.text === null)
      this.#title = { ...this.#title, text: plainTitle(titleFrom(change.messages)) };
    this.outbox.record(id, change, archived, at);
    this.show();
  }

  /** Sends the stops at once, in no particular order with the commit (architecture, rule 7). */
  #stop(stops: readonly Stop[]): void {
    const tools = stops.flatMap((stop): ToolToStop[] => {
      if (stop.kind === "abort_tool") return [{ conversationId: this.id, operationId: stop.operationId }];
      return stop.kind === "cancel_sub_agent" ? [{ conversationId: stop.id, operationId: null }] : [];
    });
    const { scope } = this.#run;
    if (tools.length > 0) void scope.run(() => stopTools({ tools })).catch(() => undefined);
    for (const stop of stops) {
      switch (stop.kind) {
        case "abort_request":
          this.#inFlight.abort(stop.requestId);
          break;
        case "abort_tool":
          this.#inFlight.abort(stop.operationId);
          break;
        case "cancel_sub_agent":
          void scope.run(() => this.#subAgents.cancel(stop.id));
          break;
      }
    }
  }

  /**
   * Operations that carry the commit start it themselves. If there are none, or they are deferred, the session commits.
   */
  #startAll(operations: readonly Operation[]): void {
    const carriers = operations.filter(carriesCommit);
    const isLater = carriers.length > 0 && this.#inFlight.isEmpty && this.#run.shouldContinueAsNew();
    if (isLater) this.#inFlight.defer(operations);
    else for (const operation of operations) this.#start(operation);
    if (isLater || carriers.length === 0) void this.#committer.flush();
  }

  #start(operation: Operation): void {
    const { config } = this.#fixed;
    const around = { config, subAgents: this.#subAgents, tools: this.#tools, committer: this.#committer };
    this.#inFlight.start(operation, around);
  }
}

/** A change that adds nothing. */
const unchanged = (conversation: Conversation): Change => ({ conversation, messages: [], notices: [] });
