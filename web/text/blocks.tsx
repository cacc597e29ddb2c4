/** Owns: the blocks of a text as React elements. A block that is the same object is not rendered again. */
import { createContext, memo, useContext, useRef, type ReactElement } from "react";
import { CodeBlock } from "./code-block.tsx";
import { Grouped } from "./grouped.tsx";
import { inlineNodes } from "./inlines.tsx";
import { blockLines, partProps } from "./lazy-layout.ts";
import type { Align, Block, Item, Row } from "./model.ts";
import { PlainPieces } from "./plain.tsx";
import { useScrolls } from "./use-scrolls.ts";

/** The level of a text's highest headings in the page's outline. */
export const HeadingLevel = createContext(2);

/** The blocks of a whole text. */
export const Blocks = ({ blocks }: { readonly blocks: readonly Block[] }): ReactElement => (
  <Grouped nodes={blocks} box={groupProps} render={renderBlock} />
);

const groupProps = (group: readonly Block[], groups: number) =>
  partProps("md-group", groups, () => blockLines(group));

const NestedBlocks = ({ blocks }: { readonly blocks: readonly Block[] }): ReactElement => (
  <Grouped nodes={blocks} render={renderBlock} />
);

const renderBlock = (block: Block, at: number): ReactElement => <BlockView key={at} block={block} />;

const BlockView = memo(function BlockView({ block }: { readonly block: Block }): ReactElement {
  switch (block.kind) {
    case "paragraph":
      return <p>{inlineNodes(block.children)}</p>;
    case "heading":
      return <Heading level={block.level}>{inlineNodes(block.children)}</Heading>;
    case "rule":
      return <hr />;
    case "code":
      return <CodeBlock info={block.language} pieces={block.nodes} />;
    case "plain":
      return <PlainPieces pieces={block.nodes} />;
    case "quote":
      return (
        <blockquote>
          <NestedBlocks blocks={block.nodes} />
        </blockquote>
      );
    case "list":
      return block.start === null ? (
        <ul>
          <Grouped nodes={block.nodes} render={renderItem} />
        </ul>
      ) : (
        <ol start={block.start}>
          <Grouped nodes={block.nodes} render={renderItem} />
        </ol>
      );
    case "table":
      return <Table block={block} />;
  }
});

function Heading({
  level,
  children,
}: {
  readonly level: number | null;
  readonly children: React.ReactNode;
}): ReactElement {
  const highest = useContext(HeadingLevel);
  if (level === null) return <p className="md-heading">{children}</p>;
  const Tag = HEADINGS[Math.min(highest + level, HEADINGS.length) - 2] ?? "h6";
  return <Tag className="md-heading">{children}</Tag>;
}

const HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"] as const;

const renderItem = (item: Item, at: number): ReactElement => <ItemView key={at} item={item} />;

const ItemView = memo(function ItemView({ item }: { readonly item: Item }): ReactElement {
  if (item.checked === null)
    return (
      <li>
        <NestedBlocks blocks={item.nodes} />
      </li>
    );
  return (
    <li className="md-task">
      <span className="md-check" role="img" aria-label={item.checked ? "Done" : "To do"}>
        {item.checked ? "☑" : "☐"}
      </span>
      <div>
        <NestedBlocks blocks={item.nodes} />
      </div>
    </li>
  );
});

type TableBlock = Extract<Block, { readonly kind: "table" }>;

function Table({ block }: { readonly block: TableBlock }): ReactElement {
  const { align, head, nodes } = block;
  const box = useRef<HTMLDivElement>(null);
  const scrolls = useScrolls(box, block);
  return (
    <div
      className="md-table"
      ref={box}
      {...(scrolls ? { tabIndex: 0, role: "group", "aria-label": "Table" } : {})}
    >
      <table>
        <thead>
          <tr>
            {head.map((cell, at) => (
              <th scope="col" className={alignClass(align[at])} key={at}>
                {inlineNodes(cell)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <AlignContext value={align}>
            <Grouped nodes={nodes} render={renderRow} />
          </AlignContext>
        </tbody>
      </table>
    </div>
  );
}

const AlignContext = createContext<readonly Align[]>([]);

const renderRow = (row: Row, at: number): ReactElement => <RowView key={at} row={row} />;

const RowView = memo(function RowView({ row }: { readonly row: Row }): ReactElement {
  const align = useContext(AlignContext);
  return (
    <tr>
      {row.cells.map((cell, at) => (
        <td className={alignClass(align[at])} key={at}>
          {inlineNodes(cell)}
        </td>
      ))}
    </tr>
  );
});

function alignClass(align: Align | undefined): string | undefined {
  return align === "center" || align === "right" ? `md-${align}` : undefined;
}
