/**
 * Owns: one conversation while its workflow runs: the value, moved only by `transition`, and the order of things:
 * record, commit, perform. The handlers (updates.ts, signals.ts) and the loop (conversation.ts) feed it events.
 */
import { allHandlersFinished, CancellationScope, condition, uuid4 } from "@temporalio/workflow";
import type { Loaded } from "../activities/contract.ts";
import type { Context } from "../machine/context.ts";
import { isWorking, newConversation, type Conversation } from "../machine/conversation.ts";
import type { Effect, Operation } from "../machine/effect.ts";
import type { ConversationEvent } from "../machine/event.ts";
import type { Rejection } from "../machine/rejection.ts";
import { transition } from "../machine/transition.ts";
import { load, stopTools } from "./activities.ts";
import { Commits } from "./commits.ts";
import type { Carried, ConversationStart, Opening, SendMessageInput } from "./contract.ts";
import { identityOf, unasked, type Identity } from "./identity.ts";
import { isHistoryLong } from "./history-length.ts";
import { InFlight } from "./in-flight.ts";
import { Ledger } from "./ledger.ts";
import { carriesCommit } from "./operations.ts";
import { ordersOf } from "./orders.ts";
import { RecentMessages } from "./recent-messages.ts";
import { ToolHost } from "./tool-host.ts";

const FORK_NOTE =
  "This conversation's workflow was reset or started anew. It continues from what is stored; nothing stored was changed.";

export class Runtime {
  readonly #id: string;
  readonly #opening: Opening | null;
  /** Everything runs in here, so that a cancel of the workflow reaches nothing but the machine. */
  readonly #base = new CancellationScope({ cancellable: false });
  readonly #tools = new ToolHost();
  readonly #inFlight = new InFlight(this.#base, (event) => this.apply(event));
  #commits: Commits;
  #identity: Identity | null = null;
  /** Stands in until the row is loaded. */
  #conversation: Conversation = newConversation("restricted", 0);
  #recent = new RecentMessages([]);
  #archived = false;
  #removed = false;
  wasCancelled = false;
  #created = false;
  #ready = false;
  #createdAt: string | null = null;

  constructor(start: ConversationStart) {
    this.#id = start.conversationId;
    this.#opening = start.opening ?? null;
    this.#commits = this.#continueFrom(0, null, null);
  }

  get conversation(): Conversation {
    return this.#conversation;
  }

  get recent(): RecentMessages {
    return this.#recent;
  }

  get ledger(): Ledger {
    return this.#commits.ledger;
  }

  /** null: there is no such conversation (any more). */
  get identity(): Identity | null {
    return this.#removed ? null : this.#identity;
  }

  /** By the row; null when that is not known. */
  get createdAt(): string | null {
    return this.#createdAt;
  }

  get archived(): boolean {
    return this.#archived;
  }

  /** This run's opening made the row. */
  get created(): boolean {
    return this.#created;
  }

  /** The row is loaded. */
  get isReady(): boolean {
    return this.#ready;
  }

  /** Nothing in flight, nothing unconfirmed, nobody waiting for an answer. */
  get rests(): boolean {
    return this.#ready && this.#inFlight.isEmpty && this.#commits.isSettled && allHandlersFinished();
  }

  /** The next run has to take over. The server asks a run only once to cancel. */
  get isSpent(): boolean {
    return this.wasCancelled || isHistoryLong();
  }

  /** Runs what must go on in a workflow that was cancelled, too. */
  shielded<T>(work: () => Promise<T>): Promise<T> {
    return this.#base.run(work);
  }

  wait(isSo: () => boolean): Promise<void> {
    return this.shielded(() => condition(isSo));
  }

  /** False when the time has passed first. */
  waitFor(isSo: () => boolean, milliseconds: number): Promise<boolean> {
    return this.shielded(() => condition(isSo, milliseconds));
  }

