/**
 * Owns: showing characters that change how the text around them looks, or that nobody sees: marks of direction, which
 * make code read otherwise than it runs, invisible letters, which carry messages, and control characters.
 */
import type { ReactNode } from "react";

/** Written by names of ranges, since the characters themselves would do here what they do elsewhere. */
const IN_CODE =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]+/gu;
/** Text in other scripts needs some of them, where they do no harm. */
const IN_PROSE = /[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]+/gu;
/** So many in a row are shown one by one. */
const MAX_IN_ROW = 8;

/** A text of code, output or a path, with all hidden characters shown. */
export const showHidden = (text: string): ReactNode => replaced(text, IN_CODE);

/** A text of prose, with those shown that lie. */
export const showHiddenInProse = (text: string): ReactNode => replaced(text, IN_PROSE);

/** Nobody sees anything of this text. */
export const isInvisible = (text: string): boolean => text.replace(IN_CODE, "").trim() === "";

function replaced(text: string, hidden: RegExp): ReactNode {
  if (text.search(hidden) === -1) return text;
  const nodes: ReactNode[] = [];
  let end = 0;
  for (const match of text.matchAll(hidden)) {
    nodes.push(text.slice(end, match.index));
    nodes.push(
      <span className="tx-hidden" key={match.index}>
        {nameOf(match[0])}
      </span>,
    );
    end = match.index + match[0].length;
  }
  nodes.push(text.slice(end));
  return nodes;
}

/** "U+202E", or how many there are. */
function nameOf(characters: string): string {
  const codes = Array.from(characters, (character) => character.codePointAt(0) ?? 0);
  if (codes.length > MAX_IN_ROW) return `${codes.length} hidden characters`;
  return codes.map((code) => `U+${code.toString(16).toUpperCase().padStart(4, "0")}`).join(" ");
}
