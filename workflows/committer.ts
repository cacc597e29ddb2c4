/**
 * Owns: sending the outbox to Postgres, and remembering people's accepted requests until they are stored. It reports
 * once that the row has another history, or that Postgres refuses a revision.
 */
import { ActivityFailure, ApplicationFailure, type CancellationScope } from "@temporalio/workflow";
import type { CommitInput } from "../protocol/activities.ts";
import { COMMIT_REFUSED, pack, type Revision, type Committed } from "../protocol/commit.ts";
import { commit, reasonIn } from "./activities.ts";
import type { CreateInput } from "../protocol/workflow.ts";
import type { Outbox } from "./outbox.ts";
import type { Request } from "./requests.ts";

/** This history is not that of the row. Nobody has stored `requests`, which were accepted into it. */
export type Divergence =
  | { readonly kind: "other_history"; readonly requests: readonly Request[] }
  /** Postgres has refused a revision, `inARow` times since it took one. */
  | {
      readonly kind: "refused";
      readonly reason: string;
      readonly inARow: number;
      readonly requests: readonly Request[];
    };

export type CommitterOptions = {
  readonly conversationId: string;
  readonly outbox: Outbox;
  /** Makes the row with the first revision; null when there is one. */
  readonly createInput: CreateInput | null;
  /** How often in a row Postgres has refused a revision before this history began. */
  readonly refusals: number;
  /** Restarts of the whole system that are known. */
  readonly restarts: number;
};

export class Committer {
  readonly outbox: Outbox;
  readonly #conversationId: string;
  readonly scope: CancellationScope;
  readonly #onDivergence: (divergence: Divergence) => void;
  #createInput: CreateInput | null;
  #refusals: number;
  #restarts: number;
  /** One commit of its own at a time: each carries all that the one before has not confirmed. */
  flushing: Promise<void> | null = null;
  #verifying: Promise<void> | null = null;
  #closed = false;
  /** By the revision that took them. */
  readonly #requests = new Map<number, Request[]>();

  constructor(
    past: CommitterOptions,
    base: CancellationScope,
    onDivergence: (divergence: Divergence) => void,
  ) {
    this.outbox = past.outbox;
    this.#conversationId = past.conversationId;
    this.#createInput = past.createInput;
    this.#refusals = past.refusals;
    this.#restarts = past.restarts;
    this.scope = base;
    this.#onDivergence = onDivergence;
  }

  /** What is pending fits into one commit, or no confirmation is waited for. */
  get hasRoom(): boolean {
    return this.#closed || this.outbox.fits;
  }

  /** Everything recorded is confirmed, or no confirmation is waited for. */
  get isFlushed(): boolean {
    const isAsking = this.flushing !== null || this.#verifying !== null;
    return !isAsking && this.#hasNothingToSend;
  }

  get #hasNothingToSend(): boolean {
    return this.#closed || this.outbox.unconfirmed.length === 0;
  }

  /** What the commit of an effect has to carry: everything. */
  pending(): CommitInput & { readonly restarts: number } {
    return { ...this.#inputOf(this.outbox.unconfirmed), restarts: this.#restarts };
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** Postgres grants no claim that was ordered before (`commit_revisions`). */
  noteRestarts(count: number): void {
    this.#restarts = Math.max(this.#restarts, count);
  }

  /** Resolves when everything recorded is in Postgres, however long that takes, or the history has diverged. */
  flush(): Promise<void> {
    if (this.#hasNothingToSend) return this.flushing ?? Promise.resolve();
    this.flushing ??= this.#commitAll();
    return this.flushing;
  }

  async #commitAll(): Promise<void> {
    try {
      while (!this.#hasNothingToSend) {
        const answer = await this.#send(this.outbox.fitting);
        if (answer !== null) this.confirm(answer);
      }
    } finally {
      // In the same turn as the last look: what is recorded from now on has to be sent anew.
      this.flushing = null;
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
    const { revision } = this.outbox;
    const answer = await this.#send([]);
    // What was recorded meanwhile is compared by its own commit.
    if (answer === null || this.#closed || revision !== this.outbox.revision) return;
    const { diverged, confirmed, revisionId } = answer;
    if (diverged || revisionId === null || !this.outbox.has({ revision: confirmed, revisionId }))
      this.diverge();
  }

  /** null: it was refused. */
  async #send(revisions: readonly Revision[]): Promise<Committed | null> {
    try {
      return await this.scope.run(() => commit(this.#inputOf(revisions)));
    } catch (error) {
      const reason = refusalIn(error);
      if (reason === null) throw error;
      this.refuse(reason);
      return null;
    }
  }

  /** A person has asked for the last recorded revision. */
  accept(request: Request): void {
    const { revision } = this.outbox;
    this.#requests.set(revision, [...(this.#requests.get(revision) ?? []), request]);
  }

  confirm(answer: Committed): void {
    if (this.#closed) return;
    if (this.outbox.confirm(answer) === "diverged") {
      this.diverge();
      return;
    }
    this.#refusals = 0;
    this.noteRestarts(answer.restarts);
    if (answer.confirmed > 0) this.#createInput = null;
    for (const revision of this.#requests.keys())
      if (revision <= answer.confirmed) this.#requests.delete(revision);
  }

  /** Postgres does not take what is pending, and would not the next time either. */
  refuse(reason: string): void {
    if (this.#closed) return;
    const requests = this.close();
    this.#onDivergence({ kind: "refused", reason, inARow: this.#refusals + 1, requests });
  }

  diverge(): void {
    this.#onDivergence({ kind: "other_history", requests: this.close() });
  }

  #inputOf(revisions: readonly Revision[]): CommitInput {
    return { ...pack(revisions), conversationId: this.#conversationId, createInput: this.#createInput };
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
