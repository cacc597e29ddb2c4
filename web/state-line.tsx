/** Owns: the line under the composer: mode, what the agent does and for how long, context, model, connection. */
import { useState } from "react";
import type { Conversation, Link, LoadedConversation } from "../client/index.ts";
import { describeState, phaseOf, retryOf } from "../client/phase.ts";
import { NO_SANDBOX } from "./missing-sandbox.tsx";
import { useSession } from "./session.tsx";
import { Cost } from "./spending.tsx";
import { tellError } from "./toasts.tsx";
import { elapsed, useLink, useNow } from "./use-models.ts";

export function StateLine({
  model,
  isStopping,
}: {
  readonly model: LoadedConversation;
  readonly isStopping: boolean;
}) {
  const { conversation } = model;
  const { contextRatio, warning, contextUsed, contextWindow } = conversation.usage;
  const percent = Math.round(contextRatio * 100);
  return (
    <div className="line" role="group" aria-label="State">
      <Mode conversation={conversation} />
      <Doing model={model} isStopping={isStopping} />
      <div className="facts">
        {/* In the end, the last request was that for the summary. */}
        {conversation.state.kind !== "context_exhausted" && (
          <span className={warning ? "warn" : ""} title={`${contextUsed} of ${contextWindow} tokens`}>
            context{" "}
            <span className="meter" aria-hidden="true">
              <i style={{ width: `${Math.min(percent, 100)}%` }} />
            </span>{" "}
            {percent} %
          </span>
        )}
        <Cost conversation={conversation} />
        <span className="model">{conversation.model}</span>
        <Connection link={useLink()} />
      </div>
    </div>
  );
}

function Doing({ model, isStopping }: { readonly model: LoadedConversation; readonly isStopping: boolean }) {
  const { state } = model.conversation;
  const phase = phaseOf(state);
  const isOn = phase === "works" || phase === "waits";
  const now = useNow(isOn);
  const since = state.kind === "tool_executing" ? Date.parse(state.startedAt) : model.since;
  const retry = retryOf(state);
  const isRequest = state.kind === "llm_requesting" || state.kind === "awaiting_continuation";
  const words = isStopping
    ? "stopping"
    : isRequest && retry === null && model.answer !== null
      ? state.kind === "awaiting_continuation"
        ? "writes a summary"
        : model.answer.blocks.at(-1)?.kind === "thinking"
          ? "thinks"
          : "writes"
      : describeState(state);
  return (
    <>
      <span className={`doing ${phase}`}>
        <span className={`dot ${phase}`} aria-hidden="true" />
        {words}
        {isOn && retry === null && <> · {elapsed(now - since)}</>}
        {retry !== null && <> in {elapsed(Date.parse(retry.at) - now)}</>}
      </span>
      {retry !== null && (
        <span className="why">
          <span className="unseen"> · </span>
          {retry.message}
        </span>
      )}
    </>
  );
}

function Mode({ conversation: { id, mode, sandbox, parentId } }: { readonly conversation: Conversation }) {
  const { call } = useSession();
  const [isBusy, setBusy] = useState(false);
  if (mode === "restricted")
    return (
      <span className="mode" title="Its commands can read but change nothing. The kernel enforces it.">
        RESTRICTED
      </span>
    );
  const restrict = () => {
    setBusy(true);
    call((routes) => routes.conversations[":id"].mode.$post({ param: { id }, json: { mode: "restricted" } }))
      .catch(tellError)
      .finally(() => setBusy(false));
  };
  // The host is asked again: it may have a sandbox by now.
  const isMissing = sandbox.kind !== "available";
  return (
    <>
      <span
        className="mode un"
        title={isMissing ? `${NO_SANDBOX} ${sandbox.reason}` : "Its commands have your rights."}
      >
        {isMissing ? "UNRESTRICTED · no sandbox" : "UNRESTRICTED"}
      </span>
      {parentId === null && (
        <button className="small" disabled={isBusy} onClick={restrict}>
          {isMissing ? "Restrict" : "Restrict again"}
        </button>
      )}
    </>
  );
}

function Connection({ link }: { readonly link: Link }) {
  const now = useNow(link.kind === "lost");
  switch (link.kind) {
    case "connected":
      return (
        <span className="link" title="Connected">
          <span className="dot ok" aria-hidden="true" />
          <span className="unseen">connected</span>
        </span>
      );
    case "connecting":
      return <span className="link">connecting …</span>;
    case "unauthorized":
      return <span className="link bad">token refused</span>;
    case "lost":
      return (
        <span className="link bad" title={link.reason}>
          connection lost, trying again · {elapsed(now - link.since)}
        </span>
      );
  }
}
