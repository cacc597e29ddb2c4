/**
 * Owns: where the time of a turn went. The stored states of the conversation divide a turn into phases, without a gap.
 * The spans that processes recorded divide phases further. So each moment of a turn counts once, and the parts add up to
 * the whole, also where spans were lost.
 * Not here: reading states and spans (db/turns.ts); recording spans (spans.ts).
 */
import { isWorking, type State } from "../machine/conversation.ts";
import type { RunStopReason } from "../machine/message.ts";
import type { SpanRecord } from "./spans.ts";
import { traceIdOf } from "./trace-id.ts";
import { sentenceOf } from "./turn-sentence.ts";

/** What a moment of a turn was spent on. */
export const PARTS = [
  "queue",
  "worker",
  "model",
  "retries",
  "tools",
  "sub_agents",
  "approvals",
  "database",
  "stopping",
  "unaccounted",
] as const;
export type Part = (typeof PARTS)[number];

/** A stored state of a turn, as far as a turn's time depends on it. Times are milliseconds since the epoch. */
export type TurnState = {
  readonly at: number;
  readonly kind: State["kind"];
  /** The request or call that it waits for, by generation id. */
  readonly operationId: string | null;
  /** Of a tool; of the error before a retry; what a Stop ends. */
  readonly name: string | null;
  /** It waits until a failed request may be made again. */
  readonly isRetry: boolean;
  /** Sub-agents of the call. */
  readonly tasks: number;
};

/** What is stored of a turn. */
export type TurnRecord = {
  readonly conversationId: string;
  readonly cycleId: string;
  /** When the conversation took the message up. */
  readonly takenUpAt: number;
  /** When the message was accepted, if it waited behind earlier work; else null. */
  readonly queuedAt: number | null;
  /** Ascending; the first that is not a working one ends the turn. */
  readonly states: readonly TurnState[];
  readonly stoppedAt: number | null;
  readonly reason: RunStopReason | null;
  readonly spans: readonly SpanRecord[];
  /** The operation that a worker has begun and not ended; null: none. */
  readonly begunOperationId: string | null;
};

/** A line of the waterfall; milliseconds from the beginning of the turn. */
type TurnSpan = {
  readonly id: string;
  /** null: of the turn itself. */
  readonly parentId: string | null;
  readonly name: string;
  /** null: it is divided into other spans. */
  readonly part: Part | null;
  readonly startMs: number;
  readonly durationMs: number;
  /** More, in words. */
  readonly detail: string | null;
};

export type TurnTrace = {
  readonly cycleId: string;
  readonly traceId: string;
  /** RFC 3339 UTC. */
  readonly startedAt: string;
  /** null: it goes on. */
  readonly endedAt: string | null;
  readonly durationMs: number;
  readonly reason: RunStopReason | null;
  /** One sentence: the largest part, and what there is to say of it. */
  readonly summary: string;
  /** The largest first; only those that took time. */
  readonly parts: readonly { readonly part: Part; readonly durationMs: number; readonly share: number }[];
  /** In the order of their time; of a long turn the longest. */
  readonly spans: readonly TurnSpan[];
  /** Spans of the turn itself that are left out, with their children. */
  readonly omitted: number;
};

/** Spans of the turn itself that are shown, each with its children. */
const SHOWN = 200;

/** A stretch of the turn, with its pieces, which lie one after the other and fill it. */
export type Phase = {
  readonly name: string;
  readonly kind:
    | "queue"
    | "message"
    | "request"
    | "summary"
    | "retry"
    | "tool"
    | "approval"
    | "sub_agents"
    | "stopping"
    | "end";
  readonly detail: string | null;
  readonly start: number;
  readonly end: number;
  /** Sub-agents. */
  readonly tasks: number;
  readonly pieces: readonly Piece[];
};
type Piece = {
  readonly name: string;
  readonly part: Part;
  readonly start: number;
  readonly end: number;
};

/** @param now the end of a turn that goes on, in milliseconds since the epoch */
export function traceOf(turn: TurnRecord, now: number): TurnTrace {
  const phases = phasesOf(turn, now);
  const start = phases[0]?.start ?? turn.takenUpAt;
  const end = phases.at(-1)?.end ?? turn.takenUpAt;
  const durationMs = end - start;
  const parts = partsOf(phases);
  const isOpen = turn.stoppedAt === null;
  const byLength = [...phases].sort((a, b) => b.end - b.start - (a.end - a.start));
  const shown = new Set(byLength.slice(0, SHOWN));
  return {
    cycleId: turn.cycleId,
    traceId: traceIdOf(turn),
    startedAt: new Date(start).toISOString(),
    endedAt: isOpen ? null : new Date(end).toISOString(),
    durationMs: rounded(durationMs),
    reason: turn.reason,
    summary: sentenceOf({ phases, parts, durationMs, isOpen }),
    parts: parts.map(({ part, milliseconds }) => ({
      part,
      durationMs: rounded(milliseconds),
      share: durationMs === 0 ? 0 : Math.round((milliseconds / durationMs) * 1_000) / 1_000,
    })),
    spans: phases.flatMap((phase, index) => (shown.has(phase) ? linesOf(phase, index, start) : [])),
    omitted: phases.length - shown.size,
  };
}

