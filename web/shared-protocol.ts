/** Owns: what a page and the worker that all pages of a browser share say to each other. */
import type { Change } from "../client/index.ts";

export type FromPage =
  /** The first message. `lock` is held as long as the page lives; null where the browser has no locks. */
  | { readonly kind: "hello"; readonly token: string | null; readonly lock: string | null }
  | { readonly kind: "open" | "close"; readonly id: string }
  | { readonly kind: "reconnect" }
  /** The page goes away. */
  | { readonly kind: "bye" };

export type ToPage = Change;
