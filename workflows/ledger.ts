/**
 * Owns: the numbered batches of a run and which of them Postgres has confirmed; sees a fork when an answer does
 * not fit what was written (architecture, rule 2). Performs nothing itself.
 */
import {
  COMMIT_BYTES,
  pack,
  toBatch,
  type Batch,
  type Change,
  type Committed,
  type RowVersion,
} from "../protocol/commit.ts";
import { timestamp } from "../machine/ids.ts";
import { jsonBytes } from "../machine/size.ts";

/** With what it adds to a commit, in bytes: as the last one, with its value, and before another. */
type Unconfirmed = { readonly batch: Batch; readonly asLast: number; readonly before: number };

export class Ledger {
  #step: number;
  #batchId: string | null;
  #confirmed: RowVersion | null;
  #unconfirmed: Unconfirmed[] = [];

  /** @param confirmed what the row has; null: there is no row yet. */
  constructor(confirmed: RowVersion | null) {
    this.#step = confirmed?.step ?? 0;
    this.#batchId = confirmed?.batchId ?? null;
    this.#confirmed = confirmed;
  }

  get step(): number {
    return this.#step;
  }

  /** Of the last batch; null before the first. */
  get batchId(): string | null {
    return this.#batchId;
  }

  /** The last step that Postgres is known to have; null before the first. */
  get confirmed(): RowVersion | null {
    return this.#confirmed;
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

  /** @param id of the step (step-id.ts). */
  record(id: string, change: Change, archived: boolean | null, at: number): void {
    const head = { step: this.#step + 1, id, previous: this.#batchId, at: timestamp(at) };
    const batch: Batch = { ...toBatch(head, change), archived };
    const { conversation: _value, ...whole } = batch;
    this.#unconfirmed.push({ batch, asLast: jsonBytes(pack([batch])), before: jsonBytes(whole) });
    this.#step = head.step;
    this.#batchId = id;
  }

  /** Takes note of a commit's answer, late ones included. Says whether the row belongs to this history. */
  confirm({ fork, confirmed: step, batchId }: Committed): "ours" | "fork" {
    if (fork || batchId === null) return "fork";
    if (this.isOld(step)) return "ours";
    if (!this.has({ step, batchId })) return "fork";
    this.#confirmed = { step, batchId };
    this.#unconfirmed = this.#unconfirmed.filter(({ batch }) => batch.step > step);
    return "ours";
  }

  /** Whether a row of this version is where this history is, or was before the steps that are not confirmed. */
  has({ step, batchId }: RowVersion): boolean {
    if (step === this.#confirmed?.step) return batchId === this.#confirmed.batchId;
    return this.#unconfirmed.some(({ batch }) => batch.step === step && batch.id === batchId);
  }

  /** A row of this step was read before the last confirmation, or Postgres has lost steps since. */
  isOld(step: number): boolean {
    return step < (this.#confirmed?.step ?? 0);
  }
}
