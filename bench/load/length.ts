/** Measures: what a turn adds to a workflow's history and to the database, as the conversation gets longer. */
import { openClient } from "../../db/connect.ts";
import type { Product } from "../../test/support/product.ts";
import { Histories } from "../history.ts";
import { plainTurns } from "../rounds.ts";

/** Turns between two looks at the size of the database. */
const EVERY = 50;

export type Length = {
  /** Turns so far. */
  readonly turns: number;
  /** Events of all runs' histories, and bytes of the database, since the first look. */
  readonly events: number;
  readonly bytes: number;
};

export async function lengths(product: Product, cwd: string, turns: number): Promise<readonly Length[]> {
  const sql = openClient(product.databaseUrl, "load");
  const sizeOf = async (): Promise<number> => {
    const [row] = await sql`select pg_database_size(current_database()) as size`;
    return Number(row?.["size"]);
  };
  const sizes: { readonly turns: number; readonly at: number; readonly bytes: number }[] = [];
  const { id } = await plainTurns(product, cwd, turns, async (done) => {
    if (done % EVERY === 0) sizes.push({ turns: done, at: Date.now(), bytes: await sizeOf() });
  });
  const histories = await Histories.read(product.temporalAddress, id);
  const first = sizes[0]?.bytes ?? 0;
  await sql.end();
  return sizes.map(({ turns, at, bytes }) => ({
    ...{ turns, bytes: bytes - first },
    events: histories.eventsUntil(at),
  }));
}
