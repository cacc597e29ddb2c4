/** Owns: where the time of a turn went: one sentence, the parts, and the spans as a table with a bar in each row. */
import { useEffect, useState } from "react";
import { PART_NAMES, readTrace, type Trace, type TraceSpan } from "../client/index.ts";
import { useSession } from "./session.tsx";
import { duration } from "./text/format.ts";

/** Milliseconds between two looks at a turn that goes on, or whose last spans are on their way. */
const AGAIN_MS = 2_000;

type Props = { readonly conversationId: string; readonly cycleId: string };

/** A button of a turn, and what it opens. */
export function TurnTrace(turn: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div className="trace" data-open={isOpen}>
      <button className="quiet-button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span> Where the time went
      </button>
      {isOpen && <OpenTrace key={turn.cycleId} {...turn} />}
    </div>
  );
}

function OpenTrace({ conversationId, cycleId }: Props) {
  const { call } = useSession();
  const [trace, setTrace] = useState<Trace | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    let timer: number | undefined;
    let isGone = false;
    const look = async (wasOver: boolean): Promise<void> => {
      try {
        const found = await readTrace({ call }, conversationId, cycleId);
        if (isGone) return;
        setTrace(found);
        setFailure(null);
        const isOver = found.endedAt !== null;
        if (!isOver || !wasOver) timer = window.setTimeout(() => void look(isOver), AGAIN_MS);
      } catch (error) {
        if (!isGone) setFailure(error instanceof Error ? error.message : String(error));
      }
    };
    void look(false);
    return () => {
      isGone = true;
      window.clearTimeout(timer);
    };
  }, [call, conversationId, cycleId]);

  if (failure !== null) return <p role="alert">{failure}</p>;
  if (trace === null) return <p className="quiet">Reading …</p>;
  return (
    <>
      <p role="status">{trace.summary}</p>
      <p className="quiet">
        {trace.parts.map(({ part, durationMs }) => `${PART_NAMES[part]} ${duration(durationMs)}`).join(" · ")}
      </p>
      <div className="wide" tabIndex={0} role="region" aria-label="Spans of the turn">
        <table>
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col">Part</th>
              <th scope="col">Begins after</th>
              <th scope="col">Takes</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {trace.spans.map((span) => (
              <SpanRow key={span.id} span={span} whole={trace.durationMs} />
            ))}
          </tbody>
        </table>
      </div>
      {trace.omitted > 0 && <p className="quiet">{trace.omitted} short ones are not shown.</p>}
    </>
  );
}

function SpanRow({ span, whole }: { readonly span: TraceSpan; readonly whole: number }) {
  const { name, part, detail, startMs, durationMs, parentId } = span;
  const share = (milliseconds: number): string => `${whole === 0 ? 0 : (milliseconds / whole) * 100}%`;
  return (
    <tr data-within={parentId !== null}>
      <th scope="row">
        {name}
        {detail !== null && <small> {detail}</small>}
      </th>
      <td>{part === null ? "" : PART_NAMES[part]}</td>
      <td>{duration(startMs)}</td>
      <td>{duration(durationMs)}</td>
      <td className="bar" aria-hidden="true">
        <div data-part={part ?? "divided"} style={{ marginLeft: share(startMs), width: share(durationMs) }} />
      </td>
    </tr>
  );
}