  /** Continues where the last run left off. */
  resume(carried: Carried): void {
    this.#identity = identityOf(carried);
    this.#conversation = carried.conversation;
    this.#commits = this.#continueFrom(carried.step, carried.batchId, null);
    this.#archived = carried.archived;
    this.#createdAt = carried.createdAt;
    this.#recent = new RecentMessages(carried.recentMessages);
    this.#ready = true;
    this.#show();
    for (const operation of carried.operations) this.#start(operation);
  }

  /** From the row, which is the truth (architecture, rule 10): without a past, and when the row has another one. */
  async load(redeliver: readonly SendMessageInput[], isFork: boolean): Promise<void> {
    this.#ready = false;
    this.#inFlight.forget();
    const askedMessageIds = redeliver.map((message) => message.messageId);
    // A fork has a row, or had one: of a sub-agent that its parent's removal took along.
    const opening = isFork ? null : this.#opening;
    const loaded =
      opening?.context === undefined
        ? await this.#base.run(() => load({ conversationId: this.#id, opening, askedMessageIds }))
        : unasked(opening.profile, opening.context);
    this.#ready = true;
    this.#identity = null;
    if (loaded === null) return;
    this.#identity = identityOf(loaded);
    if (loaded.stored === null) this.#open(loaded.context);
    else this.#adopt(loaded.stored, redeliver, isFork);
  }

