/**
 * Owns: the workflow `conversation`: its handlers and its end. A run ends when the conversation is archived,
 * removed, finished (a sub-agent), or has been idle for long, and hands over when its history is long; the
 * conversation itself does not end with it.
 */
import {
  ApplicationFailure,
  CancellationScope,
  continueAsNew,
  setHandler,
  uuid4,
} from "@temporalio/workflow";
import { isWorking, type Decision, type SubAgentOutcome } from "../machine/conversation.ts";
import type { ConversationEvent } from "../machine/event.ts";
import type { Rejection } from "../machine/rejection.ts";
import { messageExists, remove } from "./activities.ts";
import * as contract from "./contract.ts";
import { Runtime } from "./runtime.ts";

const IDLE_CLOSE_MS = 24 * 60 * 60 * 1_000;
const REMOVE_WITHIN_MS = 5_000;

export async function conversation(start: contract.ConversationStart): Promise<SubAgentOutcome | null> {
  const runtime = new Runtime(start);
  handleUpdates(runtime);
  handleSignals(runtime);
  setHandler(contract.stateQuery, () => ({
    conversation: runtime.conversation,
    step: runtime.ledger.step,
    unconfirmed: runtime.ledger.unconfirmed,
  }));
  // `temporal workflow cancel` counts as the person's cancel; it does not end the workflow.
  CancellationScope.current().cancelRequested.catch(() =>
    runtime.apply({ kind: "user_cancel", clearQueue: false, by: "user" }),
  );
  return CancellationScope.nonCancellable(() => live(runtime, start));
}

async function live(runtime: Runtime, start: contract.ConversationStart): Promise<SubAgentOutcome | null> {
  if (start.carried === undefined) await runtime.load(start.redeliver ?? [], false);
  else runtime.resume(start.carried);
  for (;;) {
    const before = runtime.ledger.step;
    const leaves = await runtime.waitFor(() => runtime.rests && mayLeave(runtime), IDLE_CLOSE_MS);
    if (!leaves) {
      const idle = runtime.rests && before === runtime.ledger.step && !isWorking(runtime.conversation.state);
      if (idle) return null;
      continue;
    }
    const carried = runtime.isRemoved || isOver(runtime) ? null : runtime.carry();
    if (carried === null) return outcomeOf(runtime);
    await continueAsNew<typeof conversation>({ conversationId: start.conversationId, carried });
  }
}

const isOver = (runtime: Runtime): boolean =>
  runtime.identity === null ||
  outcomeOf(runtime) !== null ||
  (runtime.archived && !isWorking(runtime.conversation.state));

const mayLeave = (runtime: Runtime): boolean => runtime.isRemoved || isOver(runtime) || runtime.isLong;

/** The result of a sub-agent that has ended; null for anybody else. */
function outcomeOf(runtime: Runtime): SubAgentOutcome | null {
  const { state } = runtime.conversation;
  if (state.kind === "completed") return { result: state.result, success: state.success };
  if (state.kind !== "failed") return null;
  const { error, errorKind, partialResult } = state;
  return partialResult === undefined ? { error, errorKind } : { error, errorKind, partialResult };
}

function handleUpdates(runtime: Runtime): void {
  setHandler(contract.openUpdate, async () => {
    await ready(runtime);
    return { step: runtime.ledger.step, created: runtime.created };
  });
  setHandler(
    contract.sendMessageUpdate,
    async (input) => {
      await ready(runtime);
      return send(runtime, input);
    },
    {
      validator: (input: contract.SendMessageInput) =>
        judge(runtime, toEvent(input), runtime.recent.get(input.messageId) !== undefined),
    },
  );
  setHandler(
    contract.withdrawMessageUpdate,
    async ({ messageId }) => {
      await ready(runtime);
      obey(runtime, { kind: "withdraw_message", messageId });
      return { step: runtime.ledger.step };
    },
    {
      validator: ({ messageId }: { messageId: string }) =>
        judge(runtime, { kind: "withdraw_message", messageId }),
    },
  );
  setHandler(contract.cancelUpdate, async ({ clearQueue }) => {
    await ready(runtime);
    obey(runtime, { kind: "user_cancel", clearQueue, by: canceller(runtime) });
    return { step: runtime.ledger.step, state: runtime.conversation.state };
  });
  setHandler(
    contract.decideUpgradeUpdate,
    async (input) => {
      await ready(runtime);
      obey(runtime, { kind: "user_decide_upgrade", ...input });
      return modeResult(runtime);
    },
    { validator: (input: Decided) => judge(runtime, { kind: "user_decide_upgrade", ...input }) },
  );
  setHandler(
    contract.downgradeUpdate,
    async () => {
      await ready(runtime);
      obey(runtime, { kind: "user_request_downgrade" });
      return modeResult(runtime);
    },
    { validator: () => judge(runtime, { kind: "user_request_downgrade" }) },
  );
  setHandler(
    contract.triggerContinuationUpdate,
    async () => {
      await ready(runtime);
      obey(runtime, { kind: "user_trigger_continuation" });
      return { step: runtime.ledger.step, state: runtime.conversation.state };
    },
    { validator: () => judge(runtime, { kind: "user_trigger_continuation" }) },
  );
  setHandler(contract.archiveUpdate, async ({ archived }) => {
    await ready(runtime);
    await archive(runtime, archived);
    return { step: runtime.ledger.step };
  });
  setHandler(contract.removeUpdate, async () => {
    await ready(runtime);
    await removeConversation(runtime);
    return null;
  });
}

