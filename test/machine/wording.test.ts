/** Every sentence that the machine writes. The model's sentences are behaviour, so a change is made here too. */
import { expect, test } from "vitest";
import { summaries, toModel, toPerson } from "../../machine/wording.ts";

test("the machine writes these sentences for the model", () => {
  const { timedOut, unknownTool, invalidInput, disabledInRestricted, ...others } = toModel;
  const { upgradeApproved, upgradeDenied, nowUnrestricted, ...sentences } = others;
  expect({
    ...sentences,
    upgradeApproved: upgradeApproved(),
    upgradeApprovedByName: upgradeApproved("ada"),
    upgradeDenied: upgradeDenied(),
    nowUnrestricted: nowUnrestricted(),
    timedOut: timedOut(3_600),
    unknownTool: unknownTool("fly"),
    invalidInput: invalidInput("spawn_agents", '"tasks" must be a list.'),
    disabledInRestricted: disabledInRestricted("patch", false),
    disabledInSubAgent: disabledInRestricted("write", true),
  }).toEqual({
    skippedByCancel: "Skipped due to cancellation",
    skippedByRestart: "Skipped: the system restarted before this call could run.",
    skippedByContext: "Not executed: the context window is nearly full.",
    skippedAfterSubmit: "Skipped: the result was already submitted.",
    skippedByRefusal: "Skipped: the response was a refusal.",
    interrupted:
      "Interrupted: this call was running when its worker was lost. Its outcome is unknown: it may have had none, some or all of its effects. Check before relying on it or repeating it.",
    malformedJson:
      "The input of this call was not valid JSON, so it was not executed. Send the call again with valid JSON.",
    tooLong:
      "The inputs of this response's calls were too long together, so this one was not executed. Send it again, in smaller pieces.",
    truncated:
      "This call was cut off by the output limit, so it was not executed. Send it again, in smaller pieces if it is long.",
    continueText: "Your last message was cut off by the output limit. Continue exactly where it ended.",
    alreadyUnrestricted: "Already in Unrestricted mode",
    upgradeApproved: "The user approved the upgrade. The conversation is now in Unrestricted mode.",
    upgradeApprovedByName: "ada approved the upgrade. The conversation is now in Unrestricted mode.",
    upgradeDenied:
      "The user denied the upgrade. The conversation stays in Restricted mode: continue without write access, or explain to the user what you would need.",
    nowUnrestricted:
      "The user approved the mode upgrade. The conversation is now in Unrestricted mode: bash runs without the sandbox and the tools that write files are enabled.",
    nowRestricted:
      "The user switched the conversation to Restricted mode. From now on bash runs in a read-only sandbox without network access, and the tools that write files are disabled. Use request_mode_upgrade to request write access.",
    remindToSubmit:
      "You ended your turn without submitting a result. Call submit_result with your final result.",
    submitted: "Result submitted.",
    timedOut:
      "Timed out after 3600 s. What it had found is lost: give smaller tasks, or a longer timeoutSeconds.",
    unknownTool: 'There is no tool named "fly" in this conversation.',
    invalidInput: 'Invalid input for spawn_agents: "tasks" must be a list.',
    disabledInRestricted:
      "Patch tool is disabled in Restricted mode. Use request_mode_upgrade to request write access.",
    disabledInSubAgent:
      "Write tool is disabled in Restricted mode. A sub-agent has to do its task without writing.",
  });
});

test("the machine writes these sentences for the person", () => {
  const { queueFull, approvalMismatch, sandboxUnknown, runaway, gaveUp, lost, ...sentences } = toPerson;
  expect({
    ...sentences,
    queueFull: queueFull(32),
    approvalMismatch: approvalMismatch("toolu_01"),
    sandboxUnknown: sandboxUnknown("The disk is full."),
    runaway: runaway(200),
    gaveUp: gaveUp(3, "connection reset"),
    lost: lost(10),
  }).toEqual({
    agentBusy:
      "The agent is busy. Cancel the current operation, or send the message as a steer or a follow-up.",
    summarising:
      "The agent is writing the summary of this conversation, which takes one request. Wait for it, and continue in a new conversation. A cancel would end this conversation without a summary.",
    cancelling: "Cancellation in progress. Send the message when the conversation is idle.",
    contextExhausted: "This conversation's context is exhausted. Start a new conversation from its summary.",
    subAgentReadOnly: "A sub-agent is directed by its parent conversation. Send the message there.",
    queueFull: "32 messages are waiting already. Withdraw one, or wait for the agent.",
    queueTooLong: "The messages that wait are too long together. Withdraw one, or wait for the agent.",
    alreadyDelivered: "This message is not waiting: it was delivered or never queued.",
    noPendingApproval: "No mode upgrade is waiting for a decision.",
    approvalMismatch: "Another request is waiting for a decision: toolu_01.",
    sandboxUnavailable:
      "Restricted mode needs the Landlock kernel sandbox (Linux 5.13 or newer, ideally 6.12), which this host does not have.",
    sandboxUnknown:
      "The host could not find out whether it can enforce Restricted mode. The disk is full. Nothing was changed. Try again.",
    nothingToSummarise: "There is nothing to summarise yet. Send a message first.",
    refused: "The model declined to answer.",
    cutOff: "The answer was cut off by the output limit.",
    restarted: "The system restarted while the agent was working; the work was interrupted.",
    runaway: "The agent was stopped after 200 requests in one run. Send a message to let it go on.",
    lost: "The request was lost 10 times in a row: each time its worker ended before the answer was complete. The log of the worker may say why. Send a message to try again.",
    gaveUp: "Failed after 3 attempts: connection reset",
    contextFull: "Context window exhausted",
    notSubmitted: "The sub-agent ended without submitting a result.",
    stoppedBy: { user: "Cancelled by user", parent: "Cancelled with its parent", timeout: "Timed out" },
    interrupted: "Interrupted: the system restarted, or the workflow was ended from outside.",
  });
});

test("the machine writes these sentences in place of a summary", () => {
  expect(summaries).toEqual({
    cancelled: "Continuation cancelled by user.",
    fallback:
      "Context limit reached. The continuation summary could not be generated. Please start a new conversation.",
  });
});
