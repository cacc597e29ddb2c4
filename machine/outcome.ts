/**
 * Owns: a sub-agent's outcome for its parent (REQ-BED-008): its last state with each text bounded. The outcomes of
 * sixteen sub-agents must fit into one result. The sub-agent's own state keeps the whole texts.
 */
import type { State, SubAgentOutcome } from "./conversation.ts";
import { bounded, OUTCOME_BYTES } from "./size.ts";

/** null while the sub-agent has not ended, and for a conversation that is not a sub-agent. */
export function outcomeOf(state: State): SubAgentOutcome | null {
  if (state.kind === "completed") return { success: state.success, result: short(state.result) };
  if (state.kind !== "failed") return null;
  const { error, errorKind, partialResult } = state;
  const failure = { error: short(error), errorKind };
  return partialResult === undefined ? failure : { ...failure, partialResult: short(partialResult) };
}

const short = (text: string): string => bounded(text, OUTCOME_BYTES);
