/**
 * Owns: how a sub-agent ended, as its parent hears of it: its last state, with each text bounded, because what sixteen
 * of them say has to fit into one result (REQ-BED-008). Its own state keeps all of it.
 */
import type { State, StateOf, SubAgentOutcome } from "./conversation.ts";
import { bounded, OUTCOME_BYTES } from "./size.ts";

/** null while the sub-agent lives, and for a conversation that is none. */
export const outcomeOf = (state: State): SubAgentOutcome | null =>
  state.kind === "completed" || state.kind === "failed" ? boundedOutcome(state) : null;

export function boundedOutcome(end: StateOf<"completed"> | StateOf<"failed">): SubAgentOutcome {
  if (end.kind === "completed") return { success: end.success, result: short(end.result) };
  const { error, errorKind, partialResult } = end;
  const failure = { error: short(error), errorKind };
  return partialResult === undefined ? failure : { ...failure, partialResult: short(partialResult) };
}

const short = (text: string): string => bounded(text, OUTCOME_BYTES);
