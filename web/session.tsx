/** Owns: what all components share: the calls, the models of the server, and the token. */
import { createContext, useContext } from "react";
import { createCalls, type Calls, type View } from "../client/index.ts";
import { openView } from "./shared-view.ts";

export type Session = Calls & {
  readonly view: View;
};

const TOKEN = "bedrock.token";

/** The token is kept for this tab only, and never in an address. */
export const storedToken = (): string | null => sessionStorage.getItem(TOKEN);

export function storeToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

export function openSession(token: string | null): Session {
  return { ...createCalls({ url: window.location.origin, token }), view: openView(token) };
}

const Context = createContext<Session | null>(null);
export const SessionProvider = Context.Provider;

export function useSession(): Session {
  const session = useContext(Context);
  if (session === null) throw new Error("There is no session here.");
  return session;
}
