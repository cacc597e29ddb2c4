/**
 * Owns: the working copy of one transition: collects what changes and what is ordered, and hands out both in the
 * order that the rules demand (persist, tell, perform). Lives only as long as one call of `transition`.
 */
import { viewUsage } from "./usage.ts";
import type { Context } from "./context.ts";
import type { Conversation, Run, State } from "./conversation.ts";
import type { Effect, Notice } from "./effect.ts";
import { idAt, timestamp, type Stamp } from "./ids.ts";
import type { MessageBody } from "./message.ts";

/** What follows from an accepted event. */
export type Outcome = { readonly conversation: Conversation; readonly effects: readonly Effect[] };

type Order = Exclude<Effect, { kind: "persist_state" | "persist_message" | "notify_client" }>;

export class Draft {
  readonly context: Context;
  readonly stamp: Stamp;
  readonly #before: Conversation;
  #now: Conversation;
  readonly #messages: Effect[] = [];
  readonly #notices: Notice[] = [];
  readonly #orders: Order[] = [];
  #ids = 0;

  constructor(before: Conversation, context: Context, stamp: Stamp) {
    this.context = context;
    this.stamp = stamp;
    this.#before = before;
    this.#now = before;
  }

  get conversation(): Conversation {
    return this.#now;
  }

  get state(): State {
    return this.#now.state;
  }

  /** RFC 3339. */
  get time(): string {
    return timestamp(this.stamp.at);
  }

  newId(): string {
    return idAt(this.stamp, this.#ids++);
  }

  set(change: Partial<Conversation>): void {
    this.#now = { ...this.#now, ...change };
  }

  enter(state: State): void {
    this.set({ state });
  }

  /** Changes the run in progress; without one there is nothing to change. */
  setRun(change: Partial<Run>): void {
    if (this.#now.run !== null) this.set({ run: { ...this.#now.run, ...change } });
  }

  /** Stores a message as the next in sequence, within the present run. */
  say(body: MessageBody, id: string = this.newId()): void {
    const sequence = this.#now.sequence + 1;
    const cycleId = this.#now.run?.cycleId ?? null;
    this.#messages.push({
      kind: "persist_message",
      message: { ...body, id, sequence, cycleId, createdAt: this.time },
    });
    this.set({ sequence });
  }

  tellModel(text: string): void {
    this.say({ type: "system", actor: "system", content: [{ type: "text", text }] });
  }

  tellPerson(text: string): void {
    this.say({ type: "note", actor: "system", content: [{ type: "text", text }] });
  }

  notify(notice: Notice): void {
    this.#notices.push(notice);
  }

  order(effect: Order): void {
    this.#orders.push(effect);
  }

  /** The finished transition; one that changed nothing has no effects. */
  done(): Outcome {
    const notices = [...this.#notices, ...this.#changes()];
    const effects: Effect[] = [];
    if (this.#now !== this.#before) effects.push({ kind: "persist_state" });
    effects.push(...this.#messages);
    for (const notice of notices) effects.push({ kind: "notify_client", notice });
    effects.push(...this.#orders);
    return { conversation: this.#now, effects };
  }

  /** The state comes last: who hears of it has heard everything that led to it. */
  *#changes(): Generator<Notice> {
    const { usage, queue, state, run } = this.#now;
    if (usage !== this.#before.usage) yield { name: "usage.changed", data: { usage: viewUsage(usage) } };
    if (queue !== this.#before.queue) yield { name: "queue.changed", data: { queue } };
    if (state !== this.#before.state) {
      const cycleId = (run ?? this.#before.run)?.cycleId ?? null;
      yield { name: "state.changed", data: { state, cycleId } };
    }
  }
}
