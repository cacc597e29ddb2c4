/** Owns: one conversation with everything that a person can see of it and do in it. */
import { useCallback, useEffect, useRef, type ReactNode } from "react";
import type { LoadedConversation, Message } from "../client/index.ts";
import { phaseOf } from "../client/phase.ts";
import { ApprovalCard } from "./approval-card.tsx";
import { Announcer } from "./announcer.tsx";
import { Composer } from "./composer.tsx";
import { ExhaustedCard } from "./exhausted-card.tsx";
import { MAIN } from "./focus.ts";
import { MissingSandbox } from "./missing-sandbox.tsx";
import { QueueView } from "./queue-view.tsx";
import { RequestsView } from "./requests-view.tsx";
import { conversationRoute, linkTo, type Route } from "./route.ts";
import { useStop } from "./run-control.ts";
import { ScriptedBanner } from "./scripted-banner.tsx";
import { useSession } from "./session.tsx";
import { SpendingWarning } from "./spending.tsx";
import { StateLine } from "./state-line.tsx";
import { StopButton } from "./stop-button.tsx";
import { shortPath } from "./text/format.ts";
import { tellError } from "./toasts.tsx";
import { TranscriptView } from "./transcript-view.tsx";
import { useConversation, useLink, useList } from "./use-models.ts";

type ConversationRoute = Extract<Route, { readonly kind: "conversation" }>;
type Props = {
  readonly id: string;
  readonly view: ConversationRoute["view"];
  readonly onOpenList: () => void;
};

export function ConversationPage({ id, view, onOpenList }: Props) {
  const model = useConversation(id);
  const link = useLink();
  switch (model.kind) {
    case "loading":
      return (
        <main id={MAIN} tabIndex={-1} className="centred" aria-busy="true">
          <p className="quiet">
            {link.kind === "lost" ? "The server cannot be reached." : "Reading the conversation …"}
          </p>
        </main>
      );
    case "gone":
      return (
        <main id={MAIN} tabIndex={-1} className="centred">
          <h1>This conversation is not there</h1>
          <p className="quiet">It may have been deleted.</p>
          <a className="button" {...linkTo({ kind: "new" })}>
            Start a new one
          </a>
        </main>
      );
    case "loaded":
      return <Loaded model={model} view={view} onOpenList={onOpenList} />;
  }
}

/** Messages of one request. */
const PAGE = "100";

