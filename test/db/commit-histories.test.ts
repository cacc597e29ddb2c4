/**
 * Two histories of one conversation that share a beginning, as after a workflow reset or an older Temporal database.
 * However their commits interleave, the row ends as one whole history, and the other one detects its divergence.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { commit } from "../../db/commit.ts";
import { versionOf } from "../../db/conversations.ts";
import { readMessages } from "../../db/messages.ts";
import type { Revision, RowVersion } from "../../protocol/commit.ts";
import { newConversation } from "../../machine/conversation.ts";
import { Outbox } from "../../workflows/outbox.ts";
import { newRevisionId } from "../../workflows/revision-id.ts";
import { createConversation, testDatabase, userMessage } from "./fixtures.ts";

const AT = Date.parse("2026-01-01T00:00:00Z");
const db = await testDatabase();

/** One workflow run as its commits show it: what it recorded, and whether it knows that it diverged. */
class Writer {
  readonly outbox: Outbox;
  readonly texts: string[] = [];
  isDiverged = false;
  /** The commits sent so far, for a delivery that comes twice or late. */
  readonly #sent: (readonly Revision[])[] = [];
  readonly #id: string;
  readonly #name: string;
  readonly #previous: number;

  constructor(id: string, name: string, row: RowVersion, messages: number) {
    this.#id = id;
    this.#name = name;
    this.#previous = messages;
    this.outbox = new Outbox(row);
  }

  /** Both writers use the same clock time, so that only their texts differ. */
  record(): void {
    const text = `${this.#name} ${this.texts.length + 1}`;
    this.texts.push(text);
    const message = userMessage(this.#previous + this.texts.length, text);
    const id = newRevisionId(this.outbox.revisionId ?? "", AT, text);
    const conversation = newConversation("unrestricted", 1_000);
    this.outbox.record(id, { conversation, messages: [message], notices: [] }, null, AT);
  }

  async commit(): Promise<void> {
    const revisions = this.outbox.unconfirmed;
    this.#sent.push(revisions);
    await this.#send(revisions);
  }

  async sendAgain(which: number): Promise<void> {
    const revisions = this.#sent[which % Math.max(1, this.#sent.length)];
    if (revisions !== undefined) await this.#send(revisions);
  }

  /** Checks for a divergence as a workflow does that has nothing to commit. */
  async verify(): Promise<void> {
    await this.commit();
    const row = await versionOf(db, this.#id);
    if (row === null || !this.outbox.has(row)) this.isDiverged = true;
  }

  async #send(revisions: readonly Revision[]): Promise<void> {
    const answer = await commit(db, this.#id, revisions);
    if (!this.isDiverged && this.outbox.confirm(answer) === "diverged") this.isDiverged = true;
  }
}

type Turn = {
  readonly who: 0 | 1;
  readonly does: "record" | "commit" | "send again";
  readonly which: number;
};

const turn: fc.Arbitrary<Turn> = fc.record({
  who: fc.constantFrom(0, 1),
  does: fc.constantFrom("record", "record", "commit", "send again"),
  which: fc.nat(5),
});

test(
  "any interleaving of two histories ends with one of them, and the other detects its divergence",
  { timeout: 120_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(3), fc.array(turn, { maxLength: 14 }), async (beginning, turns) => {
        const { id, head } = await createConversation(db);
        const first = new Writer(id, "both", { revision: head.number, revisionId: head.id }, 0);
        for (let n = 0; n < beginning; n++) first.record();
        await first.commit();
        const row = await versionOf(db, id);
        if (row === null) throw new Error("the conversation was made");
        const writers = ["a", "b"].map((name) => new Writer(id, name, row, beginning));
        for (const { who, does, which } of turns) {
          const writer = writers[who];
          // A writer that knows of its divergence writes no more; its earlier commits may still arrive.
          if (writer === undefined || (writer.isDiverged && does !== "send again")) continue;
          if (does === "record") writer.record();
          else if (does === "commit") await writer.commit();
          else await writer.sendAgain(which);
        }
        for (const writer of writers) if (!writer.isDiverged) await writer.verify();
        for (const writer of writers) if (!writer.isDiverged) await writer.verify();

        const written = writers.filter(({ texts }) => texts.length > 0);
        const winners = writers.filter(({ isDiverged }) => !isDiverged);
        expect(winners).toHaveLength(written.length === 0 ? 2 : 1);
        const contents = (await readMessages(db, id, { limit: 100 })).map(({ content }) => content);
        const expected = [...first.texts, ...(winners[0]?.texts ?? [])];
        expect(contents).toEqual(expected.map((text) => [{ type: "text", text }]));
        expect(await versionOf(db, id)).toEqual(winners[0]?.outbox.confirmed);
      }),
      { numRuns: 150 },
    );
  },
);
