/**
 * Owns: parts of a long text that a browser lays out only when they come into view. Until then their heights are
 * estimates, so this is for texts that are too long to lay out at once. Pure.
 */
import type { CSSProperties } from "react";
import type { Block, Inline } from "./model.ts";

/** From so many parts on. A part has 16 blocks or lines. */
const MANY = 16;
/** UTF-16 code units in a line of prose, about. */
const LINE_LENGTH = 100;
/** Lines of space below a block. */
const GAP = 0.4;

type Part = { readonly className: string; readonly style?: CSSProperties };

/**
 * What the element of a part gets.
 *
 * @param parts of the whole text
 * @param lines of this part
 */
export const partProps = (className: string, parts: number, lines: () => number): Part =>
  parts < MANY
    ? { className }
    : {
        className: `${className} tx-one-of-many`,
        style: { containIntrinsicBlockSize: `auto ${Math.ceil(lines())}lh` },
      };

/** The lines of a text where the width is. */
export const wrappedLines = (text: string): number =>
  linesOf(text).reduce((sum, { length }) => sum + Math.max(1, Math.ceil(length / LINE_LENGTH)), 0);

/** The lines of a text that end at newlines only. */
export const unwrappedLines = (text: string): number => linesOf(text).length;

const linesOf = (text: string): string[] => (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");

/** The lines that blocks take, about. */
export const blockLines = (blocks: readonly Block[]): number =>
  blocks.reduce((sum, block) => sum + linesOfBlock(block) + GAP, 0);

/** A block does not change. */
const known = new WeakMap<Block, number>();

function linesOfBlock(block: Block): number {
  const lines = known.get(block) ?? countLines(block);
  known.set(block, lines);
  return lines;
}

function countLines(block: Block): number {
  switch (block.kind) {
    case "paragraph":
      return wrappedLines(textOf(block.children));
    case "heading":
    case "rule":
      return 2;
    case "code":
      return 2 + block.nodes.reduce((sum, piece) => sum + unwrappedLines(piece), 0);
    case "plain":
      return block.nodes.reduce((sum, piece) => sum + wrappedLines(piece), 0);
    case "quote":
      return blockLines(block.nodes);
    case "list":
      return block.nodes.reduce((sum, item) => sum + blockLines(item.nodes), 0);
    case "table":
      return 1.4 * (1 + block.nodes.length);
  }
}

const textOf = (inlines: readonly Inline[]): string =>
  inlines
    .map((inline) => {
      if (typeof inline === "string") return inline;
      return "children" in inline ? textOf(inline.children) : "text" in inline ? inline.text : "\n";
    })
    .join("");
