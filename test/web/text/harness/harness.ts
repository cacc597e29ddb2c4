/** Owns: what the test page offers to the tests. The page has a DOM, the tests have none. */
import type { FileDiff } from "../../../../machine/message.ts";

export type Shown =
  | { readonly kind: "markdown"; readonly text: string; readonly streaming: boolean }
  | { readonly kind: "output"; readonly text: string; readonly stream?: "stdout" | "stderr" }
  | { readonly kind: "diff"; readonly diff: FileDiff; readonly base?: string }
  /** Any JSON; Playwright's types do not bear that it is recursive. */
  | { readonly kind: "json"; readonly value: unknown };

/** What was found that should not be there. Empty if all is well. */
export type Findings = readonly string[];

export type Streamed = {
  /** Nodes that were added, removed or changed by each delta. */
  readonly mutations: readonly number[];
  /** Letters that a person sees, after each delta. */
  readonly letters: readonly number[];
};

export type Harness = {
  /** Shows these, in the place of what was shown before. Those with the same place stay the same component. */
  show(items: readonly Shown[]): void;
  /** Whether all that was shown has been formatted. */
  isFormatted(): boolean;
  /** Elements, attributes and addresses that no text may bring, attempts to run a script, and links that lie. */
  findings(): Findings;
  /** The markup of what is shown, but for the colours of code, which come later. */
  html(): string;
  /** Shows a text as it grows by these pieces, one each frame or `everyMs`, and then the whole of it. */
  stream(pieces: readonly string[], everyMs?: number): Promise<Streamed>;
  /** Milliseconds that showing these took, until it was painted and formatted: the longest task, and all of it. */
  timeOf(items: readonly Shown[]): Promise<{ readonly longestTask: number; readonly total: number }>;
  /** Milliseconds of each task of more than 50 ms since the last call. */
  longTasks(): readonly number[];
  /** Milliseconds from each key that was pressed in the text field until the next frame was painted, since the last call. */
  keydowns(): readonly number[];
};
