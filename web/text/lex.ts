/**
 * Owns: lexing Markdown to blocks. Runs in the worker: its time grows with the square of some texts.
 *
 * Two things of Markdown are left out, since they act on text far away from them. Reference definitions are shown as
 * they are written: one at the end of a text would change links at its beginning. An open HTML tag has no effect on
 * what follows; tags are text. So a block depends on its own source only, and what is finished stays as it is.
 *
 * Not here: text that still grows (document.ts), what may be linked (address.ts).
 */
import { Lexer, Tokenizer, type MarkedToken, type Token, type Tokens } from "marked";
import { decodeReferences } from "./entities.ts";
import type { Block, Cell, Inline, Item, Row } from "./model.ts";
import { piecesOf } from "./pieces.ts";

/** What is larger or deeper is no prose: it is shown as it is written. It bounds the page's work for one block. */
const MAX_ELEMENTS = 4000;
const MAX_DEPTH = 24;
/** UTF-16 code units of text without an element in it. */
const MAX_RUN = 10_000;

/** A block and the source that it was made from. */
export type LexedBlock = {
  readonly token: MarkedToken;
  /** UTF-16 code units from the beginning of the lexed source. */
  readonly start: number;
  readonly end: number;
};

/** The depths of the headings that the next block is below: the outline of a text so far. */
export type Outline = readonly number[];

class BlockTokenizer extends Tokenizer {
  override def(): undefined {
    return undefined;
  }

  override tag(source: string): Tokens.Tag | undefined {
    const raw = this.rules.inline.tag.exec(source)?.[0];
    return raw === undefined
      ? undefined
      : { type: "html", raw, text: raw, block: false, inLink: false, inRawBlock: false };
  }
}

/** Nesting that is too deep for the stack throws, and so do a few texts that the lexer has defects with. */
function lex(source: string): readonly MarkedToken[] {
  try {
    return known(new Lexer({ gfm: true, tokenizer: new BlockTokenizer() }).lex(source));
  } catch {
    return [{ type: "html", raw: source, text: source, pre: false, block: true }];
  }
}

/** Extensions make other tokens; there are none. */
const known = (tokens: readonly Token[]): MarkedToken[] => tokens as MarkedToken[];

/** Blocks and where they are; a source that cannot be lexed is one. Blank lines between them belong to none. */
export function lexBlocks(source: string): readonly LexedBlock[] {
  let end = 0;
  return lex(source).flatMap((token) => {
    const start = end;
    end += token.raw.length;
    return token.type === "space" ? [] : [{ token, start, end }];
  });
}

/** The blocks of a source, below an outline, and the outline after them. */
export function blocksOf(
  lexed: readonly LexedBlock[],
  before: Outline = [],
): { readonly blocks: readonly Block[]; readonly outline: Outline } {
  let outline = before;
  const blocks = lexed.flatMap(({ token }) => {
    if (token.type === "heading") {
      outline = [...outline.filter((depth) => depth < token.depth), token.depth];
      return [bounded(headingOf(token, outline.length), token.raw)];
    }
    const block = blockOf(token);
    return block === null ? [] : [bounded(block, token.raw)];
  });
  return { blocks, outline };
}

const headingOf = ({ tokens }: Tokens.Heading, level: number | null): Block => ({
  kind: "heading",
  level,
  children: inlinesOf(tokens),
});

const nestedBlocksOf = (tokens: readonly Token[]): readonly Block[] =>
  known(tokens).flatMap((token) => {
    const block = token.type === "heading" ? headingOf(token, null) : blockOf(token);
    return block === null ? [] : [block];
  });

/** null: nothing is shown. */
function blockOf(token: Exclude<MarkedToken, Tokens.Heading>): Block | null {
  switch (token.type) {
    case "space":
    case "checkbox":
      return null;
    case "code":
      return { kind: "code", language: decodeReferences(token.lang ?? ""), nodes: piecesOf(codeOf(token)) };
    case "blockquote":
      return { kind: "quote", nodes: nestedBlocksOf(token.tokens) };
    case "hr":
      return { kind: "rule" };
    case "list":
      return {
        kind: "list",
        start: token.start === "" ? null : token.start,
        nodes: token.items.map(itemOf),
      };
    case "table":
      return {
        kind: "table",
        align: token.align,
        head: token.header.map(cellOf),
        nodes: token.rows.map((cells): Row => ({ kind: "row", cells: cells.map(cellOf) })),
      };
    case "paragraph":
      return { kind: "paragraph", children: inlinesOf(token.tokens) };
    // The text of a list item without blank lines.
    case "text":
      return { kind: "paragraph", children: inlinesOf(token.tokens ?? [token]) };
    case "html":
      return plainOf(token.raw);
    // None of these is a block.
    case "br":
    case "codespan":
    case "def":
    case "del":
    case "em":
    case "escape":
    case "image":
    case "link":
    case "list_item":
    case "strong":
      return plainOf(token.raw);
  }
}

