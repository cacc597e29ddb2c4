/**
 * Owns: getting the ledger's batches into Postgres, and what was accepted from people until it is there. Finds out
 * that the row has another history, or does not take a step, and says so once.
 */
import { ActivityFailure, ApplicationFailure, type CancellationScope } from "@temporalio/workflow";
import type { CommitInput } from "../protocol/activities.ts";
import { COMMIT_REFUSED, pack, type Batch, type Committed } from "../protocol/commit.ts";
import { commit, reasonIn } from "./activities.ts";
import type { CreateInput } from "../protocol/workflow.ts";
import type { Ledger } from "./ledger.ts";
import type { Request } from "./requests.ts";

/** This history is not that of the row; `requests` were accepted into it and are not stored. */
export type Divergence =
  | { readonly kind: "fork"; readonly requests: readonly Request[] }
  /** Postgres does not take a step, `inARow` times since it took one. */
  | {
      readonly kind: "refused";
      readonly reason: string;
      readonly inARow: number;
      readonly requests: readonly Request[];
    };

export type Past = {
  readonly conversationId: string;
  readonly ledger: Ledger;
  /** Makes the row with the first batch; null when there is one. */
  readonly createInput: CreateInput | null;
  /** How often in a row Postgres has refused a step before this history began. */
  readonly refusals: number;
  /** Restarts of the whole system that are known. */
  readonly restarts: number;
};

export class Commits {
  readonly ledger: Ledger;
  readonly #conversationId: string;
  readonly #base: CancellationScope;
  readonly #onDivergence: (divergence: Divergence) => void;
  #createInput: CreateInput | null;
  #refusals: number;
  #restarts: number;
  /** The commits of its own: one at a time, because each carries all that the one before has not confirmed. */
  #settling: Promise<void> | null = null;
  #verifying: Promise<void> | null = null;
  #closed = false;
  /** By the step that took them. */
  readonly #requests = new Map<number, Request[]>();

  constructor(past: Past, base: CancellationScope, onDivergence: (divergence: Divergence) => void) {
    this.ledger = past.ledger;
    this.#conversationId = past.conversationId;
    this.#createInput = past.createInput;
    this.#refusals = past.refusals;
    this.#restarts = past.restarts;
    this.#base = base;
    this.#onDivergence = onDivergence;
  }

  /** What is pending fits into one commit, or no confirmation is waited for. */
  get hasRoom(): boolean {
    return this.#closed || this.ledger.fits;
  }

  /** Everything recorded is confirmed, or no confirmation is waited for. */
  get isFlushed(): boolean {
    const isAsking = this.#settling !== null || this.#verifying !== null;
    return !isAsking && this.#hasNothingToSend;
  }

  get #hasNothingToSend(): boolean {
    return this.#closed || this.ledger.unconfirmed.length === 0;
  }

  /** What the commit of an effect has to carry: everything. */
  pending(): CommitInput & { readonly restarts: number } {
    return { ...this.#inputOf(this.ledger.unconfirmed), restarts: this.#restarts };
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** What was ordered before is not begun any more (`commit_batches`). */
  noteRestarts(count: number): void {
    this.#restarts = Math.max(this.#restarts, count);
  }

  /** Resolves when everything recorded is in Postgres, however long that takes, or the history has diverged. */
  flush(): Promise<void> {
    if (this.#hasNothingToSend) return this.#settling ?? Promise.resolve();
    this.#settling ??= this.#commitAll();
    return this.#settling;
  }

  async #commitAll(): Promise<void> {
    try {
      while (!this.#hasNothingToSend) {
        const answer = await this.#send(this.ledger.fitting);
        if (answer !== null) this.confirm(answer);
      }
    } finally {
      // In the same turn as the last look: what is recorded from now on has to be sent anew.
      this.#settling = null;
    }
  }

  /** Resolves when it is known whether the row is where this history is, however long that takes. */
  verify(): Promise<void> {
    // One for all who ask meanwhile: they go on in their order.
    this.#verifying ??= this.#compare().finally(() => (this.#verifying = null));
    return this.#verifying;
  }

  async #compare(): Promise<void> {
    await this.flush();
    const { step } = this.ledger;
    const answer = await this.#send([]);
    // What was recorded meanwhile is compared by its own commit.
    if (answer === null || this.#closed || step !== this.ledger.step) return;
    const { fork, confirmed, batchId } = answer;
    if (fork || batchId === null || !this.ledger.has({ step: confirmed, batchId })) this.#fork();
  }

  /** null: it was refused. */
  async #send(batches: readonly Batch[]): Promise<Committed | null> {
    try {
      return await this.#base.run(() => commit(this.#inputOf(batches)));
    } catch (error) {
      const reason = refusalIn(error);
      if (reason === null) throw error;
      this.refuse(reason);
      return null;
    }
  }

  /** The last recorded step is what a person has asked for. */
  accept(request: Request): void {
    const { step } = this.ledger;
    this.#requests.set(step, [...(this.#requests.get(step) ?? []), request]);
  }

  confirm(answer: Committed): void {
    if (this.#closed) return;
    if (this.ledger.confirm(answer) === "fork") {
      this.#fork();
      return;
    }
    this.#refusals = 0;
    this.noteRestarts(answer.restarts);
    if (answer.confirmed > 0) this.#createInput = null;
    for (const step of this.#requests.keys()) if (step <= answer.confirmed) this.#requests.delete(step);
  }

  /** Postgres does not take what is pending, and would not the next time either. */
  refuse(reason: string): void {
    if (this.#closed) return;
    const requests = this.close();
    this.#onDivergence({ kind: "refused", reason, inARow: this.#refusals + 1, requests });
  }

  #fork(): void {
    this.#onDivergence({ kind: "fork", requests: this.close() });
  }

  #inputOf(batches: readonly Batch[]): CommitInput {
    return { ...pack(batches), conversationId: this.#conversationId, createInput: this.#createInput };
  }

  /** No answer counts any more. Returns what was accepted and is not known to be stored. */
  close(): readonly Request[] {
    this.#closed = true;
    return [...this.#requests.values()].flat();
  }
}

/** Why Postgres has refused a commit for good, if that is what the activity failed of. */
export function refusalIn(error: unknown): string | null {
  const cause = error instanceof ActivityFailure ? error.cause : null;
  return cause instanceof ApplicationFailure && cause.type === COMMIT_REFUSED ? reasonIn(cause) : null;
}
