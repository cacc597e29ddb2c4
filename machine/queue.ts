/**
 * Owns: the messages that wait (docs/machine.md, "The queue"): how they come in, who takes them out, and why they may be
 * held. Everything that waits is visible, and a person can withdraw it.
 * Not here: how a message that is taken out starts a run or joins one (run.ts).
 */
import type { Conversation, QueuedMessage, QueueHold } from "./conversation.ts";
import type { Draft } from "./draft.ts";
import type { ConversationEvent } from "./event.ts";
import type { Rejection } from "./rejection.ts";
import { jsonBytes, QUEUE_BYTES } from "./size.ts";
import { toPerson } from "./wording.ts";

type UserMessage = Extract<ConversationEvent, { kind: "user_message" }>;

/** Lets a message wait. @param direct the rejection of a message that may not wait */
export function enqueue(draft: Draft, message: UserMessage, direct: Rejection): Rejection | null {
  const { messageId, text, images, delivery } = message;
  if (delivery === "direct") return direct;
  const { queue } = draft.conversation;
  const { queued } = draft.context.limits;
  if (queue.length >= queued) return { code: "queue_full", message: toPerson.queueFull(queued) };
  const longer = [...queue, { messageId, delivery, text, images, createdAt: draft.time }];
  if (queue.length > 0 && jsonBytes(longer) > QUEUE_BYTES) {
    return { code: "queue_full", message: toPerson.queueTooLong };
  }
  draft.set({ queue: longer });
  return null;
}

/** Only a message that still waits can be withdrawn. */
export function onWithdraw(draft: Draft, messageId: string): Rejection | null {
  const { queue } = draft.conversation;
  const rest = queue.filter((message) => message.messageId !== messageId);
  if (rest.length === queue.length) return { code: "already_delivered", message: toPerson.alreadyDelivered };
  setQueue(draft, rest);
  return null;
}

/** A person lets a held queue go on. A queue that is not held, or empty, stays as it is: that is no error. */
export function onRelease(draft: Draft): Rejection | null {
  if (draft.context.isSubAgent) return { code: "sub_agent_read_only", message: toPerson.subAgentReadOnly };
  if (draft.state.kind === "context_exhausted")
    return { code: "context_exhausted", message: toPerson.contextExhausted };
  if (draft.conversation.queueHeld !== null) draft.set({ queueHeld: null });
  return null;
}

/** Messages that came along from the conversation that this one continues. Each is a follow-up here. */
export function inherit(draft: Draft, messages: readonly QueuedMessage[]): void {
  if (messages.length === 0) return;
  draft.set({ queue: messages.map((message) => ({ ...message, delivery: "followUp" })) });
  hold(draft, "continued");
}

/** Nothing that waits starts a run until the queue is released. An empty queue is not held. */
export function hold(draft: Draft, reason: QueueHold): void {
  const { queue, queueHeld } = draft.conversation;
  if (queue.length > 0 && reason !== queueHeld && outranks(reason, queueHeld))
    draft.set({ queueHeld: reason });
}

/** A run was completed, so what the machine held goes on. */
export function releaseAfterSuccess(draft: Draft): void {
  const { queueHeld } = draft.conversation;
  if (queueHeld !== null && !WAITS_FOR_PERSON[queueHeld]) draft.set({ queueHeld: null });
}

const WAITS_FOR_PERSON: Record<QueueHold, boolean> = {
  cancel: true,
  continued: true,
  restart: false,
  errors: false,
  auth: false,
  spending_limit: false,
  context_exhausted: true,
};

/** A hold that waits for a person is not replaced by one that ends by itself. The end of the context is final. */
function outranks(reason: QueueHold, present: QueueHold | null): boolean {
  if (present === null || reason === "context_exhausted") return true;
  return present !== "context_exhausted" && (WAITS_FOR_PERSON[reason] || !WAITS_FOR_PERSON[present]);
}

export function clearQueue(draft: Draft): void {
  if (draft.conversation.queue.length > 0) setQueue(draft, []);
}

export const hasSteers = ({ conversation }: Draft): boolean =>
  conversation.queue.some((message) => message.delivery === "steer");

/** Takes the steers out, in the order in which they came. */
export function takeSteers(draft: Draft): readonly QueuedMessage[] {
  const { queue } = draft.conversation;
  const steers = queue.filter((message) => message.delivery === "steer");
  if (steers.length > 0)
    setQueue(
      draft,
      queue.filter((message) => message.delivery !== "steer"),
    );
  return steers;
}

/** Takes out the message that starts the next run; null: none does. */
export function takeNext(draft: Draft): QueuedMessage | null {
  if (!isNextRunDue(draft.conversation)) return null;
  const [next = null, ...rest] = draft.conversation.queue;
  setQueue(draft, rest);
  return next;
}

/** The conversation is at rest between two runs: the next message in the queue starts the second one. */
export function isNextRunDue({ state, queue, queueHeld }: Conversation): boolean {
  return (state.kind === "idle" || state.kind === "error") && queue.length > 0 && queueHeld === null;
}

/**
 * The waiting message whose run follows a cancel: it starts when everything is stopped, or has just started.
 *
 * @param before the conversation before the cancel
 * @param after the conversation after it
 */
export function nextAfterCancel(before: Conversation, after: Conversation): QueuedMessage | null {
  const started = before.queue.find(({ messageId }) => messageId === after.run?.cycleId);
  if (started !== undefined) return started;
  if (after.state.kind !== "cancelling" || after.queueHeld !== null) return null;
  return after.queue.find(({ delivery }) => delivery === "followUp") ?? null;
}

function setQueue(draft: Draft, queue: readonly QueuedMessage[]): void {
  draft.set(queue.length === 0 ? { queue, queueHeld: null } : { queue });
}