/** Lexers add a newline to code that ends with an empty line, and to no other. */
const codeOf = ({ text }: Tokens.Code): string => (text.endsWith("\n") ? text.slice(0, -1) : text);

const plainOf = (text: string): Block => ({
  kind: "plain",
  nodes: piecesOf(text.endsWith("\n") ? text.slice(0, -1) : text),
});

const itemOf = ({ task, checked, tokens }: Tokens.ListItem): Item => ({
  kind: "item",
  checked: task ? checked === true : null,
  nodes: nestedBlocksOf(tokens),
});

const cellOf = ({ tokens }: Tokens.TableCell): Cell => inlinesOf(tokens);

function inlinesOf(tokens: readonly Token[]): readonly Inline[] {
  const inlines: Inline[] = [];
  for (const token of known(tokens)) {
    const inline = inlineOf(token);
    const last = inlines.at(-1);
    if (typeof inline === "string" && typeof last === "string") inlines[inlines.length - 1] = last + inline;
    else if (inline !== "") inlines.push(inline);
  }
  return inlines;
}

function inlineOf(token: MarkedToken): Inline {
  switch (token.type) {
    case "text":
      return decodeReferences(token.raw);
    case "escape":
      return token.text;
    case "em":
      return { kind: "emphasis", children: inlinesOf(token.tokens) };
    case "strong":
      return { kind: "strong", children: inlinesOf(token.tokens) };
    case "del":
      return { kind: "deleted", children: inlinesOf(token.tokens) };
    case "codespan":
      return { kind: "code", text: token.text };
    case "br":
      return { kind: "break" };
    case "link":
      return token.autolink === true
        ? { kind: "link", address: token.href, children: [token.text] }
        : { kind: "link", address: decodeReferences(token.href), children: inlinesOf(token.tokens) };
    case "image":
      return { kind: "image", address: decodeReferences(token.href), text: decodeReferences(token.text) };
    case "checkbox":
      return "";
    case "html":
      return token.raw;
    // None of these is inline.
    case "blockquote":
    case "code":
    case "def":
    case "heading":
    case "hr":
    case "list":
    case "list_item":
    case "paragraph":
    case "space":
    case "table":
      return token.raw;
  }
}

/** The block, or its source if it is too large for a page. */
function bounded(block: Block, source: string): Block {
  switch (block.kind) {
    case "rule":
    case "code":
    case "plain":
      return block;
    case "heading":
    case "paragraph":
    case "quote":
    case "list":
    case "table":
      return elementsOf(block, 0) > MAX_ELEMENTS ? plainOf(source) : block;
  }
}

/** Infinity: it is too deep, or has a run of text that is too long. */
function elementsOf(node: Block | Item | Row | Inline, depth: number): number {
  if (depth > MAX_DEPTH) return Infinity;
  if (typeof node === "string") return node.length > MAX_RUN ? Infinity : 1;
  const sum = (children: readonly (Block | Item | Row | Inline)[]): number =>
    children.reduce((count, child) => count + elementsOf(child, depth + 1), 1);
  switch (node.kind) {
    case "rule":
    case "break":
      return 1;
    case "image":
      return 1;
    case "code":
      return "text" in node ? elementsOf(node.text, depth) : node.nodes.length;
    case "plain":
      return node.nodes.length;
    case "emphasis":
    case "strong":
    case "deleted":
    case "link":
    case "heading":
    case "paragraph":
      return sum(node.children);
    case "quote":
    case "list":
    case "item":
      return sum(node.nodes);
    case "table":
      return sum([...node.head.flat(), ...node.nodes]);
    case "row":
      return sum(node.cells.flat()) + node.cells.length;
  }
}
