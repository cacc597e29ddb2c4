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
  const { formatted, plain } = useFormatted(text, streaming);
  return (
    <div className={formatted?.blocks ? "md" : "md md-unformatted"}>
      {formatted?.blocks ? (
        <HeadingLevel value={headingLevel}>
          <Blocks blocks={formatted.blocks} />
        </HeadingLevel>
      ) : (
        <Plain text={plain} />
      )}
    </div>
  );
});

type Known = {
  /** The last form that is known; null: none is. */
  readonly formatted: Formatted | null;
  /** What is shown where there is no form. */
  readonly plain: string;
};

function useFormatted(text: string, streaming: boolean): Known {
  const [formatted, setFormatted] = useState(() => (streaming ? null : finishedText(text)));
  // The text of the first form. Drawing it takes a while, and more plain text meanwhile would then go again.
  const [first, setFirst] = useState<string | null>(null);
  const [source] = useState(() => new FormattedText());
  // Not after the paint: the worker lexes while the browser paints.
  useLayoutEffect(
    () =>
      source.watch((now) => {
        setFirst((known) => known ?? now.source);
        startTransition(() => setFormatted(now));
      }),
    [source],
  );
  useLayoutEffect(() => source.set(text, streaming), [source, text, streaming]);
  // It may be of another text.
  if (formatted !== null && text.startsWith(formatted.source)) return { formatted, plain: text };
  return { formatted: null, plain: first !== null && text.startsWith(first) ? first : text };
}
