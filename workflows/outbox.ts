/**
 * Owns: the revisions that this run has recorded and Postgres has not confirmed yet. It recognises a divergence: an
 * answer of Postgres that does not fit the recorded revisions (architecture, rule 2).
 * Not here: sending them (committer.ts).
 */
import {
  COMMIT_BYTES,
  pack,
  toRevision,
  type Revision,
  type Change,
  type Committed,
  type RowVersion,
} from "../protocol/commit.ts";
import { timestamp } from "../machine/ids.ts";
import { jsonBytes } from "../machine/size.ts";

/**
 * A revision and the bytes that it adds to a commit: `asLast` with its value, `before` if another revision follows it.
 */
type Unconfirmed = { readonly revision: Revision; readonly asLast: number; readonly before: number };

export class Outbox {
  #revision: number;
  #revisionId: string | null;
  #confirmed: RowVersion | null;
  #unconfirmed: Unconfirmed[] = [];

  /** @param confirmed what the row has; null: there is no row yet. */
  constructor(confirmed: RowVersion | null) {
    this.#revision = confirmed?.revision ?? 0;
    this.#revisionId = confirmed?.revisionId ?? null;
    this.#confirmed = confirmed;
  }

  get revision(): number {
    return this.#revision;
  }

  /** The id of the last revision; null before the first. */
  get revisionId(): string | null {
    return this.#revisionId;
  }

  /** The last revision that Postgres is known to have; null before the first. */
  get confirmed(): RowVersion | null {
    return this.#confirmed;
  }

  /** Every commit carries all of these: a cancel may overtake the commit of the operation that it cancels. */
  get unconfirmed(): readonly Revision[] {
    return this.#unconfirmed.map(({ revision }) => revision);
  }

  /** The first unconfirmed revisions, as many as one commit takes; at least one. */
  get fitting(): readonly Revision[] {
    let [count, bytes] = [0, 0];
    for (const { asLast, before } of this.#unconfirmed) {
      if (count > 0 && bytes + asLast > COMMIT_BYTES) break;
      bytes += before;
      count++;
    }
    return this.unconfirmed.slice(0, count);
  }

  /** All unconfirmed revisions fit into one commit. */
  get fits(): boolean {
    const last = this.#unconfirmed.at(-1);
    const bytes = this.#unconfirmed.reduce((sum, one) => sum + (one === last ? one.asLast : one.before), 0);
    return bytes <= COMMIT_BYTES;
  }

  /** @param id of the revision (revision-id.ts). */
  record(id: string, change: Change, archived: boolean | null, at: number): void {
    const head = { number: this.#revision + 1, id, previous: this.#revisionId, at: timestamp(at) };
    const revision: Revision = { ...toRevision(head, change), archived };
    const { conversation: _value, ...whole } = revision;
    this.#unconfirmed.push({ revision, asLast: jsonBytes(pack([revision])), before: jsonBytes(whole) });
    this.#revision = head.number;
    this.#revisionId = id;
  }

  /** Records a commit's answer, also a late one. Says whether the row belongs to this history. */
  confirm({ diverged, confirmed: revision, revisionId }: Committed): "ours" | "diverged" {
    if (diverged || revisionId === null) return "diverged";
    if (this.isOld(revision)) return "ours";
    if (!this.has({ revision, revisionId })) return "diverged";
    this.#confirmed = { revision, revisionId };
    this.#unconfirmed = this.#unconfirmed.filter((each) => each.revision.number > revision);
    return "ours";
  }

  /** Whether this history's last confirmed revision, or one of its unconfirmed ones, has this version. */
  has({ revision, revisionId }: RowVersion): boolean {
    if (revision === this.#confirmed?.revision) return revisionId === this.#confirmed.revisionId;
    return this.#unconfirmed.some(
      (each) => each.revision.number === revision && each.revision.id === revisionId,
    );
  }

  /** A row of this revision was read before the last confirmation, or Postgres has lost revisions since. */
  isOld(revision: number): boolean {
    return revision < (this.#confirmed?.revision ?? 0);
  }
}
