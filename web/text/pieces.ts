/**
 * Owns: cutting a long text into pieces of bounded size. A piece is rendered once, and only the last one changes while
 * text is appended; a browser lays out each for itself. Pure.
 */

const PIECE_LINES = 16;
/** UTF-16 code units. A line that is longer is cut in two pieces. */
const PIECE_LENGTH = 2000;

/** The pieces of a text; joined, they are the text. They do not depend on how it was appended. */
export function piecesOf(text: string): readonly string[] {
  return appendToPieces([], text);
}

/** The pieces of `pieces.join("") + text`. All but the last of the old pieces stay. */
export function appendToPieces(pieces: readonly string[], text: string): readonly string[] {
  if (text === "") return pieces;
  const result = pieces.slice(0, -1);
  const rest = (pieces.at(-1) ?? "") + text;
  for (let start = 0; start < rest.length;) {
    const end = pieceEnd(rest, start);
    result.push(rest.slice(start, end));
    start = end;
  }
  return result;
}

function pieceEnd(text: string, start: number): number {
  // One more than fits shows that a line goes on.
  const window = text.slice(start, start + PIECE_LENGTH + 1);
  let end = 0;
  for (let lines = 0; lines < PIECE_LINES; lines++) {
    const newline = window.indexOf("\n", end);
    const lineEnd = newline === -1 ? window.length : newline + 1;
    if (lineEnd > PIECE_LENGTH) return end > 0 ? start + end : wholeCharacter(text, start + PIECE_LENGTH);
    end = lineEnd;
    if (end === window.length) break;
  }
  return start + end;
}

/** Never between the two halves of a surrogate pair. */
function wholeCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}
