/** Owns: a commit that is measured, and that tells of turns which it ends. */
import { commitAndRead } from "../db/commit.ts";
import type { Database } from "../db/connect.ts";
import type { Telemetry } from "../observability/telemetry.ts";
import type { Packed } from "../protocol/commit.ts";
import { orRefused } from "./refused-commit.ts";

type Parts = Parameters<typeof commitAndRead>[3];

/** As `commitAndRead`; a commit that Postgres refuses for good rejects with that reason. */
export async function recordedCommit(
  { db, telemetry }: { readonly db: Database; readonly telemetry: Telemetry },
  conversationId: string,
  packed: Packed,
  parts: Parts,
): ReturnType<typeof commitAndRead> {
  const started = performance.now();
  const seconds = (): number => (performance.now() - started) / 1_000;
  try {
    const answer = await orRefused(commitAndRead(db, conversationId, packed, parts));
    const { diverged } = answer.committed;
    telemetry.metrics.countCommit(diverged ? "diverged" : "stored", seconds());
    if (!diverged)
      for (const { messages } of packed.revisions) telemetry.turnEnds.note(conversationId, messages);
    return answer;
  } catch (error) {
    telemetry.metrics.countCommit("failed", seconds());
    throw error;
  }
}

/** The turn that the value after a commit is in; null: none, or the commit has no value. */
export const cycleAfter = ({ value }: Packed): string | null => value?.conversation.run?.cycleId ?? null;

/** The turn that a commit ends; null: none. */
export function cycleEndedBy({ revisions }: Packed): string | null {
  const messages = revisions.flatMap((revision) => revision.messages);
  return messages.findLast(({ type }) => type === "run_stop")?.cycleId ?? null;
}
