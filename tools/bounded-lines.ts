/** Owns: keeping the first lines of a text that may be long. */

export type BoundedLines = {
  /** false: the line was left out, and so are all that follow. */
  readonly add: (line: string) => boolean;
  readonly isFull: () => boolean;
  readonly text: () => string;
};

/** @param maxChars UTF-16 code units of all lines together */
export function boundedLines(maxLines: number, maxChars: number): BoundedLines {
  const kept: string[] = [];
  let chars = 0;
  let full = false;
  return {
    add(line) {
      full ||= kept.length >= maxLines || chars + line.length > maxChars;
      if (full) return false;
      kept.push(line);
      chars += line.length + 1;
      return true;
    },
    isFull: () => full,
    text: () => kept.join("\n"),
  };
}
