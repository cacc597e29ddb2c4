/** Owns: the page as a whole: the list beside a view, and the prompt for a token. */
import { useEffect, useMemo, useRef, useState } from "react";
import { Attention } from "./attention.tsx";
import { ConversationPage } from "./conversation-page.tsx";
import { ConversationList } from "./conversation-list.tsx";
import { focusMessage, LIST, MAIN, useKeptFocus } from "./focus.ts";
import { NewConversation } from "./new-conversation.tsx";
import { NewVersion } from "./new-version.tsx";
import { useRoute } from "./route.ts";
import {
  callsWith,
  forgetToken,
  SessionProvider,
  storedToken,
  storeToken,
  takeTokenFromAddress,
  viewWith,
} from "./session.tsx";
import { Toasts } from "./toasts.tsx";
import { TokenPrompt } from "./token-prompt.tsx";
import { useLink } from "./use-models.ts";

export function App() {
  const [token, setToken] = useState(firstToken);
  const [isRefused, setRefused] = useState(false);
  const [view, setView] = useState(() => viewWith(token));
  const session = useMemo(() => {
    const keepToken = (given: string) => {
      storeToken(given);
      setToken(given);
    };
    return { ...callsWith(token, () => setRefused(true)), view, keepToken };
  }, [token, view]);
  /** With another view: the old one may see nothing, or has another token. */
  const signIn = (given: string | null) => {
    if (given === null) forgetToken();
    else storeToken(given);
    setToken(given);
    setRefused(false);
    view.end();
    setView(viewWith(given));
  };
  const latest = useRef(signIn);
  useEffect(() => {
    latest.current = signIn;
  });
  useEffect(() => {
    const look = () => {
      const given = takeTokenFromAddress();
      if (given !== null) latest.current(given);
    };
    window.addEventListener("hashchange", look);
    return () => window.removeEventListener("hashchange", look);
  }, []);
  return (
    <SessionProvider value={session}>
      <Page isRefused={isRefused} onToken={signIn} />
    </SessionProvider>
  );
}

function firstToken(): string | null {
  const given = takeTokenFromAddress();
  if (given !== null) storeToken(given);
  return storedToken();
}

function Page({
  isRefused,
  onToken,
}: {
  readonly isRefused: boolean;
  readonly onToken: (token: string | null) => void;
}) {
  const link = useLink();
  const route = useRoute();
  // On a phone the list covers the view over which it was opened; it goes when another view is chosen.
  const [listOver, setListOver] = useState<string | null>(null);
  const shown = route.kind === "conversation" ? route.id : "new";
  useKeptFocus();
  if (link.kind === "unauthorized" || isRefused)
    return <TokenPrompt wasRefused={storedToken() !== null} onToken={onToken} />;
  const openList = () => setListOver(shown);
  return (
    <div className="page" data-list={listOver === shown ? "open" : "closed"}>
      <a
        className="skip"
        href={`#${MAIN}`}
        onClick={(event) => {
          event.preventDefault();
          focusMessage();
        }}
      >
        Skip to the message
      </a>
      <Attention />
      <ConversationList
        selected={route.kind === "conversation" ? route.id : null}
        onClose={() => setListOver(null)}
      />
      {route.kind === "conversation" ? (
        <ConversationPage key={route.id} id={route.id} view={route.view} onOpenList={openList} />
      ) : (
        <NewConversation onOpenList={openList} />
      )}
      <NewVersion />
      <Toasts focusHome={LIST} />
    </div>
  );
}