export type PartTime = { readonly part: Part; readonly milliseconds: number };

/** The largest first; only those that took time. */
export function partsOf(phases: readonly Phase[]): readonly PartTime[] {
  const sums = new Map<Part, number>();
  for (const { part, start, end } of phases.flatMap(({ pieces }) => pieces))
    sums.set(part, (sums.get(part) ?? 0) + end - start);
  return PARTS.map((part) => ({ part, milliseconds: sums.get(part) ?? 0 }))
    .filter(({ milliseconds }) => milliseconds > 0)
    .sort((a, b) => b.milliseconds - a.milliseconds);
}

/** The phases of a turn one after the other, from the message to the end. */
export function phasesOf(turn: TurnRecord, now: number): readonly Phase[] {
  const phases: Phase[] = [...beforeTaken(turn)];
  const last = turn.stoppedAt ?? Math.max(now, turn.states.at(-1)?.at ?? 0);
  const runs = mergedStates(turn.states);
  for (const [index, state] of runs.entries()) {
    if (!isWorking({ kind: state.kind } as State)) break;
    const end = Math.min(Math.max(runs[index + 1]?.at ?? last, state.at), Math.max(last, state.at));
    phases.push(phaseOf(turn, state, end, index + 1 === runs.length && turn.stoppedAt === null));
  }
  const stored = storedAt(turn);
  if (turn.stoppedAt !== null && stored > turn.stoppedAt) {
    const piece = { name: "commit", part: "database", start: turn.stoppedAt, end: stored } as const;
    phases.push({ ...piece, name: "end of the turn", kind: "end", detail: null, tasks: 0, pieces: [piece] });
  }
  return phases;
}

/** From the moment at which somebody asked. */
function* beforeTaken({ spans, cycleId, takenUpAt, queuedAt }: TurnRecord): Generator<Phase> {
  const asked = spans.filter(({ name, operationId }) => name === "message" && operationId === cycleId);
  const accepted = queuedAt ?? takenUpAt;
  const start = Math.min(accepted, ...asked.map(({ startedAt }) => startedAt));
  if (start < accepted) {
    const piece = { name: "wait for a worker", part: "worker", start, end: accepted } as const;
    yield { ...piece, name: "message", kind: "message", detail: null, tasks: 0, pieces: [piece] };
  }
  if (queuedAt !== null && queuedAt < takenUpAt) {
    const piece = { name: "wait in the queue", part: "queue", start: queuedAt, end: takenUpAt } as const;
    yield {
      ...piece,
      name: "queue",
      kind: "queue",
      detail: "behind earlier work",
      tasks: 0,
      pieces: [piece],
    };
  }
}

/** States that follow from one another within one phase, as when one sub-agent of several has ended. */
function mergedStates(states: readonly TurnState[]): readonly TurnState[] {
  return states.filter(({ kind, operationId, isRetry }, index) => {
    const before = states[index - 1];
    return before?.kind !== kind || before.operationId !== operationId || before.isRetry !== isRetry;
  });
}

function phaseOf(turn: TurnRecord, state: TurnState, end: number, isLast: boolean): Phase {
  const { at: start, name, tasks } = state;
  const whole = (piece: string, part: Part): readonly Piece[] => [{ name: piece, part, start, end }];
  const operation = (part: Part, names: OperationNames): readonly Piece[] =>
    operationPieces(turn, state, { part, names, end, isLast });
  const phase = { start, end, tasks, detail: null };
  switch (state.kind) {
    case "llm_requesting":
    case "awaiting_continuation": {
      const kind = state.kind === "llm_requesting" ? "request" : "summary";
      if (state.isRetry)
        return {
          ...{ ...phase, name: "wait before a retry", kind: "retry", detail: name },
          pieces: whole("wait before a retry", "retries"),
        };
      const span = spanOf(turn, state);
      return {
        ...{ ...phase, name: kind === "request" ? "request" : "request for a summary", kind },
        detail: span === null ? null : requestDetail(span),
        pieces: operation("model", { whole: "answer", sent: "first token", rest: "rest of the answer" }),
      };
    }
    case "tool_executing":
      return {
        ...{ ...phase, name: name ?? "tool", kind: "tool", detail: toolDetail(spanOf(turn, state)) },
        pieces: operation("tools", { whole: "run", sent: "run", rest: "run" }),
      };
    case "awaiting_mode_approval":
      return {
        ...{ ...phase, name: "approval", kind: "approval", detail: "a person is asked" },
        pieces: whole("wait for a person", "approvals"),
      };
    case "awaiting_sub_agents":
      return {
        ...{ ...phase, name: "sub-agents", kind: "sub_agents", detail: `${tasks} in all` },
        pieces: whole("work of sub-agents", "sub_agents"),
      };
    case "cancelling":
      return {
        ...{ ...phase, name: "stop", kind: "stopping", detail: name },
        pieces: whole("until all has ended", "stopping"),
      };
    case "awaiting_llm":
    case "idle":
    case "error":
    case "context_exhausted":
    case "completed":
    case "failed":
      return { ...phase, name: state.kind, kind: "end", pieces: whole(state.kind, "unaccounted") };
  }
}

