/** Owns: what all components share: the calls, the models of the server, and the token. */
import { createContext, useContext } from "react";
import { createCalls, type Calls, type View } from "../client/index.ts";
import { openView } from "./shared-view.ts";

export type Session = Calls & {
  readonly view: View;
  /** From now on calls have this token, also after a reload. What is shown stays as it is. */
  readonly keepToken: (token: string) => void;
};

const TOKEN = "bedrock.token";

/** The token is kept for this tab only, and stays in no address. */
export const storedToken = (): string | null => sessionStorage.getItem(TOKEN);

export function storeToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(TOKEN);
}

/** The token in the address, as in the link that `npm start` shows. It is taken out of it; null: there is none. */
export function takeTokenFromAddress(): string | null {
  const { hash, pathname, search } = window.location;
  const token = new URLSearchParams(hash.slice(1)).get("token");
  if (token === null) return null;
  // The address stays in no history of the browser.
  history.replaceState(history.state, "", pathname + search);
  return token === "" ? null : token;
}

/** @param onUnauthorized called when the server does not accept the token any more */
export const callsWith = (token: string | null, onUnauthorized?: () => void): Calls =>
  createCalls({ url: window.location.origin, token }, onUnauthorized);

export const viewWith = (token: string | null): View => openView(token);

const Context = createContext<Session | null>(null);
export const SessionProvider = Context.Provider;

export function useSession(): Session {
  const session = useContext(Context);
  if (session === null) throw new Error("There is no session here.");
  return session;
}
