/**
 * Owns: every sentence that the machine writes: to the model (tool results, system messages), to the person (notes,
 * errors, rejections). They are in one file so that their wording stays consistent.
 */
import type { CancelledBy, SubAgentOutcome, ToolCall } from "./conversation.ts";
import { bounded, OUTCOME_BYTES } from "./size.ts";

/** @param by the name of who decided, if that is known; it is one of few characters (protocol/formats.ts) */
const personOf = (by: string | undefined): string => by ?? "The user";

export const toModel = {
  skippedByCancel: "Skipped due to cancellation",
  skippedByRestart: "Skipped: the system restarted before this call could run.",
  skippedByContext: "Not executed: the context window is nearly full.",
  skippedAfterSubmit: "Skipped: the result was already submitted.",
  skippedByRefusal: "Skipped: the response was a refusal.",
  interrupted:
    "Interrupted: this call was running when its worker was lost. Its outcome is unknown: it may have had none, some or all of its effects. Check before relying on it or repeating it.",
  malformedJson:
    "The input of this call was not valid JSON, so it was not executed. Send the call again with valid JSON.",
  truncated:
    "This call was cut off by the output limit, so it was not executed. Send it again, in smaller pieces if it is long.",
  tooLong:
    "The inputs of this response's calls were too long together, so this one was not executed. Send it again, in smaller pieces.",
  continueText: "Your last message was cut off by the output limit. Continue exactly where it ended.",
  alreadyUnrestricted: "Already in Unrestricted mode",
  upgradeApproved: (by?: string): string =>
    `${personOf(by)} approved the upgrade. The conversation is now in Unrestricted mode.`,
  upgradeDenied: (by?: string): string =>
    `${personOf(by)} denied the upgrade. The conversation stays in Restricted mode: continue without write access, or explain to the user what you would need.`,
  nowUnrestricted: (by?: string): string =>
    `${personOf(by)} approved the mode upgrade. The conversation is now in Unrestricted mode: bash runs without the sandbox and the tools that write files are enabled.`,
  nowRestricted:
    "The user switched the conversation to Restricted mode. From now on bash runs in a read-only sandbox without network access, and the tools that write files are disabled. Use request_mode_upgrade to request write access.",
  remindToSubmit:
    "You ended your turn without submitting a result. Call submit_result with your final result.",
  submitted: "Result submitted.",
  timedOut: (seconds: number): string =>
    `Timed out after ${seconds} s. What it had found is lost: give smaller tasks, or a longer timeoutSeconds.`,
  unknownTool: (name: string): string => `There is no tool named "${name}" in this conversation.`,
  invalidInput: (name: string, problem: string): string => `Invalid input for ${name}: ${problem}`,
  /** REQ-PATCH-009. */
  disabledInRestricted: (name: string, isSubAgent: boolean): string => {
    const title = `${name.charAt(0).toUpperCase()}${name.slice(1)} tool is disabled in Restricted mode.`;
    return isSubAgent
      ? `${title} A sub-agent has to do its task without writing.`
      : `${title} Use request_mode_upgrade to request write access.`;
  },
} as const;

export const toPerson = {
  agentBusy:
    "The agent is busy. Cancel the current operation, or send the message as a steer or a follow-up.",
  summarising:
    "The agent is writing the summary of this conversation, which takes one request. Wait for it, and continue in a new conversation. A cancel would end this conversation without a summary.",
  cancelling: "Cancellation in progress. Send the message when the conversation is idle.",
  contextExhausted: "This conversation's context is exhausted. Start a new conversation from its summary.",
  subAgentReadOnly: "A sub-agent is directed by its parent conversation. Send the message there.",
  queueFull: (limit: number): string =>
    `${limit} messages are waiting already. Withdraw one, or wait for the agent.`,
  queueTooLong: "The messages that wait are too long together. Withdraw one, or wait for the agent.",
  alreadyDelivered: "This message is not waiting: it was delivered or never queued.",
  noPendingApproval: "No mode upgrade is waiting for a decision.",
  approvalMismatch: (pending: string): string => `Another request is waiting for a decision: ${pending}.`,
  sandboxUnavailable:
    "Restricted mode needs the Landlock kernel sandbox (Linux 5.13 or newer, ideally 6.12), which this host does not have.",
  sandboxUnknown: (reason: string): string =>
    `The host could not find out whether it can enforce Restricted mode. ${reason} Nothing was changed. Try again.`,
  nothingToSummarise: "There is nothing to summarise yet. Send a message first.",
  refused: "The model declined to answer.",
  cutOff: "The answer was cut off by the output limit.",
  restarted: "The system restarted while the agent was working; the work was interrupted.",
  runaway: (requests: number): string =>
    `The agent was stopped after ${requests} requests in one run. Send a message to let it go on.`,
  lost: (times: number): string =>
    `The request was lost ${times} times in a row: each time its worker ended before the answer was complete. The log of the worker may say why. Send a message to try again.`,
  gaveUp: (attempts: number, message: string): string => `Failed after ${attempts} attempts: ${message}`,
  contextFull: "Context window exhausted",
  notSubmitted: "The sub-agent ended without submitting a result.",
  stoppedBy: {
    user: "Cancelled by user",
    parent: "Cancelled with its parent",
    timeout: "Timed out",
  } satisfies Record<CancelledBy, string>,
  interrupted: "Interrupted: the system restarted, or the workflow was ended from outside.",
} as const;

export const summaries = {
  cancelled: "Continuation cancelled by user.",
  fallback:
    "Context limit reached. The continuation summary could not be generated. Please start a new conversation.",
} as const;

/** One sub-agent's outcome, as its parent's model reads it. */
export function describeOutcome(position: number, task: string, outcome: SubAgentOutcome): string {
  const head = `Task ${position}: ${bounded(task, OUTCOME_BYTES)}`;
  if ("result" in outcome)
    return `${head}\n${outcome.success ? "Succeeded" : "Did not succeed"}: ${outcome.result}`;
  const partial = outcome.partialResult === undefined ? "" : `\nPartial result: ${outcome.partialResult}`;
  return `${head}\nFailed (${outcome.errorKind}): ${outcome.error}${partial}`;
}

/** A continuation's prompt mentions the calls that will not run (REQ-BED-020) by name, without their inputs. */
export const namesOf = (calls: readonly ToolCall[]): readonly string[] => calls.map((call) => call.name);
