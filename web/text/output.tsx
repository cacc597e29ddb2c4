/** Owns: what a tool printed, as it grows: the last lines first, more of them on demand. */
import { memo, useLayoutEffect, useRef, useState, type ReactElement } from "react";
import { counted } from "./format.ts";
import { Grouped, GROUP } from "./grouped.tsx";
import { showHidden } from "./hidden-characters.tsx";
import { EMPTY_TERMINAL, readTerminal, type Line } from "./terminal.ts";
import { useScrolls } from "./use-scrolls.ts";

/** Lines that are shown at first, and with each further step; long and colourful ones count more than once. */
const FIRST_LINES = 200;
const MORE_LINES = 1000;
const LINE_LENGTH = 200;
const LINE_SPANS = 4;

/** @param props.stream where it was printed; named for those who do not see the colour */
export const Output = memo(function Output({
  text,
  stream,
}: {
  readonly text: string;
  readonly stream?: "stdout" | "stderr";
}): ReactElement {
  const lines = useLines(text);
  const [wanted, setWanted] = useState(FIRST_LINES);
  const box = useRef<HTMLDivElement>(null);
  const scrolls = useScrolls(box, lines);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const { current } = box;
    if (current !== null && isAtEnd.current) current.scrollTop = current.scrollHeight;
  }, [lines]);
  // Whole groups only: those that are shown stay as they are when lines are added.
  const from = Math.floor(firstOf(lines, wanted) / GROUP) * GROUP;
  return (
    <div
      className={stream === "stderr" ? "tx-output tx-error-output" : "tx-output"}
      ref={box}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < 4;
      }}
      {...(scrolls
        ? { tabIndex: 0, role: "group", "aria-label": stream === "stderr" ? "Error output" : "Output" }
        : {})}
    >
      {from > 0 && (
        <button type="button" className="tx-more" onClick={() => setWanted(wanted + MORE_LINES)}>
          Show more of the {counted(from, "line")} before
        </button>
      )}
      <div className="tx-lines">
        <Grouped nodes={lines} from={from} box={groupProps} render={renderLine} />
      </div>
    </div>
  );
});

/** Reads what was added, and no more. */
function useLines(text: string): readonly Line[] {
  const [terminal, setTerminal] = useState(EMPTY_TERMINAL);
  if (terminal.source === text) return terminal.lines;
  const next = readTerminal(terminal, text);
  setTerminal(next);
  return next.lines;
}

/** The first of the last lines that together count as many as are wanted. */
function firstOf(lines: readonly Line[], wanted: number): number {
  let left = wanted;
  let from = lines.length;
  while (from > 0 && left > 0) {
    from--;
    const spans = lines[from]?.spans ?? [];
    const length = spans.reduce((sum, { text }) => sum + text.length, 0);
    left -= Math.max(1, length / LINE_LENGTH, spans.length / LINE_SPANS);
  }
  return from;
}

const groupProps = () => ({ className: "tx-piece" });

const renderLine = (line: Line, at: number): ReactElement => <LineView key={at} line={line} />;

const LineView = memo(function LineView({ line }: { readonly line: Line }): ReactElement {
  return (
    <>
      {line.spans.map(({ text, className }, at) =>
        className === "" ? (
          showHidden(text)
        ) : (
          <span className={className} key={at}>
            {showHidden(text)}
          </span>
        ),
      )}
      {line.end === "newline" ? "\n" : ""}
    </>
  );
});
