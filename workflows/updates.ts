/**
 * Owns: the updates: what people ask and must be answered. A refusal comes from the validator, so that nothing of it
 * enters the history; only while the row is not loaded yet can it come from the handler.
 */
import { ApplicationFailure, setHandler } from "@temporalio/workflow";
import type { ConversationEvent } from "../machine/event.ts";
import type { Rejection } from "../machine/rejection.ts";
import * as contract from "./contract.ts";
import { archive, remove } from "./handling.ts";
import { readArchive, readCancel, readDecision, readMessage, readMessageId } from "./inputs.ts";
import type { Runtime } from "./runtime.ts";

export function handleUpdates(runtime: Runtime): void {
  const stateResult = (): contract.StateResult => ({
    step: runtime.ledger.step,
    state: runtime.conversation.state,
  });
  const modeResult = (): contract.ModeResult => ({ ...stateResult(), mode: runtime.conversation.mode });

  setHandler(contract.openUpdate, async () => {
    await ready(runtime);
    return { step: runtime.ledger.step, created: runtime.created };
  });

  const message = (input: unknown): contract.SendMessageInput => ({
    ...demand(readMessage(input)),
    messageId: demand(readMessageId(input)),
  });
  setHandler(
    contract.sendMessageUpdate,
    async (input) => {
      await ready(runtime);
      return send(runtime, message(input));
    },
    {
      validator: (input: unknown) => {
        const wanted = message(input);
        const isKnown = runtime.recent.get(wanted.messageId) !== undefined;
        if (!isKnown) judge(runtime, { kind: "user_message", ...wanted });
      },
    },
  );

  const withdrawal = (input: unknown): ConversationEvent => ({
    kind: "withdraw_message",
    messageId: demand(readMessageId(input)),
  });
  setHandler(
    contract.withdrawMessageUpdate,
    async (input) => {
      await obey(runtime, withdrawal(input));
      return { step: runtime.ledger.step };
    },
    { validator: (input: unknown) => judge(runtime, withdrawal(input)) },
  );

  const cancel = (input: unknown): ConversationEvent => ({
    kind: "user_cancel",
    ...demand(readCancel(input)),
  });
  setHandler(
    contract.cancelUpdate,
    async (input) => {
      await obey(runtime, cancel(input));
      return stateResult();
    },
    { validator: (input: unknown) => judge(runtime, cancel(input)) },
  );

  const decision = (input: unknown): ConversationEvent => ({
    kind: "user_decide_upgrade",
    ...demand(readDecision(input)),
  });
  setHandler(
    contract.decideUpgradeUpdate,
    async (input) => {
      await obey(runtime, decision(input));
      return modeResult();
    },
    { validator: (input: unknown) => judge(runtime, decision(input)) },
  );

  setHandler(
    contract.downgradeUpdate,
    async () => {
      await obey(runtime, { kind: "user_request_downgrade" });
      return modeResult();
    },
    { validator: () => judge(runtime, { kind: "user_request_downgrade" }) },
  );

  setHandler(
    contract.triggerContinuationUpdate,
    async () => {
      await obey(runtime, { kind: "user_trigger_continuation" });
      return stateResult();
    },
    { validator: () => judge(runtime, { kind: "user_trigger_continuation" }) },
  );

  setHandler(
    contract.archiveUpdate,
    async (input) => {
      await ready(runtime);
      await archive(runtime, demand(readArchive(input)).archived);
      return { step: runtime.ledger.step };
    },
    { validator: (input: unknown) => void demand(readArchive(input)) },
  );

  setHandler(contract.removeUpdate, async () => {
    await ready(runtime);
    await remove(runtime);
    return null;
  });
}

/** A repeated submit answers as the first did. */
function send(runtime: Runtime, input: contract.SendMessageInput): contract.SendMessageResult {
  if (runtime.recent.get(input.messageId) === undefined) {
    throwIfRefused(runtime, runtime.apply({ kind: "user_message", ...input }, input));
  }
  const message = runtime.recent.get(input.messageId);
  if (message === undefined) throw new Error("an accepted message is remembered");
  return { step: runtime.ledger.step, ...message };
}

/** Waits for the row; an update on a conversation that does not exist fails. */
async function ready(runtime: Runtime): Promise<void> {
  await runtime.wait(() => runtime.isReady);
  if (runtime.identity !== null) return;
  throw refuse({ code: "not_found", message: "There is no such conversation.", state: null });
}

async function obey(runtime: Runtime, event: ConversationEvent): Promise<void> {
  await ready(runtime);
  throwIfRefused(runtime, runtime.apply(event));
}

function judge(runtime: Runtime, event: ConversationEvent): void {
  throwIfRefused(runtime, runtime.refusal(event));
}

function demand<T>(input: T | null): T {
  if (input !== null) return input;
  throw refuse({
    code: "invalid_request",
    message: "The input does not have the documented form.",
    state: null,
  });
}

function throwIfRefused(runtime: Runtime, refused: Rejection | null): void {
  if (refused !== null) throw refuse({ ...refused, state: runtime.conversation.state });
}

function refuse(refusal: contract.Refusal): ApplicationFailure {
  const { message, code: type } = refusal;
  return ApplicationFailure.create({ message, type, nonRetryable: true, details: [refusal] });
}
