/**
 * Owns: one conversation while its workflow runs: the value, moved only by `transition`; what of it is committed;
 * what is being performed. The loop and the handlers (conversation.ts) feed it events.
 */
import { allHandlersFinished, CancellationScope, condition, uuid4, workflowInfo } from "@temporalio/workflow";
import type { CommitInput, Loaded } from "../activities/contract.ts";
import type { Committed } from "../machine/batch.ts";
import type { Context } from "../machine/context.ts";
import { isWorking, newConversation, type Conversation } from "../machine/conversation.ts";
import type { Effect, Operation } from "../machine/effect.ts";
import type { ConversationEvent } from "../machine/event.ts";
import type { Profile } from "../machine/profile.ts";
import type { Rejection } from "../machine/rejection.ts";
import { transition } from "../machine/transition.ts";
import { commit, load } from "./activities.ts";
import type { Carried, ConversationStart, Opening, SendMessageInput } from "./contract.ts";
import { Ledger } from "./ledger.ts";
import { carriesCommit, idOf, lostEvent, perform } from "./operations.ts";
import { RecentMessages } from "./recent-messages.ts";
import { cancelSubAgent } from "./sub-agents.ts";
import { Visibility } from "./visibility.ts";

/** From here on a run makes room for the next as soon as nothing is in flight: replays stay fast. */
const LONG_HISTORY = 1_000;

/** What is fixed once the row is loaded. */
type Identity = { readonly profile: Profile; readonly context: Context; readonly visibility: Visibility };

export class Runtime {
  readonly #id: string;
  /** Everything runs in here, so that a cancel of the workflow reaches nothing but the machine. */
  readonly #base = new CancellationScope({ cancellable: false });
  /** Set until the first batch is confirmed. */
  #opening: Opening | null;
  #identity: Identity | null = null;
  #conversation: Conversation = newConversation("restricted");
  #ledger = new Ledger(0, null);
  #archived = false;
  #ready = false;
  #removed = false;
  /** Counts loads of the row: what was started before the last one is not listened to. */
  #epoch = 0;
  #commits = 0;
  readonly #scopes = new Map<string, CancellationScope>();
  /** Ordered while the history is long: the next run performs them. */
  #deferred: Operation[] = [];
  /** Messages by the step that took them, until it is confirmed: what a fork must not lose. */
  readonly #accepted = new Map<number, SendMessageInput>();
  recent = new RecentMessages([]);
  #created = false;

  constructor(start: ConversationStart) {
    this.#id = start.conversationId;
    this.#opening = start.opening ?? null;
  }

  get conversation(): Conversation {
    return this.#conversation;
  }

  get ledger(): Ledger {
    return this.#ledger;
  }

  /** null: there is no such conversation. */
  get identity(): Identity | null {
    return this.#identity;
  }

  get archived(): boolean {
    return this.#archived;
  }

  /** This run's opening made the row. */
  get created(): boolean {
    return this.#created;
  }

  get isReady(): boolean {
    return this.#ready;
  }

  /** Waits inside the base scope: a cancelled workflow goes on. */
  wait(fn: () => boolean): Promise<void> {
    return this.#base.run(() => condition(fn));
  }

  /** False when the time has passed first. */
  waitFor(fn: () => boolean, milliseconds: number): Promise<boolean> {
    return this.#base.run(() => condition(fn, milliseconds));
  }

  /** Continues where the last run left off. */
  resume(carried: Carried): void {
    this.#opening = null;
    this.#identify(carried);
    this.#conversation = carried.conversation;
    this.#ledger = new Ledger(carried.step, carried.batchId);
    this.#archived = carried.archived;
    this.recent = new RecentMessages(carried.recentMessages);
    this.#ready = true;
    this.#show();
    for (const operation of carried.operations) this.#start(operation);
  }

