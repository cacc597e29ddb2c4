/**
 * Owns: getting the ledger's batches into Postgres, and what was accepted from people until it is there. Finds out
 * that the row has another history, and says so once.
 */
import type { CancellationScope } from "@temporalio/workflow";
import type { CommitInput } from "../activities/contract.ts";
import { pack, type Batch, type Committed } from "../machine/batch.ts";
import { commit } from "./activities.ts";
import type { Opening, SendMessageInput } from "./contract.ts";
import type { Ledger } from "./ledger.ts";

export type Past = {
  readonly conversationId: string;
  readonly ledger: Ledger;
  /** Makes the row with the first batch; null when there is one. */
  readonly opening: Opening | null;
};

export class Commits {
  readonly ledger: Ledger;
  readonly #conversationId: string;
  readonly #base: CancellationScope;
  /** Called with the messages that are accepted and not confirmed. */
  readonly #onFork: (accepted: readonly SendMessageInput[]) => void;
  #opening: Opening | null;
  /** The commits of its own: one at a time, because each carries all that the one before has not confirmed. */
  #settling: Promise<void> | null = null;
  #closed = false;
  /** Messages by the step that took them. */
  readonly #accepted = new Map<number, SendMessageInput>();

  constructor(past: Past, base: CancellationScope, onFork: (accepted: readonly SendMessageInput[]) => void) {
    this.ledger = past.ledger;
    this.#conversationId = past.conversationId;
    this.#opening = past.opening;
    this.#base = base;
    this.#onFork = onFork;
  }

  /** What is pending fits into one commit, or no confirmation is waited for. */
  get hasRoom(): boolean {
    return this.#closed || this.ledger.fits;
  }

  /** Everything recorded is confirmed, or no confirmation is waited for. */
  get isSettled(): boolean {
    return this.#settling === null && (this.#closed || this.ledger.unconfirmed.length === 0);
  }

  /** What the commit of an effect has to carry: everything. */
  pending(): CommitInput {
    return this.#inputOf(this.ledger.unconfirmed);
  }

  /** Resolves when everything recorded is in Postgres, however long that takes. */
  settle(): Promise<void> {
    this.#settling ??= this.#commitAll();
    return this.#settling;
  }

  async #commitAll(): Promise<void> {
    try {
      do this.confirm(await this.#base.run(() => commit(this.#inputOf(this.ledger.fitting))));
      while (!this.#closed && this.ledger.unconfirmed.length > 0);
    } finally {
      this.#settling = null;
    }
  }

  /** The last recorded step took this message. */
  accept(message: SendMessageInput): void {
    this.#accepted.set(this.ledger.step, message);
  }

  confirm(answer: Committed): void {
    if (this.#closed) return;
    if (this.ledger.confirm(answer) === "fork") {
      this.close();
      this.#onFork([...this.#accepted.values()]);
      return;
    }
    if (answer.confirmed > 0) this.#opening = null;
    for (const step of this.#accepted.keys()) if (step <= answer.confirmed) this.#accepted.delete(step);
  }

  #inputOf(batches: readonly Batch[]): CommitInput {
    return { ...pack(batches), conversationId: this.#conversationId, opening: this.#opening };
  }

  /** No answer counts any more. */
  close(): void {
    this.#closed = true;
  }
}
