/** Owns: the colours that code may have, by their place in the list. The class of `string` is `tx-string` (text.css). */

export const COLOR_NAMES = [
  "plain",
  "keyword",
  "string",
  "string-expression",
  "comment",
  "constant",
  "function",
  "parameter",
  "punctuation",
  "link",
  "inserted",
  "deleted",
  "changed",
] as const;

/** undefined: the colour of the text around. */
export const colorClass = (color: number): string | undefined =>
  color === 0 || COLOR_NAMES[color] === undefined ? undefined : `tx-${COLOR_NAMES[color]}`;
