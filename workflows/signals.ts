/**
 * Owns: the signals of the same names and inputs as the updates, for the Temporal CLI and Web UI. A signal cannot be
 * answered: what it asks in vain leaves a note, so that nobody believes it was taken.
 */
import { setHandler, uuid4 } from "@temporalio/workflow";
import type { ConversationEvent } from "../machine/event.ts";
import { messageExists } from "./activities.ts";
import * as contract from "./contract.ts";
import { archive, remove } from "./handling.ts";
import { readArchive, readCancel, readDecision, readMessage, readMessageId, readRestart } from "./inputs.ts";
import type { Runtime } from "./runtime.ts";

export function handleSignals(runtime: Runtime): void {
  const ready = (): Promise<void> => runtime.wait(() => runtime.isReady);

  const note = (name: string, code: string, message: string): void =>
    void runtime.apply({ kind: "noted", text: `The signal ${name} was not taken (${code}): ${message}` });

  /** Applies the event that was made of the input; null: it could not be. */
  const apply = (
    name: string,
    event: ConversationEvent | null,
    accepted: contract.SendMessageInput | null = null,
  ): void => {
    const refused =
      event === null
        ? { code: "invalid_request", message: "its input does not have the documented form." }
        : runtime.apply(event, accepted);
    if (refused !== null) note(name, refused.code, refused.message);
  };

  /** Every handler waits once and no more, so that signals that come together are taken in their order. */
  const take = async (name: string, event: ConversationEvent | null): Promise<void> => {
    await ready();
    apply(name, event);
  };

  setHandler(contract.sendMessageSignal, async (input) => {
    await ready();
    const read = readMessage(input);
    if (read === null) {
      apply("sendMessage", null);
      return;
    }
    const message = { ...read, messageId: read.messageId ?? uuid4() };
    const conversationId = runtime.identity?.profile.id;
    // An id typed by hand may be that of an old message.
    if (conversationId === undefined || runtime.recent.get(message.messageId) !== undefined) return;
    const isOld = (messageId: string): Promise<boolean> =>
      runtime.shielded(() => messageExists({ conversationId, messageId }));
    if (read.messageId !== null && (await isOld(read.messageId))) return;
    apply("sendMessage", { kind: "user_message", ...message }, message);
  });
  setHandler(contract.withdrawMessageSignal, (input) => {
    const messageId = readMessageId(input);
    return take("withdrawMessage", messageId === null ? null : { kind: "withdraw_message", messageId });
  });
  setHandler(contract.cancelSignal, (input) => {
    const cancel = readCancel(input);
    return take("cancel", cancel === null ? null : { kind: "user_cancel", ...cancel });
  });
  setHandler(contract.decideUpgradeSignal, (input) => {
    const decision = readDecision(input);
    return take("decideUpgrade", decision === null ? null : { kind: "user_decide_upgrade", ...decision });
  });
  setHandler(contract.downgradeSignal, () => take("downgrade", { kind: "user_request_downgrade" }));
  setHandler(contract.triggerContinuationSignal, () =>
    take("triggerContinuation", { kind: "user_trigger_continuation" }),
  );
  setHandler(contract.archiveSignal, async (input) => {
    await ready();
    const read = readArchive(input);
    if (read === null) apply("archive", null);
    else await archive(runtime, read.archived);
  });
  setHandler(contract.removeSignal, async () => {
    await ready();
    await remove(runtime);
  });
  setHandler(contract.restartedSignal, (input) => {
    const restart = readRestart(input);
    return take("restarted", restart === null ? null : { kind: "restarted", ...restart });
  });
}
