/**
 * Owns: the numbered batches of a run and which of them Postgres has confirmed; sees a fork when an answer does
 * not fit what was written (architecture, rule 2). Performs nothing itself.
 */
import { uuid4 } from "@temporalio/workflow";
import { toBatch, type Batch, type Committed } from "../machine/batch.ts";
import type { Conversation } from "../machine/conversation.ts";
import type { Effect } from "../machine/effect.ts";
import { timestamp } from "../machine/ids.ts";

export class Ledger {
  #step: number;
  #batchId: string | null;
  #unconfirmed: Batch[] = [];

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
    return this.#unconfirmed;
  }

  record(conversation: Conversation, effects: readonly Effect[], archived: boolean | null, at: number): void {
    const id = uuid4();
    const head = { step: this.#step + 1, id, previous: this.#batchId, at: timestamp(at) };
    this.#unconfirmed.push({ ...toBatch(head, conversation, effects), archived });
    this.#step = head.step;
    this.#batchId = id;
  }

  /** Takes note of a commit's answer, late ones included. Says whether the row belongs to this history. */
  confirm(answer: Committed): "ours" | "fork" {
    if (answer.fork || answer.confirmed > this.#step) return "fork";
    const same = this.#unconfirmed.find((batch) => batch.step === answer.confirmed);
    if (same !== undefined && same.id !== answer.batchId) return "fork";
    this.#unconfirmed = this.#unconfirmed.filter((batch) => batch.step > answer.confirmed);
    return "ours";
  }
}
