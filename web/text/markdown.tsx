/**
 * Owns: a model's text on the page. It is there as plain text at once, and formatted when the worker has lexed it; if
 * the worker is missing, or takes too long, it stays plain.
 */
import { memo, startTransition, useLayoutEffect, useState, type ReactElement } from "react";
import { Blocks, HeadingLevel } from "./blocks.tsx";
import { finishedText, FormattedText, type Formatted } from "./formatted-text.ts";
import { Plain } from "./plain.tsx";

/**
 * @param props.streaming more text may follow: what is not finished is shown as it will probably be
 * @param props.headingLevel the level that the text's highest headings have in the page's outline
 */
export const Markdown = memo(function Markdown({
  text,
  streaming,
  headingLevel = 2,
}: {
  readonly text: string;
  readonly streaming: boolean;
  readonly headingLevel?: 2 | 3 | 4 | 5;
}): ReactElement {
  const formatted = useFormatted(text, streaming);
  return (
    <div className={formatted?.blocks ? "md" : "md md-unformatted"}>
      {formatted?.blocks ? (
        <HeadingLevel value={headingLevel}>
          <Blocks blocks={formatted.blocks} />
        </HeadingLevel>
      ) : (
        <Plain text={text} />
      )}
    </div>
  );
});

/** The last form of the text that is known; null: none is. */
function useFormatted(text: string, streaming: boolean): Formatted | null {
  const [formatted, setFormatted] = useState(() => (streaming ? null : finishedText(text)));
  const [source] = useState(() => new FormattedText());
  // Not after the paint: the worker lexes while the browser paints.
  useLayoutEffect(() => source.watch((now) => startTransition(() => setFormatted(now))), [source]);
  useLayoutEffect(() => source.set(text, streaming), [source, text, streaming]);
  // It may be of another text.
  return formatted !== null && text.startsWith(formatted.source) ? formatted : null;
}
