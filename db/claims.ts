/** Owns: taking back an order that no worker has begun. Claims are granted by the commit (commit.ts). */
import { sql } from "drizzle-orm";
import type { Claim } from "../protocol/commit.ts";
import type { Database } from "./connect.ts";

/**
 * Claims the order after the one that was lost, unless that one was claimed: then nobody can begin it any more. A
 * repetition with the same claim has the same answer.
 *
 * @param claim of the next order; the lost one is the one before
 * @returns false: the lost order was claimed, or the row does not wait for the operation.
 */
export async function takeBackOrder(db: Database, conversationId: string, claim: Claim): Promise<boolean> {
  const { operationId, dispatchAttempt, by, restarts } = claim;
  const rows = await db.orm.execute(sql`
    UPDATE conversations SET claim = jsonb_build_object(
      'operationId', ${operationId}::text, 'dispatchAttempt', ${dispatchAttempt}::integer,
      'by', ${by}::text, 'restarts', ${restarts}::integer)
    WHERE id = ${conversationId} AND awaits = ${operationId} AND (
      claim IS NULL
      OR claim ->> 'operationId' <> ${operationId}
      OR (claim ->> 'dispatchAttempt')::integer < ${dispatchAttempt}::integer - 1
      OR claim ->> 'by' = ${by})
    RETURNING id`);
  return rows.length > 0;
}
