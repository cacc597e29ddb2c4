/**
 * Owns: scrolling through a conversation: only the rows near the view are mounted, the end is followed as long as the
 * person is there, and what they read does not move while text streams or earlier messages come.
 */
import {
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type ReactElement,
  type ComponentProps,
  type ReactNode,
  type Ref,
} from "react";
import { Virtualizer } from "virtua";
import type { Conversation, LiveOutput, LoadedConversation } from "../client/index.ts";
import { liveRowsOf, Transcript, type Row } from "../client/transcript.ts";
import { RowView } from "./row-view.tsx";

/** Pixels from the end within which a person who comes down counts as being there. */
const AT_END = 48;
/** Pixels from the beginning at which earlier messages are asked for. */
const NEAR_BEGINNING = 1_200;

type Props = {
  readonly model: LoadedConversation;
  /** Resolves when the earlier messages are there. */
  readonly loadEarlier: () => Promise<void>;
  /** Above the first message. */
  readonly before: ReactNode;
  /** After the last row. */
  readonly after: ReactNode;
};

/**
 * The rows that are on the screen. When rows come before them, the list has to keep its place by its end; it must be told
 * so in the very drawing in which they come.
 */
class DrawnRows {
  #first: string | undefined;

  isPrependedBy(rows: readonly Row[]): boolean {
    return rows[0]?.key !== this.#first && rows.some(({ key }) => key === this.#first);
  }

  set(rows: readonly Row[]): void {
    this.#first = rows[0]?.key;
  }
}

type RowsProps = ComponentProps<Exclude<ComponentProps<typeof Virtualizer>["as"], string | undefined>>;

/**
 * What the rows are in. The list would let them take no clicks as long as it scrolls; but while text streams it scrolls
 * all the time, and a change of that would style each row anew.
 */
function Rows({ style: { pointerEvents: _, ...style }, children, ref }: RowsProps) {
  return (
    <div ref={ref as Ref<HTMLDivElement>} style={style}>
      {children}
    </div>
  );
}

/**
 * Makes the element of a row, and makes it once: the list draws its rows whenever it scrolls, and a row that is the same
 * element is not drawn.
 */
function rowElements(conversation: Conversation, output: LiveOutput | null): (row: Row) => ReactElement {
  const made = new WeakMap<Row, ReactElement>();
  return (row) => {
    const element = made.get(row) ?? (
      <div key={row.key} className="row">
        <RowView row={row} conversation={conversation} output={output} />
      </div>
    );
    made.set(row, element);
    return element;
  };
}

export function TranscriptView({ model, loadEarlier, before, after }: Props) {
  const { conversation, messages, answer, output, hasEarlier } = model;
  const [transcript] = useState(() => new Transcript());
  const stored = useMemo(() => transcript.rowsOf(messages), [transcript, messages]);
  const rows = useMemo(() => [...stored, ...liveRowsOf(answer)], [stored, answer]);

  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const above = useRef<HTMLDivElement>(null);
  /** Pixels of what is above the rows. */
  const [margin, setMargin] = useState(0);
  // It stays as high as it is when the last of them have come.
  const [isAboveKept] = useState(hasEarlier);
  const elementOf = useMemo(() => rowElements(conversation, output), [conversation, output]);
  const [isAtEnd, setAtEnd] = useState(true);
  const follows = useRef(true);
  const isLoading = useRef(false);
  const seen = useRef({ scrollTop: 0, scrollHeight: 0 });

  const [drawn] = useState(() => new DrawnRows());
  const isPrepended = drawn.isPrependedBy(rows);
  useLayoutEffect(() => drawn.set(rows), [drawn, rows]);

  const toEnd = useCallback(() => {
    const element = scroller.current;
    if (element !== null) element.scrollTop = element.scrollHeight;
  }, []);

  const followEnd = useCallback(() => {
    if (follows.current) toEnd();
  }, [toEnd]);

  const measureAbove = useCallback(() => {
    if (above.current !== null) setMargin(above.current.offsetTop + above.current.offsetHeight);
  }, []);

  useLayoutEffect(followEnd, [rows, after, followEnd]);
  useLayoutEffect(measureAbove, [before, hasEarlier, measureAbove]);
  // Heights change later, too: text is formatted, images come, groups open. The list says so of its rows, in the same
  // frame; this is for what is around it.
  useEffect(() => {
    const element = content.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      measureAbove();
      followEnd();
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [measureAbove, followEnd]);

  const onScroll = () => {
    const element = scroller.current;
    if (element === null) return;
    const { scrollTop, scrollHeight, clientHeight } = element;
    // Only a person scrolls up. The list itself moves the view when heights become known, and the content shrinks then.
    const wentUp = scrollTop < seen.current.scrollTop && scrollHeight >= seen.current.scrollHeight;
    seen.current = { scrollTop, scrollHeight };
    const toGo = scrollHeight - scrollTop - clientHeight;
    // However little it is: a person's first step up is small, and text that streams must not take them back.
    if (wentUp && toGo > 1) follows.current = false;
    else if (toGo < AT_END) follows.current = true;
    setAtEnd(follows.current);
    if (element.scrollTop < NEAR_BEGINNING && hasEarlier && !isLoading.current) {
      isLoading.current = true;
      void loadEarlier().finally(() => (isLoading.current = false));
    }
  };

  return (
    <div className="transcript">
      <div
        className="scroll"
        ref={scroller}
        onScroll={onScroll}
        // A wheel that turns up means reading, even if the text that streams would carry the view along.
        onWheel={({ deltaY }) => deltaY < 0 && (follows.current = false)}
        role="region"
        aria-label="Conversation"
        tabIndex={0}
      >
        <div className="col" ref={content}>
          <div className={isAboveKept ? "above kept" : "above"} ref={above}>
            {hasEarlier ? <p className="quiet">Earlier messages come as you scroll up.</p> : before}
          </div>
          <Virtualizer
            as={Rows}
            data={rows}
            scrollRef={scroller}
            startMargin={margin}
            shift={isPrepended}
            onResize={followEnd}
          >
            {elementOf}
          </Virtualizer>
          {after}
        </div>
      </div>
      {!isAtEnd && (
        <button
          className="to-end"
          onClick={() => {
            follows.current = true;
            toEnd();
          }}
        >
          ↓ To the end
        </button>
      )}
    </div>
  );
}
