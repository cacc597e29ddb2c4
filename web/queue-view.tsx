/** Owns: the messages that wait, on the server and on their way to it, and what a person can do with each. */
import { useEffect, useSyncExternalStore } from "react";
import { newId, type Conversation } from "../client/index.ts";
import { drop, resumeOutbox, send, sendingOf, subscribeToOutbox, type Sending } from "./outbox.ts";
import { useSession } from "./session.tsx";
import { tellError } from "./toasts.tsx";

type Held = NonNullable<Conversation["queueHeld"]>;
const HELD: { readonly [reason in Held]: string } = {
  cancel: "Held since you stopped the agent.",
  continued: "They came along from the conversation before.",
  restart: "Held since the system was restarted.",
  errors: "Held, because two runs in a row have failed.",
  auth: "Held, because the provider refused the key.",
  spending_limit: "Held, because a limit on spending is reached.",
  context_exhausted: "They go along into the conversation that continues this one.",
};

/** @param props.onEdit takes a refused message back to be changed; null: nothing can be written here any more */
export function QueueView({
  conversation,
  onEdit,
}: {
  readonly conversation: Conversation;
  readonly onEdit: ((message: Sending) => void) | null;
}) {
  const session = useSession();
  const { id, queue, queueHeld, state } = conversation;
  useEffect(() => void resumeOutbox(session, id), [session, id]);
  const sending = useSyncExternalStore(subscribeToOutbox, () => sendingOf(id));
  const waiting = sending.filter((message) => queue.every(({ messageId }) => messageId !== message.id));
  if (queue.length + waiting.length === 0) return null;

  const withdraw = (messageId: string) =>
    session.call((routes) =>
      routes.conversations[":id"].queue[":messageId"].$delete({ param: { id, messageId } }),
    );
  const release = () => {
    session
      .call((routes) => routes.conversations[":id"].queue.release.$post({ param: { id } }))
      .catch(tellError);
  };
  return (
    <div className="queue" role="group" aria-label="Messages that wait">
      {queueHeld !== null && (
        <div className="held">
          <span>{HELD[queueHeld]}</span>
          {queueHeld !== "context_exhausted" && <button onClick={release}>Let them go on</button>}
        </div>
      )}
      {queue.map(({ messageId, delivery, text, images }) => (
        <div key={messageId} className="queued">
          <small>{delivery === "steer" ? "With the next request:" : "After this:"}</small>
          <span>{text === "" ? `${images.length} images` : text}</span>
          {delivery === "followUp" && state.kind !== "context_exhausted" && queueHeld === null && (
            <button
              onClick={() => {
                const now = { id: newId(), text, images: [], delivery: "steer" as const };
                withdraw(messageId).then(() => void send(session, id, now), tellError);
              }}
              disabled={images.length > 0}
            >
              Send now
            </button>
          )}
          <button aria-label={`Take back: ${text}`} onClick={() => void withdraw(messageId).catch(tellError)}>
            ×
          </button>
        </div>
      ))}
      {waiting.map((message) => (
        <div key={message.id} className="queued">
          <small>{message.problem === null ? "Sending:" : "Not sent:"}</small>
          <span>{message.text === "" ? `${message.images.length} images` : message.text}</span>
          {message.problem !== null && (
            <>
              <small className="bad" role="alert">
                {message.problem}
              </small>
              <button onClick={() => void send(session, id, message)}>Send again</button>
              {onEdit !== null && <button onClick={() => onEdit(message)}>Edit</button>}
            </>
          )}
          <button aria-label={`Discard: ${message.text}`} onClick={() => drop(id, message.id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
