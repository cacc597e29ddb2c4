/** Owns: any JSON value on the page, for example the input of a tool that the page does not know. */
import { memo, useMemo, useState, type ReactElement } from "react";
import type { Json } from "../../machine/message.ts";
import { showHidden } from "./hidden-characters.tsx";
import { jsonText } from "./json-text.ts";
import { partProps, wrappedLines } from "./lazy-layout.ts";
import { piecesOf } from "./pieces.ts";

const FIRST = { length: 4000, string: 600 };
const MORE = { length: 200_000, string: 100_000 };

export const JsonView = memo(function JsonView({ value }: { readonly value: Json }): ReactElement {
  const [limits, setLimits] = useState(FIRST);
  const { text, isCut } = useMemo(() => jsonText(value, limits), [value, limits]);
  const pieces = piecesOf(text);
  return (
    <div className="tx-json">
      <pre>
        {pieces.map((piece, at) => (
          <span {...partProps("tx-piece", pieces.length, () => wrappedLines(piece))} key={at}>
            {showHidden(piece)}
          </span>
        ))}
      </pre>
      {isCut && limits === FIRST && (
        <button type="button" className="tx-more" onClick={() => setLimits(MORE)}>
          Show more
        </button>
      )}
    </div>
  );
});