function Loaded({ model, view, onOpenList }: Omit<Props, "id"> & { readonly model: LoadedConversation }) {
  const { call, view: shared } = useSession();
  const { conversation, messages } = model;
  const { id, state } = conversation;
  const stopping = useStop(model);
  const { stop } = stopping;
  const latestStop = useRef(stop);
  useEffect(() => {
    latestStop.current = stop;
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      // An open menu, dialog or text being composed has the first claim on Escape.
      if (event.key === "Escape" && !event.defaultPrevented && !event.isComposing && !event.repeat)
        latestStop.current();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);

  const first = messages[0]?.sequence;
  const asked = useRef<{ readonly first: number; readonly answer: Promise<void> } | null>(null);
  const loadEarlier = useCallback((): Promise<void> => {
    if (first === undefined) return Promise.resolve();
    // The messages may be there, but not yet on the page.
    if (asked.current?.first === first) return asked.current.answer;
    const load = async (): Promise<void> => {
      try {
        const query = { before: String(first), limit: PAGE };
        const read = await call((routes) =>
          routes.conversations[":id"].messages.$get({ param: { id }, query }),
        );
        // The same type: hono only writes "any JSON value" in another way.
        const earlier = read.messages as Message[];
        const input = { name: "earlier.loaded", data: { messages: earlier } } as const;
        shared.models.apply({ kind: "conversation_input", id, input, now: Date.now() });
      } catch (error) {
        asked.current = null;
        tellError(error);
      }
    };
    asked.current = { first, answer: load() };
    return asked.current.answer;
  }, [call, shared, id, first]);

  return (
    <main id={MAIN} tabIndex={-1}>
      <Header model={model} view={view} onOpenList={onOpenList} />
      {view === "requests" ? (
        <RequestsView model={model} loadEarlier={loadEarlier} />
      ) : (
        <TranscriptView
          model={model}
          loadEarlier={loadEarlier}
          before={<Beginning model={model} />}
          after={<Ending model={model} />}
        />
      )}
      <footer data-focus-home="composer">
        {conversation.scripted && conversation.parentId === null && messages.length < 8 && (
          <ScriptedBanner conversation={conversation} />
        )}
        <WrapUp model={model} />
        <SpendingWarning conversation={conversation} />
        {conversation.parentId !== null ? (
          <div className="box read-only">
            <p>A sub-agent takes no messages. Its conversation can only be read, and stopped.</p>
            <StopButton stopping={stopping} />
          </div>
        ) : state.kind === "context_exhausted" ? (
          <div className="box">
            <QueueView conversation={conversation} onEdit={null} />
          </div>
        ) : (
          <Composer key={id} conversation={conversation} stopping={stopping} />
        )}
        <StateLine model={model} isStopping={stopping.isStopping} />
      </footer>
      <Announcer model={model} />
    </main>
  );
}

function Header({ model: { conversation }, view, onOpenList }: Parameters<typeof Loaded>[0]) {
  const { id, title, cwd } = conversation;
  const tab = (name: string, of: ConversationRoute["view"]): ReactNode => (
    <a {...linkTo({ kind: "conversation", id, view: of })} aria-current={view === of ? "page" : undefined}>
      {name}
    </a>
  );
  return (
    <div className="top">
      <button className="only-phone" aria-label="Show the list of conversations" onClick={onOpenList}>
        ☰
      </button>
      <h1>{title}</h1>
      <code title={cwd}>{shortPath(cwd)}</code>
      <span className="space" />
      <div className="seg" role="group" aria-label="View">
        {tab("Steps", "steps")}
        {tab("Requests", "requests")}
      </div>
    </div>
  );
}

/** Where the conversation comes from. */
function Beginning({ model: { conversation } }: { readonly model: LoadedConversation }) {
  const { continuedFrom, parentId, mode, sandbox } = conversation;
  const list = useList();
  const origin = parentId ?? continuedFrom;
  return (
    <>
      {mode === "unrestricted" && <MissingSandbox sandbox={sandbox} />}
      {origin !== null && (
        <p className="quiet">
          {parentId === null ? "Continues " : "A sub-agent of "}
          <a {...linkTo(conversationRoute(origin))}>
            {list.conversations.get(origin)?.title ?? "another conversation"}
          </a>
          .
        </p>
      )}
    </>
  );
}

/** What the state wants to say at the end of the conversation. */
function Ending({ model: { conversation } }: { readonly model: LoadedConversation }) {
  const { id, state } = conversation;
  const list = useList();
  const next = [...list.conversations.values()].filter(({ continuedFrom }) => continuedFrom === id);
  const links = next.map((one) => (
    <li key={one.id}>
      Goes on in <a {...linkTo(conversationRoute(one.id))}>{one.title}</a>.
    </li>
  ));
  return (
    <>
      {state.kind === "awaiting_mode_approval" && (
        <ApprovalCard key={state.toolCall.id} conversationId={id} state={state} />
      )}
      {state.kind === "failed" && (
        <div className="aside error" role="note">
          {state.error}
        </div>
      )}
      {state.kind === "completed" && <div className="aside">{state.result}</div>}
      {state.kind === "context_exhausted" && <ExhaustedCard conversation={conversation} state={state} />}
      {links.length > 0 && <ul className="links">{links}</ul>}
    </>
  );
}

function WrapUp({ model: { conversation } }: { readonly model: LoadedConversation }) {
  const { call } = useSession();
  const { id, usage, state, parentId } = conversation;
  if (!usage.warning || parentId !== null || state.kind === "context_exhausted") return null;
  const mayWrapUp = ["rests", "failed"].includes(phaseOf(state));
  const wrapUp = () => {
    call((routes) => routes.conversations[":id"].continuation.$post({ param: { id } })).catch(tellError);
  };
  return (
    <div className="banner warn" role="status">
      <span>
        The context is {Math.round(usage.contextRatio * 100)} % full. At 90 % the conversation ends with a
        summary, from which a new one can go on.
      </span>
      <button disabled={!mayWrapUp} title={mayWrapUp ? "" : "When the agent is at rest"} onClick={wrapUp}>
        Wrap up now
      </button>
    </div>
  );
}
