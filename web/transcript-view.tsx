/**
 * Owns: scrolling through a conversation: only the rows near the view are mounted, the end is followed as long as the
 * person is there, and what they read does not move while text streams or earlier messages come.
 */
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import type { LoadedConversation } from "../client/index.ts";
import { liveRowsOf, Transcript, type Row } from "../client/transcript.ts";
import { RowView } from "./row-view.tsx";

/** Pixels from the end within which the person counts as being there. */
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

export function TranscriptView({ model, loadEarlier, before, after }: Props) {
  const { conversation, messages, answer, output, hasEarlier } = model;
  const [transcript] = useState(() => new Transcript());
  const stored = useMemo(() => transcript.rowsOf(messages), [transcript, messages]);
  const rows = useMemo(() => [...stored, ...liveRowsOf(answer)], [stored, answer]);

  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const handle = useRef<VirtualizerHandle>(null);
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

  useLayoutEffect(() => {
    if (follows.current) toEnd();
  }, [rows, after, toEnd]);
  // Heights change later, too: text is formatted, images come, groups open.
  useEffect(() => {
    const element = content.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      if (follows.current) toEnd();
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [toEnd]);

  const onScroll = () => {
    const element = scroller.current;
    if (element === null) return;
    const { scrollTop, scrollHeight, clientHeight } = element;
    // Only a person scrolls up. The list itself moves the view when heights become known, and the content shrinks then.
    const wentUp = scrollTop < seen.current.scrollTop && scrollHeight >= seen.current.scrollHeight;
    seen.current = { scrollTop, scrollHeight };
    if (scrollHeight - scrollTop - clientHeight < AT_END) follows.current = true;
    else if (wentUp) follows.current = false;
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
          {hasEarlier ? <p className="quiet earlier">Earlier messages come as you scroll up.</p> : before}
          <Virtualizer ref={handle} scrollRef={scroller} shift={isPrepended}>
            {rows.map((row) => (
              <div key={row.key} className="row">
                <RowView row={row} conversation={conversation} output={output} />
              </div>
            ))}
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