type OperationNames = { readonly whole: string; readonly sent: string; readonly rest: string };
type OperationPieces = {
  readonly part: Part;
  readonly names: OperationNames;
  readonly end: number;
  readonly isLast: boolean;
};

/** What an activity did, by the marks that it left; without them, all of the phase is the operation's. */
function operationPieces(
  turn: TurnRecord,
  state: TurnState,
  { part, names, end, isLast }: OperationPieces,
): readonly Piece[] {
  const start = state.at;
  const span = spanOf(turn, state);
  if (span === null) {
    const isWaiting = isLast && turn.begunOperationId !== state.operationId;
    return isWaiting
      ? [{ name: "wait for a worker", part: "worker", start, end }]
      : [{ name: names.whole, part, start, end }];
  }
  const at = (mark: string): number | null => span.marks.find(({ name }) => name === mark)?.at ?? null;
  const [committed, sent, firstToken] = [at("committed"), at("sent"), at("first_token")];
  const cuts: readonly (readonly [number, string, Part])[] = [
    [span.startedAt, "wait for a worker", "worker"],
    [committed ?? span.startedAt, "commit", "database"],
    ...(sent === null ? [] : ([[sent, "read the messages", "database"]] as const)),
    ...(firstToken === null ? [] : ([[firstToken, names.sent, part]] as const)),
    [span.endedAt, firstToken === null ? names.whole : names.rest, part],
    [end, "hand-over", "unaccounted"],
  ];
  const pieces: Piece[] = [];
  let from = start;
  for (const [cut, name, of] of cuts) {
    // The clocks of hosts differ a little: no piece ends before it begins, or after its phase.
    const to = Math.min(Math.max(cut, from), end);
    if (to > from) pieces.push({ name, part: of, start: from, end: to });
    from = to;
  }
  return pieces;
}

/** The run that performed the operation; of several the last. null: none is recorded. */
function spanOf({ spans }: TurnRecord, { operationId }: TurnState): SpanRecord | null {
  const runs = spans.filter(
    (span) => operationId !== null && span.operationId === operationId && span.name !== "message",
  );
  const done = runs.filter(({ attributes }) => !NOT_PERFORMED.has(String(attributes["bedrock.outcome"])));
  return done.at(-1) ?? null;
}

const NOT_PERFORMED: ReadonlySet<string> = new Set(["superseded", "not_started"]);

/** When people could see that the turn has ended. */
function storedAt({ spans, stoppedAt, cycleId }: TurnRecord): number {
  if (stoppedAt === null) return 0;
  const commits = spans.filter(
    (span) =>
      span.name === "commit" && span.cycleId === cycleId && span.attributes["bedrock.ends_turn"] === true,
  );
  return Math.max(stoppedAt, ...commits.map(({ endedAt }) => endedAt));
}

function requestDetail({ attributes }: SpanRecord): string {
  const model = attributes["gen_ai.request.model"];
  const output = attributes["gen_ai.usage.output_tokens"];
  const outcome = attributes["bedrock.outcome"];
  return [
    ...(typeof model === "string" ? [model] : []),
    ...(typeof output === "number" ? [`${output} tokens`] : []),
    ...(outcome === undefined || outcome === "response" ? [] : [String(outcome)]),
  ].join(", ");
}

const toolDetail = (span: SpanRecord | null): string | null => {
  const outcome = span?.attributes["bedrock.outcome"];
  return outcome === undefined ? null : String(outcome);
};

function linesOf({ name, detail, pieces, start, end }: Phase, index: number, zero: number): TurnSpan[] {
  const id = String(index + 1);
  const [only, ...others] = pieces;
  const isWhole = only !== undefined && others.length === 0;
  const at = (from: number, to: number) => ({
    startMs: rounded(from - zero),
    durationMs: rounded(to - from),
  });
  return [
    { id, parentId: null, name, part: isWhole ? only.part : null, ...at(start, end), detail },
    ...(isWhole ? [] : pieces).map((piece, n) => ({
      ...{ id: `${id}.${n + 1}`, parentId: id, name: piece.name, part: piece.part },
      ...at(piece.start, piece.end),
      detail: null,
    })),
  ];
}

const rounded = (milliseconds: number): number => Math.round(milliseconds);
