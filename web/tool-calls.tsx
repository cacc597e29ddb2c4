/** Owns: a group of tool calls as a person sees it: one line that folds, and each call with its input and its result. */
import { memo, useState, type ReactNode } from "react";
import { decisionOf, labelOf, subjectOf, textIn } from "../client/call-words.ts";
import type { LiveOutput, State } from "../client/index.ts";
import type { Call, Row } from "../client/transcript.ts";
import { StoredImage } from "./images.tsx";
import { Diff } from "./text/diff.tsx";
import { counted, duration, shortPath } from "./text/format.ts";
import { JsonView } from "./text/json-view.tsx";
import { Output } from "./text/output.tsx";
import { elapsed, useNow } from "./use-models.ts";

type CallsRow = Extract<Row, { readonly kind: "calls" }>;

/** What a call does now, if it has no result yet. */
export type Running =
  | { readonly kind: "running"; readonly since: number; readonly isStopping: boolean }
  | { readonly kind: "asks" }
  | { readonly kind: "waits" };

function runningOf(call: Call, state: State): Running | null {
  if (call.outcome !== null) return null;
  if (state.kind === "tool_executing" && state.current.id === call.id)
    return { kind: "running", since: Date.parse(state.startedAt), isStopping: false };
  if (state.kind === "cancelling" && state.stopping === "tool" && state.current.id === call.id)
    return { kind: "running", since: Date.parse(state.since), isStopping: true };
  if (state.kind === "awaiting_mode_approval" && state.toolCall.id === call.id) return { kind: "asks" };
  return { kind: "waits" };
}

type GroupProps = {
  readonly conversationId: string;
  readonly cwd: string;
  readonly row: CallsRow;
  /** Only if one of the calls has no result: a state that does not matter must not draw the group again. */
  readonly state: State | null;
  readonly output: LiveOutput | null;
};

export const ToolGroup = memo(function ToolGroup({ conversationId, cwd, row, state, output }: GroupProps) {
  const { calls, group } = row;
  const running = calls.map((call) => (state === null ? null : runningOf(call, state)));
  const isRunning = running.some((one) => one?.kind === "running");
  const failures = calls.filter(({ outcome }) => outcome !== null && outcome.status !== "completed");
  const hasDiff = calls.some(({ diffs }) => diffs.length > 0);
  // The person's own choice wins. Without one, what runs, what failed and what changed files is open.
  const [chosen, setChosen] = useState<boolean | null>(null);
  const isOpen = chosen ?? (isRunning || failures.length > 0 || hasDiff);
  // The card of the approval says it.
  if (running.every((one) => one?.kind === "asks")) return null;
  return (
    <section className="group" aria-label={titleOf(row)}>
      <button className="summary" aria-expanded={isOpen} onClick={() => setChosen(!isOpen)}>
        <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span> <b>{titleOf(row)}</b>
        {/* Open, each call says it. */}
        <span className="names">{isOpen ? "" : namesOf(row, cwd)}</span>
        <span className="space" />
        <GroupStatus calls={calls} running={running} />
      </button>
      {isOpen &&
        calls.map((call, index) => (
          <CallView
            key={call.id}
            conversationId={conversationId}
            call={call}
            cwd={cwd}
            running={running[index] ?? null}
            output={output?.toolCallId === call.id ? output : null}
            isOnly={calls.length === 1 && group !== "other"}
          />
        ))}
    </section>
  );
});

function titleOf({ group, calls }: CallsRow): string {
  const isOver = calls.every(({ outcome }) => outcome !== null);
  switch (group) {
    case "read": {
      const isFiles = calls.every(({ name }) => name === "read");
      if (isFiles) return `${isOver ? "Read" : "Reads"} ${counted(calls.length, "file")}`;
      return calls[0] !== undefined && calls.length === 1
        ? labelOf(calls[0])
        : `${isOver ? "Looked" : "Looks"} at ${calls.length} places`;
    }
    case "write": {
      const isInVain = isOver && calls.every(({ outcome }) => outcome?.status !== "completed");
      return `${isInVain ? "Wanted to change" : isOver ? "Changed" : "Changes"} ${counted(calls.length, "file")}`;
    }
    case "bash":
      return `${isOver ? "Ran" : "Runs"} ${counted(calls.length, "command")}`;
    case "other":
      return calls[0] !== undefined && calls.length === 1 ? labelOf(calls[0]) : counted(calls.length, "call");
  }
}

