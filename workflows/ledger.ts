/**
 * Owns: the numbered batches of a run and which of them Postgres has confirmed; sees a fork when an answer does
 * not fit what was written (architecture, rule 2). Performs nothing itself.
 */
import { uuid4 } from "@temporalio/workflow";
import { pack, toBatch, type Batch, type Committed } from "../machine/batch.ts";
import type { Conversation } from "../machine/conversation.ts";
import type { Effect } from "../machine/effect.ts";
import { timestamp } from "../machine/ids.ts";
import { COMMIT_BYTES, jsonBytes } from "../machine/size.ts";

/** With what it adds to a commit, in bytes: as the last one, with its value, and before another. */
type Unconfirmed = { readonly batch: Batch; readonly asLast: number; readonly before: number };

export class Ledger {
  #step: number;
  #batchId: string | null;
  #unconfirmed: Unconfirmed[] = [];

  constructor(step: number, batchId: string | null) {
    this.#step = step;
    this.#batchId = batchId;
  }

  get step(): number {
    return this.#step;
  }

  /** Of the last batch; null before the first. */
  get batchId(): string | null {
    return this.#batchId;
  }

  /** Everything that the next commit has to carry: a cancel may overtake the batch of what it cancels. */
  get unconfirmed(): readonly Batch[] {
    return this.#unconfirmed.map(({ batch }) => batch);
  }

  /** The first of them, as many as one commit takes; one at least. */
  get fitting(): readonly Batch[] {
    let [count, bytes] = [0, 0];
    for (const { asLast, before } of this.#unconfirmed) {
      if (count > 0 && bytes + asLast > COMMIT_BYTES) break;
      bytes += before;
      count++;
    }
    return this.unconfirmed.slice(0, count);
  }

  /** All of them are one commit's worth. */
  get fits(): boolean {
    const last = this.#unconfirmed.at(-1);
    const bytes = this.#unconfirmed.reduce((sum, one) => sum + (one === last ? one.asLast : one.before), 0);
    return bytes <= COMMIT_BYTES;
  }

  record(conversation: Conversation, effects: readonly Effect[], archived: boolean | null, at: number): void {
    const id = uuid4();
    const head = { step: this.#step + 1, id, previous: this.#batchId, at: timestamp(at) };
    const batch: Batch = { ...toBatch(head, conversation, effects), archived };
    const { conversation: _value, ...whole } = batch;
    this.#unconfirmed.push({ batch, asLast: jsonBytes(pack([batch])), before: jsonBytes(whole) });
    this.#step = head.step;
    this.#batchId = id;
  }

  /** Takes note of a commit's answer, late ones included. Says whether the row belongs to this history. */
  confirm(answer: Committed): "ours" | "fork" {
    if (answer.fork || answer.confirmed > this.#step) return "fork";
    const same = this.unconfirmed.find((batch) => batch.step === answer.confirmed);
    if (same !== undefined && same.id !== answer.batchId) return "fork";
    this.#unconfirmed = this.#unconfirmed.filter(({ batch }) => batch.step > answer.confirmed);
    return "ours";
  }
}
