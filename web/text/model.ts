/**
 * Owns: what a Markdown text consists of, as the worker tells the page: plain data, without a DOM.
 * Not here: how it is lexed (lex.ts), how it is shown (blocks.tsx), which addresses may be linked (address.ts).
 */

export type Inline =
  | string
  | { readonly kind: "emphasis" | "strong" | "deleted"; readonly children: readonly Inline[] }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "break" }
  /** `address` is as the model wrote it, not checked. */
  | { readonly kind: "link"; readonly address: string; readonly children: readonly Inline[] }
  | { readonly kind: "image"; readonly address: string; readonly text: string };

export type Align = "left" | "center" | "right" | null;
export type Cell = readonly Inline[];

export type Block =
  | { readonly kind: "paragraph"; readonly children: readonly Inline[] }
  /** `level` counts from 1 without gaps within one text; null: in a list or a quotation, so not in its outline. */
  | { readonly kind: "heading"; readonly level: number | null; readonly children: readonly Inline[] }
  | { readonly kind: "rule" }
  /** The nodes are the code in pieces (pieces.ts). `language` is what the model wrote after the fence. */
  | { readonly kind: "code"; readonly language: string; readonly nodes: readonly string[] }
  /** Text that is shown as it is: HTML, or what is too large to format. In pieces. */
  | { readonly kind: "plain"; readonly nodes: readonly string[] }
  | { readonly kind: "quote"; readonly nodes: readonly Block[] }
  | { readonly kind: "list"; readonly start: number | null; readonly nodes: readonly Item[] }
  | {
      readonly kind: "table";
      readonly align: readonly Align[];
      readonly head: readonly Cell[];
      readonly nodes: readonly Row[];
    };

/** `checked` is null for an item that is no task. */
export type Item = {
  readonly kind: "item";
  readonly checked: boolean | null;
  readonly nodes: readonly Block[];
};
export type Row = { readonly kind: "row"; readonly cells: readonly Cell[] };

/** Anything that a patch may replace (patch.ts). */
export type Node = Block | Item | Row | string;
