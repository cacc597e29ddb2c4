/** Owns: the title of a conversation that was given none, and the slug that is made of a title. */
import type { Message } from "../machine/message.ts";

export const STAND_IN_TITLE = "New conversation";

const TITLE_LENGTH = 80;
const SLUG_LENGTH = 60;

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
  const line = text.split(/[\r\n\u2028\u2029]/).find((part) => part.trim() !== "");
  return line === undefined ? null : shorten(line.trim());
}

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

/** Lower-case ASCII letters and digits joined by hyphens; never empty. Not unique by itself. */
export function slugFrom(title: string): string {
  const slug = title
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, SLUG_LENGTH)
    .replace(/^-+|-+$/g, "");
  return slug === "" ? "conversation" : slug;
}
