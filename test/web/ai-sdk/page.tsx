/** Owns: a page of somebody else, made with the AI SDK as docs/ai-sdk.md says. `?id=` names the chat, `?cwd=` its folder. */
import { useChat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from "ai";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { stoppingFetch } from "../../../client/stopping-fetch.ts";

const query = new URLSearchParams(location.search);
const id = query.get("id") ?? "";
const transport = new DefaultChatTransport({
  api: "/api/ai/chat",
  body: { cwd: query.get("cwd") },
  fetch: stoppingFetch(),
});

function Chat({ history }: { readonly history: UIMessage[] }) {
  const [text, setText] = useState("");
  const { messages, status, error, sendMessage, stop, addToolApprovalResponse } = useChat({
    id,
    transport,
    messages: history,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  return (
    <main>
      {messages.map((message) => (
        <article key={message.id} aria-label={message.role}>
          {message.parts.map((part, place) => {
            if (part.type === "text") return <p key={place}>{part.text}</p>;
            if (part.type !== "dynamic-tool") return null;
            return (
              <div key={place}>
                {part.toolName}: {part.state}
                {part.state === "approval-requested" && (
                  <button
                    onClick={() => void addToolApprovalResponse({ id: part.approval.id, approved: true })}
                  >
                    Approve
                  </button>
                )}
              </div>
            );
          })}
        </article>
      ))}
      <p role="status">{status}</p>
      <p role="alert">{error?.message}</p>
      <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
      <button onClick={() => void sendMessage({ text })}>Send</button>
      <button onClick={() => void stop()}>Stop</button>
    </main>
  );
}

const response = await fetch(`/api/ai/chat/${id}`);
const { messages } = (await response.json()) as { messages: UIMessage[] };
const root = document.createElement("div");
document.body.append(root);
createRoot(root).render(<Chat history={messages} />);
