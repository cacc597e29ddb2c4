/** Owns: finding places in a text by its lines, whatever its line endings and whitespace are. Pure. */

/** Offsets in UTF-16 code units, `end` not included. */
export type Range = { readonly start: number; readonly end: number };

export type LineEnding = "\n" | "\r\n";

/** UTF-16 code units of the largest file that is searched without whitespace. */
const MAX_SQUEEZED = 200_000;
/** UTF-16 code units of text that is shown in a hint. */
const MAX_SHOWN = 2_000;
const BYTE_ORDER_MARK = "\ufeff";

export class Source {
  readonly #text: string;
  readonly #start: number;
  /** The text with LF alone. `#crlf` has the offsets in it of newlines that had a carriage return before them. */
  readonly #unix: string;
  readonly #crlf: readonly number[];
  /** Offsets of the newlines. */
  readonly #newlines: readonly number[];

  constructor(text: string) {
    this.#text = text;
    this.#start = text.startsWith(BYTE_ORDER_MARK) ? 1 : 0;
    const newlines: number[] = [];
    const crlf: number[] = [];
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
      newlines.push(at);
      if (text[at - 1] === "\r") crlf.push(at - crlf.length - 1);
    }
    this.#newlines = newlines;
    this.#crlf = crlf;
    this.#unix = crlf.length === 0 ? text : text.replaceAll("\r\n", "\n");
  }

  get lineCount(): number {
    const isOpen = this.#text.length > this.#start && !this.#text.endsWith("\n");
    return this.#newlines.length + (isOpen ? 1 : 0);
  }

  /** The number of the line, from 1, that an offset lies in. */
  lineAt(offset: number): number {
    return countBelow(this.#newlines, offset) + 1;
  }

  /** The offset after a line and its newline; for line 0, the offset at which the first line begins. */
  endOfLine(line: number): number {
    if (line === 0) return this.#start;
    const newline = this.#newlines[line - 1];
    return newline === undefined ? this.#text.length : newline + 1;
  }

  endsLine(offset: number): boolean {
    return this.#text[offset - 1] === "\n";
  }

  /** The ending of the line at an offset or, if that line has none, of the line before it. */
  lineEndingAt(offset: number): LineEnding {
    const line = countBelow(this.#newlines, offset);
    const newline = this.#newlines[line] ?? this.#newlines[line - 1];
    return newline !== undefined && this.#text[newline - 1] === "\r" ? "\r\n" : "\n";
  }

  /**
   * The places where a text occurs, one more than `limit` at most. Line endings may differ if the text has no carriage
   * return; everything else must be equal.
   */
  find(
    wanted: string,
    { overlapping, limit }: { readonly overlapping: boolean; readonly limit: number },
  ): Range[] {
    const isLiteral = wanted.includes("\r");
    const text = isLiteral ? this.#text : this.#unix;
    const offset = (at: number): number => (isLiteral ? at : at + countBelow(this.#crlf, at));
    const found: Range[] = [];
    const step = overlapping ? 1 : wanted.length;
    for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + step)) {
      found.push({ start: offset(at), end: offset(at + wanted.length) });
      if (found.length > limit) break;
    }
    return found;
  }

  /** The lines of the first place where a text occurs if whitespace does not count. */
  findIgnoringWhitespace(
    wanted: string,
  ): { readonly first: number; readonly last: number; readonly text: string } | null {
    // This would take long in a large file, and the caller may do it for each of many edits.
    if (this.#text.length > MAX_SQUEEZED) return null;
    const squeezed = wanted.replace(/\s/g, "");
    if (squeezed === "") return null;
    const at = this.#text.replace(/\s/g, "").indexOf(squeezed);
    if (at === -1) return null;
    const start = this.#offsetOfVisible(at);
    const end = this.#offsetOfVisible(at + squeezed.length - 1);
    const [first, last] = [this.lineAt(start), this.lineAt(end)];
    const lines = this.#text.slice(this.endOfLine(first - 1), this.endOfLine(last)).replaceAll("\r\n", "\n");
    const text = lines.trimEnd();
    return {
      first,
      last,
      text: text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN).toWellFormed()} [… cut …]`,
    };
  }

  /** The offset of the nth character, from 0, that is not whitespace. */
  #offsetOfVisible(n: number): number {
    let left = n;
    for (const { index, 0: run } of this.#text.matchAll(/\S+/g)) {
      if (left < run.length) return index + left;
      left -= run.length;
    }
    return this.#text.length;
  }
}

/** How many of the rising numbers are below `limit`. */
function countBelow(numbers: readonly number[], limit: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] ?? Infinity) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
