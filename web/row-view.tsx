/** Owns: one row of a conversation. A row that did not change is not drawn again. */
import { memo, useState } from "react";
import type { Conversation, LiveOutput, Message } from "../client/index.ts";
import type { Row } from "../client/transcript.ts";
import { StoredImage } from "./images.tsx";
import { SubAgents } from "./sub-agents.tsx";
import { localMoment, localTime } from "./text/format.ts";
import { Markdown } from "./text/markdown.tsx";
import { ToolGroup } from "./tool-calls.tsx";
import { TurnTrace } from "./turn-trace.tsx";

type Props = {
  readonly row: Row;
  readonly conversation: Conversation;
  readonly output: LiveOutput | null;
};

export function RowView({ row, conversation, output }: Props) {
  const { id, cwd, state } = conversation;
  switch (row.kind) {
    case "user":
      return <UserMessage conversationId={id} message={row.message} />;
    case "text":
      return <Says text={row.text} isLive={row.isLive} />;
    case "thinking":
      return <Thinking text={row.text} isLive={row.isLive} />;
    case "calls": {
      const isOpen = row.calls.some(({ outcome }) => outcome === null);
      const isCurrent = row.calls.some((call) => call.id === output?.toolCallId);
      return (
        <ToolGroup
          conversationId={id}
          cwd={cwd}
          row={row}
          state={isOpen ? state : null}
          output={isCurrent ? output : null}
        />
      );
    }
    case "sub_agents":
      return <SubAgents call={row.call} conversation={conversation} />;
    case "system":
    case "note":
      return <Aside message={row.message} />;
    case "error":
      return (
        <div className="aside error" role="note">
          {row.message.content[0].message}
        </div>
      );
    // The conversation ends with it, and with what one can do then (exhausted-card.tsx).
    case "summary":
      return null;
    case "run_stop":
      return <RunStop conversationId={id} message={row.message} />;
  }
}

type Of<Type extends Message["type"]> = Extract<Message, { readonly type: Type }>;

const UserMessage = memo(function UserMessage({
  conversationId,
  message,
}: {
  readonly conversationId: string;
  readonly message: Of<"user">;
}) {
  const { kind } = message.display;
  return (
    <div className="you">
      {kind !== "direct" && <small>{kind === "steer" ? "steered" : "afterwards"}</small>}
      {message.actor === "llm_agent" && <small>task</small>}
      {message.content.map((block, index) =>
        block.type === "text" ? (
          <div key={index} className="plain">
            {block.text}
          </div>
        ) : (
          <StoredImage key={index} conversationId={conversationId} image={block} />
        ),
      )}
    </div>
  );
});

const Says = memo(function Says({ text, isLive }: { readonly text: string; readonly isLive: boolean }) {
  return (
    <div className="says" data-live={isLive}>
      <Markdown text={text} streaming={isLive} />
    </div>
  );
});

const Thinking = memo(function Thinking({
  text,
  isLive,
}: {
  readonly text: string;
  readonly isLive: boolean;
}) {
  const [isOpen, setOpen] = useState(false);
  if (text === "")
    return isLive ? null : <p className="thinking quiet">Thought (the provider keeps it secret)</p>;
  return (
    <div className="thinking">
      <button className="summary" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span> {isLive ? "Thinks …" : "Thought"}
        {!isOpen && <span className="names">{firstLineOf(text)}</span>}
      </button>
      {isOpen && <Markdown text={text} streaming={isLive} />}
    </div>
  );
});

const firstLineOf = (text: string): string => text.trim().split("\n")[0]?.slice(0, 200) ?? "";

const Aside = memo(function Aside({ message }: { readonly message: Of<"system"> | Of<"note"> }) {
  const text = message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
  const seed = message.type === "system" ? message.display?.seed : undefined;
  if (seed === undefined) return <div className="aside">{text}</div>;
  return (
    <details className="aside seed">
      <summary>
        {seed === "summary"
          ? "Begins with the summary of the conversation before"
          : "Begins with an excerpt of the conversation before: there was no summary"}
      </summary>
      <Markdown text={text} streaming={false} />
    </details>
  );
});

const REASONS = { completed: "done", interrupted: "stopped", error: "ended by an error" } as const;

const RunStop = memo(function RunStop({
  conversationId,
  message,
}: {
  readonly conversationId: string;
  readonly message: Of<"run_stop">;
}) {
  const at = new Date(message.createdAt);
  return (
    <>
      <div className="stop">
        <span>
          {REASONS[message.content[0].reason]} ·{" "}
          <time dateTime={message.createdAt} title={localMoment(at)}>
            {localTime(at)}
          </time>
        </span>
      </div>
      {message.cycleId !== null && <TurnTrace conversationId={conversationId} cycleId={message.cycleId} />}
    </>
  );
});
