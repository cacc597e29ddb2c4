/**
 * Owns: reading the messages of the last cycles, and no more of them than that needs.
 * Not here: what a cycle is (machine/cycles.ts).
 */
import type { Database } from "../db/connect.ts";
import { findMessage, readMessages } from "../db/messages.ts";
import { type Cycles, foldCycles } from "../machine/cycles.ts";
import type { Message } from "../machine/message.ts";

const PAGE = 200;

/**
 * The last `limit` cycles that began before a sequence, whole, and what lies between and after them; with the
 * first cycle also what lies before it. Cycles read page by page are those of the whole conversation.
 *
 * @param before null: the last ones of all.
 */
export async function readCycles(
  db: Database,
  id: string,
  { before, limit }: { readonly before: number | null; readonly limit: number },
): Promise<Cycles> {
  const pages: Message[][] = [];
  let bound = before ?? Number.MAX_SAFE_INTEGER;
  let roots = 0;
  let isWhole = false;
  while (roots < limit && !isWhole) {
    const page = await readMessages(db, id, { before: Math.min(bound, MAX_SEQUENCE), limit: PAGE });
    pages.unshift(page);
    // A root always opens a cycle, wherever the folding begins.
    roots += foldCycles(page).cycles.length;
    bound = page[0]?.sequence ?? 0;
    isWhole = page.length < PAGE;
  }
  const messages = pages.flat();
  const first = foldCycles(messages).cycles.at(-limit);
  const from = roots <= limit && isWhole ? 0 : first === undefined ? 0 : messages.indexOf(first.root);
  const shown = messages.slice(from);
  return foldCycles([...shown, ...(before === null ? [] : await restOfLast(db, id, shown, before))]);
}

/** Of a Postgres integer. */
const MAX_SEQUENCE = 2 ** 31 - 1;

/** A sequence in the middle of a cycle does not cut that cycle. */
async function restOfLast(
  db: Database,
  id: string,
  shown: readonly Message[],
  before: number,
): Promise<Message[]> {
  const rest: Message[] = [];
  let after = before - 1;
  let isOpen =
    foldCycles(shown).cycles.at(-1)?.messages.at(-1) === shown.at(-1) && shown.at(-1)?.type !== "run_stop";
  while (isOpen) {
    const page = await readMessages(db, id, { after, limit: PAGE });
    for (const message of page) {
      const isNext = foldCycles([message]).cycles.length > 0;
      if (isNext || !isOpen) return rest;
      rest.push(message);
      isOpen = message.type !== "run_stop";
    }
    after = page.at(-1)?.sequence ?? after;
    isOpen &&= page.length === PAGE;
  }
  return rest;
}

/** The sequence that a client's `before` means: a cycle's id is that of its root; null: neither is known here. */
export async function sequenceOf(db: Database, id: string, before: string): Promise<number | null> {
  const root = await findMessage(db, id, before);
  if (root?.sequence != null) return root.sequence;
  const sequence = /^\d{1,10}$/.test(before) ? Number(before) : Number.NaN;
  return sequence <= MAX_SEQUENCE ? sequence : null;
}
