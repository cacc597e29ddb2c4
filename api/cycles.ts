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
 * The last `limit` cycles that began before a sequence, whole, and what lies between and after them; when there
 * are fewer, also what lies before the first. Cycles read page by page are those of the whole conversation.
 *
 * @param before null: the last ones of all.
 */
export async function readCycles(
  db: Database,
  id: string,
  { before, limit }: { readonly before: number | null; readonly limit: number },
): Promise<Cycles> {
  const pages: Message[][] = [];
  let bound = before ?? MAX_SEQUENCE;
  let roots = 0;
  let isWhole = false;
  while (roots < limit && !isWhole) {
    const page = await readMessages(db, id, { before: bound, limit: PAGE });
    pages.unshift(page);
    // A root always opens a cycle, wherever the folding begins.
    roots += foldCycles(page).cycles.length;
    bound = page[0]?.sequence ?? 0;
    isWhole = page.length < PAGE;
  }
  const messages = pages.flat();
  const first = foldCycles(messages).cycles.at(-limit);
  const from = roots < limit || first === undefined ? 0 : messages.indexOf(first.root);
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
  let isOpen = endsInCycle(shown);
  while (isOpen) {
    const page = await readMessages(db, id, { after, limit: PAGE });
    for (const message of page) {
      const isRoot = foldCycles([message]).cycles.length > 0;
      if (isRoot || !isOpen) return rest;
      rest.push(message);
      isOpen = message.type !== "run_stop";
    }
    after = page.at(-1)?.sequence ?? after;
    isOpen &&= page.length === PAGE;
  }
  return rest;
}

function endsInCycle(messages: readonly Message[]): boolean {
  const last = messages.at(-1);
  const cycle = foldCycles(messages).cycles.at(-1);
  return last !== undefined && last.type !== "run_stop" && cycle?.messages.at(-1) === last;
}

/** The sequence that a client's `before` means: a cycle's id is that of its root; null: neither is known here. */
export async function sequenceOf(db: Database, id: string, before: string): Promise<number | null> {
  const root = await findMessage(db, id, before);
  if (root?.sequence != null) return root.sequence;
  const sequence = /^\d{1,10}$/.test(before) ? Number(before) : Number.NaN;
  return sequence <= MAX_SEQUENCE ? sequence : null;
}
