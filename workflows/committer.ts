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

/** This history is not the row's. `requests` were accepted into this history and are not stored. */
export type Divergence =
  | { readonly kind: "other_history"; readonly requests: readonly Request[] }
  /** Postgres has refused a revision, `inARow` times without accepting one in between. */
  | {
      readonly kind: "refused";
      readonly reason: string;
      readonly inARow: number;
      readonly requests: readonly Request[];
    };

export type CommitterOptions = {
  readonly conversationId: string;
  readonly outbox: Outbox;
  /** Creates the row with the first revision; null when the row exists. */
  readonly createInput: CreateInput | null;
  /** How often in a row Postgres has refused a revision before this history began. */
  readonly refusals: number;
  /** Known restarts of the whole system. */
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
  /** The committer's own commits run one at a time: each carries everything that the previous one has not confirmed. */
  flushing: Promise<void> | null = null;
  #verifying: Promise<void> | null = null;
  #closed = false;
  /** Accepted requests, by the number of the revision that contains them. */
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

  /** The unconfirmed revisions fit into one commit, or the committer is closed. */
  get hasRoom(): boolean {
    return this.#closed || this.outbox.fits;
  }

  /** No commit or comparison runs, and everything recorded is confirmed or the committer is closed. */
  get isFlushed(): boolean {
    const isAsking = this.flushing !== null || this.#verifying !== null;
    return !isAsking && this.#hasNothingToSend;
  }

  get #hasNothingToSend(): boolean {
    return this.#closed || this.outbox.unconfirmed.length === 0;
  }

  /** The input for the commit of an effect: all unconfirmed revisions. */
  pending(): CommitInput & { readonly restarts: number } {
    return { ...this.#inputOf(this.outbox.unconfirmed), restarts: this.#restarts };
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** Postgres grants no claim that was ordered before the last restart (`commit_revisions`). */
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
      // Cleared in the same turn as the loop's last check: a revision that is recorded from now on needs a new flush.
      this.flushing = null;
    }
  }

  /** Resolves when Postgres has said whether the row has this history, however long that takes. */
  verify(): Promise<void> {
    // All callers share one comparison, and go on in their order.
    this.#verifying ??= this.#compare().finally(() => (this.#verifying = null));
    return this.#verifying;
  }

  async #compare(): Promise<void> {
    await this.flush();
    const { revision } = this.outbox;
    const answer = await this.#send([]);
    // A revision that was recorded meanwhile is compared by its own commit.
    if (answer === null || this.#closed || revision !== this.outbox.revision) return;
    const { diverged, confirmed, revisionId } = answer;
    if (diverged || revisionId === null || !this.outbox.has({ revision: confirmed, revisionId }))
      this.diverge();
  }

  /** null: Postgres refused it. */
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

  /** Remembers a person's request, which the last recorded revision contains. */
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

  /** Postgres refuses the pending revisions, and would refuse them again. */
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

  /** Ignores all further answers. Returns the accepted requests that are not known to be stored. */
  close(): readonly Request[] {
    this.#closed = true;
    return [...this.#requests.values()].flat();
  }
}

/** Why Postgres has refused a commit for good; null: the activity failed for another reason. */
export function refusalIn(error: unknown): string | null {
  const cause = error instanceof ActivityFailure ? error.cause : null;
  return cause instanceof ApplicationFailure && cause.type === COMMIT_REFUSED ? reasonIn(cause) : null;
}
