/**
 * Owns: how the end of a Markdown text is shown while it is still being written: open emphasis is closed, and marks
 * whose meaning the next characters decide are held back. So nothing is shown that vanishes again. Pure.
 */
import remend from "remend";

/** Only emphasis and code: what is complete must look as it will in the end. */
const OPTIONS = {
  links: false,
  images: false,
  htmlTags: false,
  katex: false,
  setextHeadings: false,
  comparisonOperators: false,
  singleTilde: false,
} as const;

/** Half a character reference: "&am". */
const REFERENCE = /&(?:#[xX]?[\da-fA-F]{0,7}|[a-zA-Z][a-zA-Z0-9]{0,31})?$/;
/** Half a task: "- [x". */
const TASK = /(?<=^[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+)\[[ xX]?\]?[ \t]*$/;
/** Half a link or image, from its text on: "[text](http://exam". */
const LINK = /!?\[([^[\]]*)\]\((?:<[^<>]*|[^\s<()]*(?:[ \t]+(?:"[^"]*|'[^']*)?)?)$/;
/** A line of marks only: the beginning of a heading, a list, a fence, a rule, a table, or of none of these. */
const MARKS = /^[ \t>]*(?:#{1,6}|[-=]+|\*+|_+|\+|`+|~+|\d{1,9}[.)]?|\|[ \t|:-]*|:?-[ \t|:-]*)?[ \t]*$/;

/** The source whose blocks are shown in the place of the unfinished `source`. */
export function heal(source: string): string {
  const lineStart = source.lastIndexOf("\n") + 1;
  const line = source.slice(lineStart);
  if (MARKS.test(line)) return remend(source.slice(0, lineStart), OPTIONS);
  const shown = line.replace(REFERENCE, "").replace(TASK, "").replace(LINK, "$1");
  return remend(source.slice(0, lineStart) + shown, OPTIONS);
}
