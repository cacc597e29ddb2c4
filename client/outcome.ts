/** Owns: how the run of a message ended, or that it has not yet: read from the conversation's model. Pure. */
import { isWorking } from "../machine/conversation.ts";
import type { LoadedConversation } from "./conversation-model.ts";
import type { State } from "./events.ts";

export type Outcome =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "cancelled" }
  | { readonly kind: "exhausted" }
  /** The message waits, and nothing starts it but a release. */
  | { readonly kind: "held"; readonly reason: string };

export type Approval = Extract<State, { readonly kind: "awaiting_mode_approval" }>;

/**
 * The outcome of the run that a message belongs to; null: there is none yet. Before everything that was missed has
 * arrived, nothing is known.
 *
 * @param messageId null: whatever runs last in the conversation
 */
export function outcomeOf(model: LoadedConversation, messageId: string | null): Outcome | null {
  if (!model.isSynced) return null;
  const { conversation, messages } = model;
  const { state, queue, queueHeld } = conversation;
  if (messageId === null) {
    if (isWorking(state)) return null;
    return endOf(messages.findLast(isEnd), state) ?? { kind: "done" };
  }
  const place = messages.findIndex(({ id }) => id === messageId);
  if (place === -1) {
    if (state.kind === "context_exhausted") return { kind: "exhausted" };
    if (!queue.some((queued) => queued.messageId === messageId)) return null;
    return queueHeld === null || isWorking(state) ? null : { kind: "held", reason: queueHeld };
  }
  const end = messages.slice(place).find(isEnd);
  // What belongs to the run's end comes after its message. But another run may begin at once.
  const isLast = messages.at(-1) === end;
  return isLast && isWorking(state) ? null : endOf(end, state);
}

type Message = LoadedConversation["messages"][number];
type End = Extract<Message, { readonly type: "run_stop" }>;
const isEnd = (message: Message): message is End => message.type === "run_stop";

function endOf(end: End | undefined, state: State): Outcome | null {
  // The end of a context comes after the stored end of its run.
  if (state.kind === "context_exhausted") return { kind: "exhausted" };
  if (end === undefined) return null;
  const [{ reason }] = end.content;
  switch (reason) {
    case "completed":
      return { kind: "done" };
    case "interrupted":
      return { kind: "cancelled" };
    case "error":
      return {
        kind: "failed",
        reason: state.kind === "error" ? state.message : "The run ended by an error.",
      };
  }
}