  /**
   * Starts from the row, which is the truth (architecture, rule 10): first thing in a workflow without a past,
   * and again when the row turns out to have another. A working state found there is put to idle.
   */
  async load(redeliver: readonly SendMessageInput[], fork: boolean): Promise<void> {
    const epoch = ++this.#epoch;
    this.#ready = false;
    for (const scope of this.#scopes.values()) scope.cancel();
    this.#scopes.clear();
    this.#deferred = [];
    this.#accepted.clear();
    const askedMessageIds = redeliver.map((message) => message.messageId);
    const loaded = await this.#base.run(() =>
      load({ conversationId: this.#id, opening: this.#opening, askedMessageIds }),
    );
    if (epoch !== this.#epoch) return;
    this.#ready = true;
    if (loaded === null) {
      this.#identity = null;
      return;
    }
    this.#identify(loaded);
    if (loaded.stored === null) this.#open();
    else this.#adopt(loaded.stored, redeliver, fork);
  }

  /** Moves the value, commits, performs. A refusal changes nothing. */
  apply(event: ConversationEvent, accepted: SendMessageInput | null = null): Rejection | null {
    const identity = this.#identity;
    if (identity === null || this.#removed) return null;
    // The workflow's clock and randomness: deterministic, the same again in a replay.
    const at = Date.now();
    const result = transition(this.#conversation, identity.context, {
      ...event,
      stamp: { at, seed: uuid4() },
    });
    if ("reject" in result) return result.reject;
    if (result.effects.length === 0) return null;
    this.recent.note(result.effects, result.conversation.queue);
    const unarchive = this.#archived && accepted !== null;
    this.#record(result.conversation, result.effects, unarchive ? false : null, at);
    if (accepted !== null) this.#accepted.set(this.#ledger.step, accepted);
    this.#carryOut(result.effects);
    return null;
  }

  /** What `apply` would refuse, without moving anything: for validators, which must not touch the workflow. */
  refusal(event: ConversationEvent): Rejection | null {
    if (this.#identity === null) return null;
    const stamp = { at: 0, seed: "00000000-0000-4000-8000-000000000000" };
    const result = transition(this.#conversation, this.#identity.context, { ...event, stamp });
    return "reject" in result ? result.reject : null;
  }

  /** Commits a change of the archive flag. */
  setArchived(archived: boolean): void {
    if (this.#archived === archived) return;
    this.#record(this.#conversation, [], archived, Date.now());
    this.#commit();
  }

  /** Cancels until nothing works any more; follow-ups that start after a cancel are cancelled, too. */
  async stop(): Promise<void> {
    while (isWorking(this.#conversation.state)) {
      this.apply({ kind: "user_cancel", clearQueue: false, by: "user" });
      await this.wait(() => this.#conversation.state.kind !== "cancelling");
    }
  }

  /** The rows are gone: nothing is committed any more. */
  markRemoved(): void {
    this.#removed = true;
    for (const scope of this.#scopes.values()) scope.cancel();
  }

  get isRemoved(): boolean {
    return this.#removed;
  }

  /** Nothing in flight, nothing unconfirmed, nobody waiting for an answer. */
  get rests(): boolean {
    return (
      this.#ready &&
      this.#scopes.size === 0 &&
      this.#commits === 0 &&
      this.#ledger.unconfirmed.length === 0 &&
      allHandlersFinished()
    );
  }

  /** The next run should take over, here or between two rounds. */
  get isLong(): boolean {
    return workflowInfo().historyLength >= LONG_HISTORY;
  }

  /** For the next run; null when there is no conversation to carry on. */
  carry(): Carried | null {
    if (this.#identity === null) return null;
    const { profile, context } = this.#identity;
    return {
      profile,
      context,
      conversation: this.#conversation,
      step: this.#ledger.step,
      batchId: this.#ledger.batchId,
      archived: this.#archived,
      operations: this.#deferred,
      recentMessages: this.recent.entries(),
    };
  }

  #identify({ profile, context }: { readonly profile: Profile; readonly context: Context }): void {
    this.#identity = { profile, context, visibility: new Visibility(profile) };
  }

  /** The first commit makes the row. */
  #open(): void {
    const opening = this.#opening;
    if (opening === null) return;
    this.#created = true;
    this.#ledger = new Ledger(0, null);
    this.#record(newConversation(opening.mode), [], null, Date.now());
    if (opening.seed === null && opening.task === null) this.#commit();
    if (opening.seed !== null) this.apply({ kind: "seeded", text: opening.seed });
    if (opening.task !== null) {
      this.apply({ kind: "task_given", messageId: opening.task.messageId, task: opening.task.text });
    }
  }

  #adopt(stored: NonNullable<Loaded["stored"]>, redeliver: readonly SendMessageInput[], fork: boolean): void {
    this.#opening = null;
    this.#conversation = stored.conversation;
    this.#ledger = new Ledger(stored.step, stored.batchId);
    this.#archived = stored.archived;
    this.recent = new RecentMessages(stored.recentMessages);
    this.#show();
    if (fork) this.apply({ kind: "noted", text: FORK_NOTE });
    if (isWorking(stored.conversation.state)) this.apply({ kind: "restarted", policy: "idle" });
    const known = new Set(stored.knownMessageIds);
    for (const message of redeliver) if (!known.has(message.messageId)) this.#redeliver(message);
  }

  /** Accepted is accepted: a message that cannot start a run now waits for the end of the one that can. */
  #redeliver(message: SendMessageInput): void {
    const event = { kind: "user_message" as const, ...message };
    const refused =
      this.apply(event, message) !== null && this.apply({ ...event, delivery: "followUp" }, message) !== null;
    if (refused) this.apply({ kind: "noted", text: `A message could not be delivered: ${message.text}` });
  }

  #record(
    conversation: Conversation,
    effects: readonly Effect[],
    archived: boolean | null,
    at: number,
  ): void {
    this.#conversation = conversation;
    if (archived !== null) this.#archived = archived;
    this.#ledger.record(conversation, effects, archived, at);
    this.#show();
  }

  #show(): void {
    this.#identity?.visibility.show(this.#conversation, this.#ledger.step);
  }

  /** Aborts leave at once, in no particular order with the commit (architecture, rule 7). */
  #carryOut(effects: readonly Effect[]): void {
    const operations: Operation[] = [];
    for (const effect of effects) {
      switch (effect.kind) {
        case "abort":
          this.#abort(effect.operationId);
          break;
        case "cancel_sub_agent":
          void this.#base.run(() => cancelSubAgent(effect.id));
          break;
        case "request_llm":
        case "request_continuation":
        case "execute_tool":
        case "schedule_retry":
        case "spawn_sub_agent":
          operations.push(effect);
          break;
        case "persist_state":
        case "persist_message":
        case "notify_client":
        // A sub-agent's outcome is the result of its workflow (conversation.ts).
        case "notify_parent":
          break;
      }
    }
    const deferring = this.#defers(operations);
    if (deferring) this.#deferred.push(...operations);
    if (deferring || !operations.some(carriesCommit)) this.#commit();
    if (!deferring) for (const operation of operations) this.#start(operation);
  }

  #defers(operations: readonly Operation[]): boolean {
    return operations.length > 0 && operations.every(carriesCommit) && this.#scopes.size === 0 && this.isLong;
  }

  #abort(operationId: string): void {
    this.#scopes.get(operationId)?.cancel();
    const deferred = this.#deferred.find((operation) => idOf(operation) === operationId);
    if (deferred === undefined) return;
    this.#deferred = this.#deferred.filter((operation) => operation !== deferred);
    const event = lostEvent(deferred);
    // After the transition that aborts it, as if it had been running.
    if (event !== null) void Promise.resolve().then(() => this.apply(event));
  }

  #start(operation: Operation): void {
    const identity = this.#identity;
    if (identity === null) return;
    const epoch = this.#epoch;
    const id = idOf(operation);
    const scope = new CancellationScope({ cancellable: true, parent: this.#base });
    this.#scopes.set(id, scope);
    const around = {
      profile: identity.profile,
      pending: () => this.#pending(),
      confirm: (answer: Committed) => this.#confirm(answer, epoch),
      settle: () => this.#settle(epoch),
    };
    void perform(operation, scope, around).then((event) => {
      if (epoch !== this.#epoch) return;
      this.#scopes.delete(id);
      if (event !== null) this.apply(event);
    });
  }

  #pending(): CommitInput {
    return { conversationId: this.#id, batches: this.#ledger.unconfirmed, opening: this.#opening };
  }

  #commit(): void {
    void this.#settle(this.#epoch);
  }

  async #settle(epoch: number): Promise<void> {
    this.#commits++;
    try {
      this.#confirm(await this.#base.run(() => commit(this.#pending())), epoch);
    } finally {
      this.#commits--;
    }
  }

  /** An answer that does not fit this history makes it start again from the row, with what it had accepted. */
  #confirm(answer: Committed, epoch: number): void {
    if (epoch !== this.#epoch || this.#removed) return;
    if (this.#ledger.confirm(answer) === "fork") {
      void this.load([...this.#accepted.values()], true);
      return;
    }
    if (answer.confirmed > 0) this.#opening = null;
    for (const step of this.#accepted.keys()) if (step <= answer.confirmed) this.#accepted.delete(step);
  }
}

const FORK_NOTE =
  "This conversation's workflow was reset or started anew. It continues from what is stored; nothing stored was changed.";
