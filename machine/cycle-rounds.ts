/**
 * Owns: a cycle as rounds with the model: a round's input, its output, and the results that the next round reads
 * (request-cycle model, section 6.1, InferenceRound).
 * Not here: which messages make a cycle (cycles.ts).
 */
import type { Message, TokenUsage } from "./message.ts";

/**
 * One response of the model. A request without a response (failed, cancelled, in flight) stores nothing and makes no
 * round.
 */
export type Round = {
  readonly requestId: string;
  /** Ids of the cycle's messages for the model since the previous output: the model had not read them before. */
  readonly input: readonly string[];
  /** The id of the agent message. */
  readonly output: string;
  /** Ids of the results of the output's calls; the next round reads them, if there is one. */
  readonly results: readonly string[];
  readonly usage: TokenUsage;
  /** Milliseconds. */
  readonly durationMs: number;
};

type OpenRound = Round & { readonly results: string[] };

/** The rounds of one cycle, in order. */
export function roundsOf(messages: readonly Message[]): Round[] {
  const rounds: OpenRound[] = [];
  let input: string[] = [];
  for (const message of messages) {
    switch (message.type) {
      case "agent": {
        const { requestId, durationMs } = message.display;
        const { id: output, usage } = message;
        rounds.push({ requestId, input, output, results: [], usage, durationMs });
        input = [];
        break;
      }
      case "tool":
        input.push(message.id);
        rounds.at(-1)?.results.push(message.id);
        break;
      case "user":
      case "system":
        input.push(message.id);
        break;
      // These are for the person, or about the run: the model does not read them.
      case "note":
      case "error":
      case "continuation":
      case "run_stop":
        break;
    }
  }
  return rounds;
}
