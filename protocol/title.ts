/**
 * Owns: the title of a conversation that was given none, and how a title is shown where nobody bounds it: in Temporal's
 * lists. Postgres has the titles that people see. A workflow knows its title only to show it to operators.
 */
import type { Message } from "../machine/message.ts";

export const STAND_IN_TITLE = "New conversation";

/** Characters. A server on Postgres or MySQL refuses a search attribute of more than 255. */
const TITLE_LENGTH = 80;

/** A title as a workflow knows it. */
export type KnownTitle = {
  /** null: the conversation has none yet, and the first message will make one. */
  readonly text: string | null;
  /** The number of the conversation's event that told it, or of a later one. A title of an earlier event is outdated. */
  readonly event: number;
};

/** The first line with text of the first user message that has one, at most 80 characters; else null. */
export function titleFrom(messages: readonly Message[]): string | null {
  for (const message of messages) {
    if (message.type !== "user") continue;
    for (const block of message.content) {
      if (block.type !== "text") continue;
      const title = titleOf(block.text);
      if (title !== null) return title;
    }
  }
  return null;
}

/** The first line that is not blank, at most 80 characters; null when there is none. */
export function titleOf(text: string): string | null {
  for (const [line] of text.matchAll(/[^\r\n\u2028\u2029]+/g))
    if (line.trim() !== "") return shorten(line.trim());
  return null;
}

/**
 * One line of at most 80 characters, for terminals and databases that are not ours: without control characters, without
 * characters that turn the direction of what follows, and without halves of characters. null when nothing is left.
 */
export function plainTitle(title: string | null): string | null {
  const line = title?.replace(/[\s\p{Cc}\p{Surrogate}\p{Bidi_Control}]+/gu, " ").trim() ?? "";
  return line === "" ? null : shorten(line);
}

/** The same, and a stand-in where there is no title. */
export const shownTitle = (title: string | null): string => plainTitle(title) ?? STAND_IN_TITLE;

function shorten(line: string): string {
  // Counted and cut in code points, so that no character is torn.
  const characters = Array.from(line.slice(0, 2 * TITLE_LENGTH + 2));
  return characters.length <= TITLE_LENGTH
    ? characters.join("")
    : `${characters
        .slice(0, TITLE_LENGTH - 1)
        .join("")
        .trimEnd()}…`;
}