/** What a signal asks in vain leaves a note, so that nobody believes it was taken. */
function handleSignals(runtime: Runtime): void {
  const take = async (name: string, event: ConversationEvent): Promise<void> => {
    await runtime.wait(() => runtime.isReady);
    const refused = runtime.apply(event);
    if (refused === null) return;
    runtime.apply({
      kind: "noted",
      text: `The signal ${name} was not taken (${refused.code}): ${refused.message}`,
    });
  };
  setHandler(contract.sendMessageSignal, (input) => sendBySignal(runtime, input));
  setHandler(contract.withdrawMessageSignal, ({ messageId }) =>
    take("withdrawMessage", { kind: "withdraw_message", messageId }),
  );
  setHandler(contract.cancelSignal, (input) =>
    take("cancel", { kind: "user_cancel", clearQueue: input?.clearQueue ?? false, by: canceller(runtime) }),
  );
  setHandler(contract.decideUpgradeSignal, ({ decision, toolCallId }) =>
    take("decideUpgrade", { kind: "user_decide_upgrade", decision, toolCallId: toolCallId ?? null }),
  );
  setHandler(contract.downgradeSignal, () => take("downgrade", { kind: "user_request_downgrade" }));
  setHandler(contract.triggerContinuationSignal, () =>
    take("triggerContinuation", { kind: "user_trigger_continuation" }),
  );
  setHandler(contract.archiveSignal, async (input) => {
    await runtime.wait(() => runtime.isReady);
    await archive(runtime, input?.archived ?? true);
  });
  setHandler(contract.removeSignal, async () => {
    await runtime.wait(() => runtime.isReady);
    if (runtime.identity !== null) await removeConversation(runtime);
  });
  setHandler(contract.restartedSignal, ({ policy }) => take("restarted", { kind: "restarted", policy }));
}

async function sendBySignal(runtime: Runtime, input: Partial<contract.SendMessageInput> & { text: string }) {
  await runtime.wait(() => runtime.isReady);
  const messageId = input.messageId ?? uuid4();
  const message = { images: [], delivery: "direct" as const, ...input, messageId };
  const conversationId = runtime.identity?.profile.id;
  if (conversationId === undefined || runtime.recent.get(messageId) !== undefined) return;
  if (input.messageId !== undefined && (await messageExists({ conversationId, messageId }))) return;
  const refused = runtime.apply(toEvent(message), message);
  if (refused === null) return;
  runtime.apply({
    kind: "noted",
    text: `The signal sendMessage was not taken (${refused.code}): ${refused.message}`,
  });
}

function send(runtime: Runtime, input: contract.SendMessageInput): contract.SendMessageResult {
  if (runtime.recent.get(input.messageId) === undefined) obey(runtime, toEvent(input), input);
  const message = runtime.recent.get(input.messageId);
  if (message === undefined) throw new Error("an accepted message is remembered");
  return { step: runtime.ledger.step, ...message };
}

async function archive(runtime: Runtime, archived: boolean): Promise<void> {
  if (archived) await runtime.stop();
  runtime.setArchived(archived);
}

/** The work is stopped first, but a tool that will not die does not keep the rows alive. */
async function removeConversation(runtime: Runtime): Promise<void> {
  const conversationId = runtime.identity?.profile.id;
  if (conversationId === undefined) return;
  let stopped = false;
  void runtime.stop().then(() => (stopped = true));
  await runtime.waitFor(() => stopped, REMOVE_WITHIN_MS);
  runtime.markRemoved();
  await remove({ conversationId });
}

type Decided = { readonly decision: Decision; readonly toolCallId: string };

const toEvent = (input: contract.SendMessageInput): ConversationEvent => ({ kind: "user_message", ...input });

const canceller = (runtime: Runtime): "user" | "parent" =>
  runtime.identity?.context.isSubAgent === true ? "parent" : "user";

const modeResult = ({ conversation, ledger }: Runtime): contract.ModeResult => ({
  step: ledger.step,
  mode: conversation.mode,
  state: conversation.state,
});

/** Waits for the row; an update on a conversation that does not exist fails. */
async function ready(runtime: Runtime): Promise<void> {
  await runtime.wait(() => runtime.isReady);
  if (runtime.identity !== null && !runtime.isRemoved) return;
  throw refuse({ code: "not_found", message: "There is no such conversation.", state: null });
}

/** A validator: what it throws never enters the history. Before the row is loaded there is nothing to judge by. */
function judge(runtime: Runtime, event: ConversationEvent, known = false): void {
  if (!runtime.isReady || known) return;
  throwIfRefused(runtime, runtime.refusal(event));
}

function obey(
  runtime: Runtime,
  event: ConversationEvent,
  accepted: contract.SendMessageInput | null = null,
): void {
  throwIfRefused(runtime, runtime.apply(event, accepted));
}

function throwIfRefused(runtime: Runtime, refused: Rejection | null): void {
  if (refused !== null) throw refuse({ ...refused, state: runtime.conversation.state });
}

function refuse(refusal: contract.Refusal): ApplicationFailure {
  return ApplicationFailure.create({
    message: refusal.message,
    type: refusal.code,
    nonRetryable: true,
    details: [refusal],
  });
}
