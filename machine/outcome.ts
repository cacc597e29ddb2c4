/**
 * Owns: how a sub-agent ended, as its parent hears of it: its last state, with each text bounded, because what sixteen
 * of them say has to fit into one result (REQ-BED-008). Its own state keeps all of it.
 */
import type { State, SubAgentOutcome } from "./conversation.ts";
import { bounded, OUTCOME_BYTES } from "./size.ts";

/** null while the sub-agent lives, and for a conversation that is none. */
export function outcomeOf(state: State): SubAgentOutcome | null {
  if (state.kind === "completed") return { success: state.success, result: short(state.result) };
  if (state.kind !== "failed") return null;
  const { error, errorKind, partialResult } = state;
  const failure = { error: short(error), errorKind };
  return partialResult === undefined ? failure : { ...failure, partialResult: short(partialResult) };
}

const short = (text: string): string => bounded(text, OUTCOME_BYTES);
