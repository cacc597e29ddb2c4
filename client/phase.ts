/** Owns: a state in the words that a person reads, and what it wants of the person. */
import type { State } from "../machine/conversation.ts";

export type Phase =
  /** The person decides what goes on. */
  | "waits"
  | "works"
  | "rests"
  | "failed"
  /** It takes no more messages. */
  | "ended";

export function phaseOf(state: State): Phase {
  switch (state.kind) {
    case "awaiting_mode_approval":
      return "waits";
    case "awaiting_llm":
    case "llm_requesting":
    case "tool_executing":
    case "awaiting_sub_agents":
    case "cancelling":
    case "awaiting_continuation":
      return "works";
    case "idle":
      return "rests";
    case "error":
    case "failed":
      return "failed";
    case "context_exhausted":
    case "completed":
      return "ended";
  }
}

/** What the agent does now, without a time: "runs bash". A pending retry is told by `retryOf`. */
export function describeState(state: State): string {
  switch (state.kind) {
    case "idle":
      return "ready";
    case "awaiting_llm":
    case "llm_requesting":
      return retryOf(state) === null ? "asks the model" : "will ask again";
    case "tool_executing":
      return `runs ${state.current.name}`;
    case "awaiting_mode_approval":
      return "waits for you";
    case "awaiting_sub_agents":
      return `sub-agents: ${state.finished.length} of ${state.all.length} done`;
    case "cancelling":
      return "stopping";
    case "error":
      return ERRORS[state.errorKind];
    case "awaiting_continuation":
      return retryOf(state) === null ? "writes a summary" : "will ask again for a summary";
    case "context_exhausted":
      return "context used up";
    case "completed":
      return state.success ? "done" : "done, without success";
    case "failed":
      return ERRORS[state.errorKind];
  }
}

const ERRORS = {
  auth: "key refused",
  rate_limit: "rate limit",
  overloaded: "provider overloaded",
  network: "provider not reached",
  invalid_request: "request refused",
  context_exhausted: "context used up",
  runaway: "too many requests",
  spending_limit: "spending limit",
  interrupted: "interrupted",
  unknown: "failed",
} as const;

/** A failed request that will be asked again; null: none. */
export function retryOf(state: State) {
  return state.kind === "llm_requesting" || state.kind === "awaiting_continuation" ? state.retry : null;
}