  /** Moves the value, commits, performs. A refusal changes nothing. */
  apply(event: ConversationEvent, accepted: SendMessageInput | null = null): Rejection | null {
    if (this.identity === null || !this.#ready) return null;
    // The workflow's clock and randomness: deterministic, the same again in a replay.
    const stamp = { at: Date.now(), seed: uuid4() };
    const result = transition(this.#conversation, this.identity.context, { ...event, stamp });
    if ("reject" in result) return result.reject;
    if (result.effects.length === 0) return null;
    this.#recent.note(result.effects, result.conversation.queue);
    // A message to an archived conversation un-archives it.
    this.#record(result.conversation, result.effects, this.#archived && accepted !== null ? false : null);
    if (accepted !== null) this.#commits.accept(accepted);
    this.#carryOut(result.effects);
    return null;
  }

  /** What `apply` would refuse, without moving anything: for validators, which must not touch the workflow. */
  refusal(event: ConversationEvent): Rejection | null {
    if (this.identity === null || !this.#ready) return null;
    const stamp = { at: 0, seed: "00000000-0000-4000-8000-000000000000" };
    const result = transition(this.#conversation, this.identity.context, { ...event, stamp });
    return "reject" in result ? result.reject : null;
  }

  setArchived(archived: boolean): void {
    if (this.identity === null || this.#archived === archived) return;
    this.#record(this.#conversation, [], archived);
    void this.#commits.settle();
  }

  /** Cancels until nothing works any more; follow-ups that start after a cancel are cancelled, too. */
  async stop(): Promise<void> {
    while (this.identity !== null && isWorking(this.#conversation.state)) {
      this.apply({ kind: "user_cancel", clearQueue: false, by: "user" });
      const isCancelling = (): boolean => !this.#ready || this.#conversation.state.kind === "cancelling";
      await this.wait(() => this.identity === null || !isCancelling());
    }
  }

  /** The rows are going: nothing is committed or performed any more. */
  markRemoved(): void {
    this.#removed = true;
    this.#commits.close();
    this.#inFlight.forget();
  }

  /** For the next run; null when there is no conversation to carry on. */
  carry(): Carried | null {
    if (this.identity === null) return null;
    const { profile, context, subAgentContext } = this.identity;
    return {
      profile,
      context,
      subAgentContext,
      conversation: this.#conversation,
      step: this.ledger.step,
      batchId: this.ledger.batchId,
      archived: this.#archived,
      createdAt: this.#createdAt,
      operations: this.#inFlight.deferred,
      recentMessages: this.#recent.entries(),
    };
  }

  #continueFrom(step: number, batchId: string | null, opening: Opening | null): Commits {
    const past = { conversationId: this.#id, ledger: new Ledger(step, batchId), opening };
    return new Commits(past, this.#base, (accepted) => void this.load(accepted, true));
  }

  /** The first commit makes the row. */
  #open({ contextWindow }: Context): void {
    const opening = this.#opening;
    if (opening === null) return;
    this.#created = true;
    this.#commits = this.#continueFrom(0, null, opening);
    this.#conversation = newConversation(opening.mode, contextWindow);
    this.#createdAt = new Date().toISOString();
    this.ledger.record(this.#conversation, [], null, Date.now());
    const { seed, task } = opening;
    // What begins at once is shown as it begins.
    if (seed === null && task === null) {
      this.#show();
      void this.#commits.settle();
    }
    if (seed !== null) this.apply({ kind: "seeded", text: seed });
    if (task !== null) this.apply({ kind: "task_given", messageId: task.messageId, task: task.text });
  }

  /** A working state that nobody works for is put to idle. */
  #adopt(
    stored: NonNullable<Loaded["stored"]>,
    redeliver: readonly SendMessageInput[],
    isFork: boolean,
  ): void {
    this.#conversation = stored.conversation;
    this.#commits = this.#continueFrom(stored.step, stored.batchId, null);
    this.#archived = stored.archived;
    this.#createdAt = stored.createdAt;
    this.#recent = new RecentMessages(stored.recentMessages);
    this.#show();
    if (isFork) this.apply({ kind: "noted", text: FORK_NOTE });
    this.apply({ kind: "restarted", policy: "idle" });
    const known = new Set(stored.knownMessageIds);
    for (const message of redeliver) if (!known.has(message.messageId)) this.#redeliver(message);
  }

  /** Accepted is accepted: a message that cannot start a run now waits for the end of the one that can. */
  #redeliver(message: SendMessageInput): void {
    const event = { kind: "user_message" as const, ...message };
    if (this.apply(event, message) === null) return;
    if (this.apply({ ...event, delivery: "followUp" }, message) === null) return;
    this.apply({ kind: "noted", text: `A message could not be delivered: ${message.text}` });
  }

  #record(conversation: Conversation, effects: readonly Effect[], archived: boolean | null): void {
    this.#conversation = conversation;
    this.#archived = archived ?? this.#archived;
    this.ledger.record(conversation, effects, archived, Date.now());
    this.#show();
  }

  #show(): void {
    this.#identity?.visibility.show(this.#conversation, this.ledger.step);
  }

  /** Aborts leave at once, in no particular order with the commit (architecture, rule 7). */
  #carryOut(effects: readonly Effect[]): void {
    const { aborts, subAgentsToCancel, operations } = ordersOf(effects);
    const { state } = this.#conversation;
    if (
      state.kind === "cancelling" &&
      state.stopping !== "request" &&
      aborts.length + subAgentsToCancel.length > 0
    ) {
      const conversationIds = state.stopping === "tool" ? [this.#id] : subAgentsToCancel;
      void this.#base.run(() => stopTools({ conversationIds })).catch(() => undefined);
    }
    for (const id of aborts) this.#inFlight.abort(id);
    for (const id of subAgentsToCancel) void this.#base.run(async () => this.#identity?.subAgents.cancel(id));
    const carriers = operations.filter(carriesCommit);
    const isLater = carriers.length > 0 && this.#inFlight.isEmpty && this.isSpent;
    if (isLater) this.#inFlight.defer(operations);
    else for (const operation of operations) this.#start(operation);
    if (isLater || carriers.length === 0) void this.#commits.settle();
  }

  #start(operation: Operation): void {
    if (this.#identity === null) return;
    // Of now: after a fork nobody listens to what was ordered before it.
    const { profile, subAgents } = this.#identity;
    this.#inFlight.start(operation, { profile, subAgents, tools: this.#tools, commits: this.#commits });
  }
}
