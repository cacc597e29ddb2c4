/**
 * Owns: the workflow `conversation`: how a run begins and ends. It ends when the conversation is archived,
 * removed, finished (a sub-agent), or has been idle for long, and hands over when its history is long; the
 * conversation itself does not end with it.
 */
import { CancellationScope, continueAsNew, setHandler } from "@temporalio/workflow";
import { isWorking, type SubAgentOutcome } from "../machine/conversation.ts";
import { outcomeOf } from "../machine/outcome.ts";
import { stateQuery, type ConversationStart } from "./contract.ts";
import { Runtime } from "./runtime.ts";
import { handleSignals } from "./signals.ts";
import { handleUpdates } from "./updates.ts";

const IDLE_CLOSE_MS = 24 * 60 * 60 * 1_000;

export async function conversation(start: ConversationStart): Promise<SubAgentOutcome | null> {
  const runtime = new Runtime(start);
  handleUpdates(runtime);
  handleSignals(runtime);
  setHandler(stateQuery, () => ({
    conversation: runtime.conversation,
    step: runtime.ledger.step,
    batchId: runtime.ledger.batchId,
    unconfirmed: runtime.ledger.unconfirmed.length,
  }));
  // `temporal workflow cancel` counts as the person's cancel; it does not end the workflow. A sub-agent whose parent's
  // workflow has ended gets the same from the server.
  CancellationScope.current().cancelRequested.catch(async () => {
    await runtime.wait(() => runtime.isReady);
    runtime.wasCancelled = true;
    const by = runtime.identity?.context.isSubAgent === true ? "parent" : "user";
    runtime.apply({ kind: "user_cancel", clearQueue: false, by });
  });
  return CancellationScope.nonCancellable(() => live(runtime, start));
}

async function live(runtime: Runtime, start: ConversationStart): Promise<SubAgentOutcome | null> {
  if (start.carried === undefined) await runtime.load(start.redeliver ?? [], false);
  else runtime.resume(start.carried);
  for (;;) {
    const before = runtime.ledger.step;
    const leaves = await runtime.waitFor(
      () => runtime.rests && (isOver(runtime) || runtime.isSpent),
      IDLE_CLOSE_MS,
    );
    if (!leaves) {
      const idle = runtime.rests && before === runtime.ledger.step && !isWorking(runtime.conversation.state);
      if (idle) return null;
      continue;
    }
    const carried = isOver(runtime) ? null : runtime.carry();
    if (carried === null) return outcomeOf(runtime.conversation.state);
    await continueAsNew<typeof conversation>({ conversationId: start.conversationId, carried });
  }
}

const isOver = (runtime: Runtime): boolean =>
  runtime.identity === null ||
  outcomeOf(runtime.conversation.state) !== null ||
  (runtime.archived && !isWorking(runtime.conversation.state));
