/**
 * Owns: what the page and a text worker say to each other. The page asks one thing at a time, and each request has one
 * answer; so the page knows which text a silent worker is busy with. Answers beside these: `ready` once, `loaded`, and
 * `unloadable`.
 */
import type { Runs } from "./highlight.ts";
import type { Language } from "./languages.ts";
import type { Patch } from "./patch.ts";

/** Ids are the page's, and never used again. */
export type Request =
  /** `text` is what follows the first `from` code units of the text. */
  | {
      readonly kind: "lex";
      readonly id: number;
      readonly from: number;
      readonly text: string;
      readonly streaming: boolean;
    }
  /** `pieces` are those from piece `from` on, not necessarily all. */
  | {
      readonly kind: "highlight";
      readonly id: number;
      readonly language: Language;
      readonly from: number;
      readonly pieces: readonly string[];
    }
  /** Has no answer. */
  | { readonly kind: "forget"; readonly id: number };

export type Answer =
  /** Of the blocks that were there; for `from: 0`, there were none. */
  | { readonly kind: "blocks"; readonly patches: readonly Patch[] }
  /** Of each piece of the request. */
  | { readonly kind: "runs"; readonly runs: readonly Runs[] }
  /** The worker does not know what came before `from`: it is to be asked again, from 0. */
  | { readonly kind: "unknown" }
  /** It is to be asked again after `loaded`. */
  | { readonly kind: "loading"; readonly language: Language }
  | { readonly kind: "failed" };

export type FromWorker =
  | Answer
  | { readonly kind: "ready" }
  | { readonly kind: "loaded"; readonly language: Language }
  /** The colours of a language could not be loaded. */
  | { readonly kind: "unloadable" };
