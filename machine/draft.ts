/**
 * Owns: the working copy of one transition. It collects the changes, the new messages and notices, and what to start
 * and to stop. It exists only during one call of `transition`.
 */
import { viewUsage } from "./usage.ts";
import type { Context } from "./context.ts";
import type { Conversation, Run, State } from "./conversation.ts";
import type { Notice, Operation, Stop } from "./effect.ts";
import { idAt, timestamp, type Stamp } from "./ids.ts";
import type { Charge, Message, MessageBody, SeedSource } from "./message.ts";

/** What follows from an event that changes something. */
export type Accepted = {
  readonly kind: "accepted";
  readonly conversation: Conversation;
  /** New messages, in sequence. One commit stores them together with the value and the notices. */
  readonly messages: readonly Message[];
  /** In the order in which clients receive them. */
  readonly notices: readonly Notice[];
  /** What requests that ended here have cost. The same commit adds it to what was spent. */
  readonly charges: readonly Charge[];
  readonly start: readonly Operation[];
  readonly stop: readonly Stop[];
};

export class Draft {
  readonly context: Context;
  readonly stamp: Stamp;
  readonly #before: Conversation;
  #now: Conversation;
  readonly #messages: Message[] = [];
  readonly #notices: Notice[] = [];
  readonly #charges: Charge[] = [];
  readonly #start: Operation[] = [];
  readonly #stop: Stop[] = [];
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

  setState(state: State): void {
    this.set({ state });
  }

  /** Changes the run in progress; without one there is nothing to change. */
  setRun(change: Partial<Run>): void {
    if (this.#now.run !== null) this.set({ run: { ...this.#now.run, ...change } });
  }

  /** Stores a message as the next in sequence, within the present run. */
  append(body: MessageBody, id: string = this.newId()): void {
    const sequence = this.#now.sequence + 1;
    const cycleId = this.#now.run?.cycleId ?? null;
    this.#messages.push({ ...body, id, sequence, cycleId, createdAt: this.time });
    this.set({ sequence });
  }

  /** @param seed set if the text is what a continued conversation begins with */
  appendSystemMessage(text: string, seed: SeedSource | null = null): void {
    const display = seed === null ? {} : { display: { seed } };
    this.append({ type: "system", actor: "system", content: [{ type: "text", text }], ...display });
  }

  appendNote(text: string): void {
    this.append({ type: "note", actor: "system", content: [{ type: "text", text }] });
  }

  notify(notice: Notice): void {
    this.#notices.push(notice);
  }

  charge(charge: Charge): void {
    this.#charges.push(charge);
  }

  start(operation: Operation): void {
    this.#start.push(operation);
  }

  stop(stop: Stop): void {
    this.#stop.push(stop);
  }

  /** The finished transition; null: nothing has changed. */
  done(): Accepted | null {
    if (this.#now === this.#before) return null;
    return {
      kind: "accepted",
      conversation: this.#now,
      messages: this.#messages,
      notices: [...this.#notices, ...this.#changes()],
      charges: this.#charges,
      start: this.#start,
      stop: this.#stop,
    };
  }

  /** The state comes last: a client that receives it has received everything that led to it. */
  *#changes(): Generator<Notice> {
    const { usage, queue, queueHeld, state, run } = this.#now;
    if (usage !== this.#before.usage) yield { name: "usage.changed", data: { usage: viewUsage(usage) } };
    if (queue !== this.#before.queue || queueHeld !== this.#before.queueHeld)
      yield { name: "queue.changed", data: { queue, queueHeld } };
    if (state !== this.#before.state) {
      const cycleId = (run ?? this.#before.run)?.cycleId ?? null;
      yield { name: "state.changed", data: { state, cycleId } };
    }
  }
}
