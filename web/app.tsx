/** Owns: the page as a whole: the list beside a view, and the prompt for a token. */
import { useState } from "react";
import { Attention } from "./attention.tsx";
import { ConversationPage } from "./conversation-page.tsx";
import { ConversationList } from "./conversation-list.tsx";
import { focusMessage, LIST, MAIN, useKeptFocus } from "./focus.ts";
import { NewConversation } from "./new-conversation.tsx";
import { NewVersion } from "./new-version.tsx";
import { useRoute } from "./route.ts";
import { openSession, SessionProvider, storedToken, storeToken } from "./session.tsx";
import { Toasts } from "./toasts.tsx";
import { TokenPrompt } from "./token-prompt.tsx";
import { useLink } from "./use-models.ts";

export function App() {
  const [session, setSession] = useState(() => openSession(storedToken()));
  const signIn = (token: string) => {
    storeToken(token);
    session.view.end();
    setSession(openSession(token));
  };
  return (
    <SessionProvider value={session}>
      <Page onToken={signIn} />
    </SessionProvider>
  );
}

function Page({ onToken }: { readonly onToken: (token: string) => void }) {
  const link = useLink();
  const route = useRoute();
  // On a phone the list covers the view over which it was opened; it goes when another view is chosen.
  const [listOver, setListOver] = useState<string | null>(null);
  const shown = route.kind === "conversation" ? route.id : "new";
  useKeptFocus();
  if (link.kind === "unauthorized")
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
