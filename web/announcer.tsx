/** Owns: what a screen reader says by itself: finished answers, and states that want something of the person. */
import { useEffect, useRef, useState } from "react";
import type { LoadedConversation } from "../client/index.ts";
import { describeState, phaseOf } from "../client/phase.ts";

/** Characters of an answer that are read out. The whole is in the conversation. */
const READ_OUT = 500;

export function Announcer({ model }: { readonly model: LoadedConversation }) {
  const { conversation, messages } = model;
  const { state } = conversation;
  const [said, setSaid] = useState("");
  const last = messages.at(-1);
  const known = useRef(last?.sequence ?? 0);
  useEffect(() => {
    const news = messages.filter(({ sequence }) => sequence > known.current);
    known.current = messages.at(-1)?.sequence ?? known.current;
    const texts = news.flatMap((message) =>
      message.type === "agent"
        ? message.content.flatMap((block) =>
            block.type === "text" && typeof block["text"] === "string" ? [block["text"]] : [],
          )
        : [],
    );
    const text = texts.join("\n");
    if (text !== "") setSaid(`Agent: ${text.slice(0, READ_OUT)}`);
  }, [messages]);
  const phase = phaseOf(state);
  return (
    <>
      <div className="unseen" aria-live="polite">
        {said}
      </div>
      <div className="unseen" aria-live="assertive">
        {state.kind === "awaiting_mode_approval" &&
          `The agent asks to leave Restricted mode: ${state.reason}`}
        {phase === "failed" && describeState(state)}
      </div>
    </>
  );
}
