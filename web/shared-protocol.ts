/** Owns: what a page and the worker that all pages of a browser share say to each other. */
import type { Change } from "../client/index.ts";

export type FromPage =
  /** The first message. `lock` is held as long as the page lives; null where the browser has no locks. */
  | { readonly kind: "hello"; readonly token: string | null; readonly lock: string | null }
  | { readonly kind: "open" | "close"; readonly id: string }
  | { readonly kind: "reconnect" }
  /** Answered at once, by a worker that works. */
  | { readonly kind: "ping" }
  /** The page goes away. */
  | { readonly kind: "bye" };

export type ToPage =
  | { readonly kind: "change"; readonly change: Change }
  | { readonly kind: "pong" }
  /** An error in the worker that nothing has handled. Pages show it where developers look. */
  | { readonly kind: "failure"; readonly message: string };
