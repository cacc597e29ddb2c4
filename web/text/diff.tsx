/** Owns: how a change of a file looks on the page. Not here: what its rows are (diff-rows.ts). */
import { memo, useMemo, useState, type ReactElement } from "react";
import type { FileDiff } from "../../machine/message.ts";
import { hunksOf, type DiffHunk, type DiffRow } from "./diff-rows.ts";
import { counted, shortPath } from "./format.ts";
import { showHidden } from "./hidden-characters.tsx";
import { PlainPieces } from "./plain.tsx";
import { piecesOf } from "./pieces.ts";

/** A diff of so many rows is shown whole. Of a longer one, the first rows are; and with each further step, more. */
const UNFOLDED_ROWS = 60;
const FIRST_ROWS = 40;
const MORE_ROWS = 500;

/** @param props.base the conversation's directory; files in it are named relative to it */
export const Diff = memo(function Diff({
  diff,
  base,
}: {
  readonly diff: FileDiff;
  readonly base?: string;
}): ReactElement {
  const { path, change, addedLines, removedLines, truncated } = diff;
  const hunks = useMemo(() => hunksOf(diff.diff), [diff.diff]);
  const name = shortPath(path, base === undefined ? {} : { base });
  return (
    <section className="df" aria-label={`Change of ${name}`}>
      <header className="df-head">
        <code title={path}>{showHidden(name)}</code>
        <span className="df-change">{change === "created" ? "new file" : "changed"}</span>
        {addedLines > 0 && (
          <span
            className="df-count-added"
            role="img"
            aria-label={counted(addedLines, "line added", "lines added")}
          >
            +{addedLines.toLocaleString("en-US")}
          </span>
        )}
        {removedLines > 0 && (
          <span
            className="df-count-removed"
            role="img"
            aria-label={counted(removedLines, "line removed", "lines removed")}
          >
            −{removedLines.toLocaleString("en-US")}
          </span>
        )}
      </header>
      {hunks === null ? (
        <PlainPieces pieces={piecesOf(diff.diff)} />
      ) : hunks.length === 0 ? (
        <p className="df-note">{whyEmpty(diff)}</p>
      ) : (
        <Rows hunks={hunks} name={name} />
      )}
      {hunks !== null && hunks.length > 0 && truncated && (
        <p className="df-note">The change is longer. Only its beginning was kept.</p>
      )}
    </section>
  );
});

function whyEmpty({ change, truncated }: FileDiff): string {
  if (truncated) return "The lines are not shown: the file is binary, too large, or protected.";
  return change === "created" ? "The new file is empty." : "No line changed.";
}

function Rows({ hunks, name }: { readonly hunks: readonly DiffHunk[]; readonly name: string }): ReactElement {
  const count = hunks.reduce((sum, { rows }) => sum + rows.length, 0);
  const [shown, setShown] = useState(count > UNFOLDED_ROWS ? FIRST_ROWS : count);
  const hidden = count - shown;
  return (
    <>
      <table className="df-rows" aria-label={`Lines of ${name}`}>
        <thead className="tx-unseen">
          <tr>
            <th scope="col">Old line</th>
            <th scope="col">New line</th>
            <th scope="col">Change</th>
            <th scope="col">Text</th>
          </tr>
        </thead>
        {firstRows(hunks, shown).map(({ header, rows }) => (
          <tbody key={header}>
            <tr className="df-hunk">
              <th scope="rowgroup" colSpan={4}>
                {header}
              </th>
            </tr>
            {rows.map((row) => (
              <RowView row={row} key={`${row.oldLine ?? ""}:${row.newLine ?? ""}`} />
            ))}
          </tbody>
        ))}
      </table>
      {hidden > 0 && (
        <button
          type="button"
          className="tx-more"
          onClick={() => setShown(Math.min(count, shown + MORE_ROWS))}
        >
          Show {counted(Math.min(hidden, MORE_ROWS), "more line")}
          {hidden > MORE_ROWS ? ` of ${hidden.toLocaleString("en-US")}` : ""}
        </button>
      )}
    </>
  );
}

function firstRows(hunks: readonly DiffHunk[], count: number): readonly DiffHunk[] {
  let left = count;
  return hunks.flatMap(({ header, rows }) => {
    if (left <= 0) return [];
    const kept = rows.slice(0, left);
    left -= kept.length;
    return [{ header, rows: kept }];
  });
}

const SIGNS = { context: " ", added: "+", removed: "−" } as const;
const SPOKEN = { context: "", added: "added", removed: "removed" } as const;

const RowView = memo(function RowView({ row }: { readonly row: DiffRow }): ReactElement {
  return (
    <tr className={`df-${row.kind}`}>
      <td className="df-number">{row.oldLine}</td>
      <td className="df-number">{row.newLine}</td>
      <td className="df-sign">
        <span aria-hidden="true">{SIGNS[row.kind]}</span>
        <span className="tx-unseen">{SPOKEN[row.kind]}</span>
      </td>
      <td className="df-text">
        {showHidden(row.text)}
        {row.endsFile && <span className="df-end"> No newline at the end of the file</span>}
      </td>
    </tr>
  );
});
