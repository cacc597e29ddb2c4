/**
 * Owns: refusing a message or a conversation early, when a limit on spending is reached: it would be refused by the
 * worker all the same, as an error of its run (activities/requests.ts).
 */
import { readSums } from "../db/spending.ts";
import { getConversation } from "../db/views.ts";
import {
  dayOf,
  limitsSet,
  refusalOf,
  refusalOfModel,
  secondsLeftOf,
  type Refusal,
} from "../protocol/spending.ts";
import type { Deps } from "./deps.ts";
import { Problem } from "./problem.ts";

type Spender =
  | { readonly kind: "conversation"; readonly id: string }
  /** One that is to be made. */
  | { readonly kind: "new"; readonly model: string };

/** Reads nothing if no limit is set. Rejects with the Problem of the limit that is reached. */
export async function refuseOverLimit(
  { db, models, spendingLimits: limits }: Pick<Deps, "db" | "models" | "spendingLimits">,
  spender: Spender,
): Promise<void> {
  const wanted = limitsSet(limits);
  if (!wanted.conversation && !wanted.day) return;
  const now = new Date();
  const id = spender.kind === "conversation" ? spender.id : null;
  const model = spender.kind === "new" ? spender.model : (await getConversation(db, spender.id))?.model;
  const noPrice = model === undefined ? null : refusalOfModel(limits, (await models()).of(model));
  const refusal = noPrice ?? refusalOf(limits, await readSums(db, id, dayOf(now)));
  if (refusal !== null) throw problemOf(refusal, now);
}

function problemOf({ kind, reason }: Refusal, now: Date): Problem {
  switch (kind) {
    case "conversation":
      return new Problem("conversation_limit_reached", reason);
    case "day":
      return new Problem("daily_limit_reached", reason, { retryAfter: secondsLeftOf(now) });
    case "no_price":
      return new Problem("no_price", reason);
  }
}