const subject = (call: Call, cwd: string): string =>
  subjectOf(call, (path) => shortPath(path, { base: cwd }));

const namesOf = ({ calls }: CallsRow, cwd: string): string =>
  calls
    .map((call) => subject(call, cwd).split("\n")[0] ?? "")
    .filter((name) => name !== "")
    .join(", ");

function GroupStatus({
  calls,
  running,
}: {
  readonly calls: readonly Call[];
  readonly running: readonly (Running | null)[];
}) {
  const current = running.find((one) => one !== null && one.kind !== "waits") ?? null;
  if (current !== null) return <RunningStatus running={current} />;
  if (running.some((one) => one !== null)) return <span>waits</span>;
  const failed = calls.filter(({ outcome }) => outcome?.status !== "completed");
  const [first] = failed;
  const decision = calls[0] !== undefined && calls.length === 1 ? decisionOf(calls[0]) : null;
  if (decision !== null) return <span className={first === undefined ? "ok" : "bad"}>{decision}</span>;
  const ms = calls.reduce((sum, { outcome }) => sum + (outcome?.durationMs ?? 0), 0);
  return (
    <>
      {first === undefined ? (
        <span className="ok" aria-label="completed">
          ✓
        </span>
      ) : (
        <span className="bad">
          {calls.length === 1 ? first.outcome?.status : `${failed.length} not completed`}
        </span>
      )}
      {ms > 0 && <span>{duration(ms)}</span>}
    </>
  );
}

function RunningStatus({ running }: { readonly running: Running }) {
  const now = useNow(running.kind === "running");
  switch (running.kind) {
    case "running":
      return (
        <span className="run">
          {running.isStopping ? "stopping" : "running"} · {elapsed(now - running.since)}
        </span>
      );
    case "asks":
      return <span className="warn">waits for you</span>;
    case "waits":
      return <span>waits</span>;
  }
}

type CallProps = {
  readonly conversationId: string;
  readonly call: Call;
  readonly cwd: string;
  readonly running: Running | null;
  readonly output: LiveOutput | null;
  readonly isOnly: boolean;
};

const CallView = memo(function CallView({ conversationId, call, cwd, running, output, isOnly }: CallProps) {
  const { outcome, diffs } = call;
  const about = subject(call, cwd);
  const decision = decisionOf(call);
  // A change has its file in its head.
  const isChange = diffs.length > 0 && outcome?.status === "completed";
  return (
    <div className="call">
      {!isChange && <code className="subject">{about === "" ? call.name : about}</code>}
      {!isOnly && !isChange && (
        <span className="st">
          {outcome === null
            ? running !== null && <RunningStatus running={running} />
            : (decision ??
              `${outcome.status === "completed" ? "" : outcome.status} ${duration(outcome.durationMs)}`)}
        </span>
      )}
      {inputOf(call)}
      {diffs.map((diff) => (
        <Diff key={diff.path} diff={diff} base={cwd} />
      ))}
      {output?.parts.map((part, index) => (
        <Output key={index} text={part.text} stream={part.stream} />
      ))}
      {/* The result of a change is its diff. */}
      {!isChange &&
        outcome?.output.map((block, index) =>
          block.type === "text" ? (
            <Output key={index} text={block.text} />
          ) : (
            <StoredImage key={index} conversationId={conversationId} image={block} />
          ),
        )}
    </div>
  );
});

/** What the line above does not say of the input. */
function inputOf(call: Call): ReactNode {
  switch (call.name) {
    case "bash":
    case "ls":
    case "read":
    case "grep":
    case "find":
    case "keyword_search":
    case "request_mode_upgrade":
      return null;
    case "think":
      return <p className="thought">{textIn(call, "thought")}</p>;
    case "write":
    case "edit":
    case "patch":
      // Its diff says it. Without one it was not done, and the person wants to see what it would have been.
      return call.diffs.length > 0 ? null : <JsonView value={call.input} />;
    default:
      return <JsonView value={call.input} />;
  }
}
