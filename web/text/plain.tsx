/** Owns: text as it was written: before it is formatted, and where it is not. */
import { memo, type ReactElement } from "react";
import { showHiddenInProse } from "./hidden-characters.tsx";
import { partProps, wrappedLines } from "./lazy-layout.ts";
import { piecesOf } from "./pieces.ts";

/** UTF-16 code units up to which paragraphs are set apart, as they will be when the text is formatted. */
const MAX_WITH_PARAGRAPHS = 20_000;

export const Plain = memo(function Plain({ text }: { readonly text: string }): ReactElement {
  if (text.length > MAX_WITH_PARAGRAPHS) return <PlainPieces pieces={piecesOf(text)} />;
  const paragraphs = text.split(/\n(?:[ \t]*\n)+/).filter((paragraph) => paragraph !== "");
  return (
    <>
      {paragraphs.map((paragraph, at) => (
        <p className="md-plain" key={at}>
          {showHiddenInProse(paragraph)}
        </p>
      ))}
    </>
  );
});

/** @param props.pieces of one text (pieces.ts) */
export const PlainPieces = ({ pieces }: { readonly pieces: readonly string[] }): ReactElement => (
  <div className="md-plain">
    {pieces.map((piece, at) => (
      <PlainPiece text={piece} count={pieces.length} key={at} />
    ))}
  </div>
);

type PieceProps = { readonly text: string; readonly count: number };

const PlainPiece = memo(function PlainPiece({ text, count }: PieceProps): ReactElement {
  return <span {...partProps("tx-piece", count, () => wrappedLines(text))}>{showHiddenInProse(text)}</span>;
});
