/** Owns: the end of a full context: the summary, and the ways to go on (REQ-BED-021). */
import { useState } from "react";
import type { Conversation, State } from "../client/index.ts";
import { takeAlong } from "./outbox.ts";
import { conversationRoute, navigate } from "./route.ts";
import { useSession } from "./session.tsx";
import { startConversation } from "./start-conversation.ts";
import { Markdown } from "./text/markdown.tsx";
import { counted } from "./text/format.ts";
import { tellError } from "./toasts.tsx";

type Exhausted = Extract<State, { readonly kind: "context_exhausted" }>;
type Props = { readonly conversation: Conversation; readonly state: Exhausted };

export function ExhaustedCard({ conversation, state }: Props) {
  const session = useSession();
  const [isBusy, setBusy] = useState(false);
  const { id: from, queue, parentId } = conversation;
  const goOn = (seed: boolean) => {
    setBusy(true);
    startConversation(session, { continuedFrom: { id: from, seed } }).then(
      async (to) => {
        await takeAlong(from, to);
        navigate(conversationRoute(to));
      },
      (error: unknown) => {
        setBusy(false);
        tellError(error);
      },
    );
  };
  return (
    <section className="exhausted" aria-labelledby="exhausted-title">
      <h2 id="exhausted-title">The context is used up</h2>
      <p className="quiet">
        This conversation takes no more messages.
        {state.source === "model" && parentId === null && " A new one can go on from this summary:"}
      </p>
      {state.source === "model" ? (
        <Markdown text={state.summary} streaming={false} headingLevel={3} />
      ) : (
        <p>{state.summary}</p>
      )}
      {queue.length > 0 && <p className="quiet">{counted(queue.length, "message")} will go along.</p>}
      {parentId === null && (
        <div className="row">
          <button className="primary" disabled={isBusy} onClick={() => goOn(true)}>
            {state.source === "model" ? "Go on with the summary" : "Go on with the last requests"}
          </button>
          <button disabled={isBusy} onClick={() => goOn(false)}>
            Go on without it
          </button>
        </div>
      )}
    </section>
  );
}
