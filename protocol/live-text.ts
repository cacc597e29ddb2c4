/**
 * Owns: the text that comes in while a request or a command runs (docs/http.md, "Live text"). Pieces say where they
 * belong, so that one that comes twice adds nothing. A pure value.
 */
import { runningIn, type State } from "../machine/conversation.ts";
import { KEPT_LIVE_CHARS } from "./formats.ts";

/** One block of an answer that is being written. */
export type LiveBlock = {
  readonly kind: "text" | "thinking";
  /** Its place in the answer. */
  readonly index: number;
  readonly text: string;
  /** Where the text ends in the whole block, in UTF-16 code units. */
  readonly end: number;
  /** Some of it was not sent, because there was too much: the stored message will have all. */
  readonly hasGap: boolean;
};

export type LiveAnswer = {
  readonly requestId: string;
  /** By their index, ascending. */
  readonly blocks: readonly LiveBlock[];
};

type OutputStream = "stdout" | "stderr";

export type LiveOutput = {
  readonly toolCallId: string;
  /** In the order in which they came in; neighbours are of different streams. */
  readonly parts: readonly { readonly stream: OutputStream; readonly text: string }[];
  readonly ends: { readonly [stream in OutputStream]: number };
  readonly hasGap: boolean;
};

type Piece = { readonly offset: number; readonly text: string };

/** @returns the same value if the piece has nothing new. */
export function addToAnswer(
  answer: LiveAnswer | null,
  kind: LiveBlock["kind"],
  piece: Piece & { readonly requestId: string; readonly index: number },
): LiveAnswer {
  const { requestId, index } = piece;
  const blocks = answer?.requestId === requestId ? answer.blocks : [];
  const place = blocks.findIndex((block) => block.index >= index);
  const found = place === -1 ? undefined : blocks[place];
  const old = found?.index === index ? found : { kind, index, text: "", end: 0, hasGap: false };
  const part = newPart(old.end, piece);
  if (part === null && answer?.requestId === requestId) return answer;
  const block = {
    ...old,
    text: old.text + (part?.text ?? ""),
    end: part?.end ?? old.end,
    hasGap: old.hasGap || part?.leavesGap === true,
  };
  const at = place === -1 ? blocks.length : place;
  return { requestId, blocks: blocks.toSpliced(at, found?.index === index ? 1 : 0, block) };
}

/**
 * What is left of an answer in a state. It is dropped when it is asked for again, and when its request was stopped or has
 * failed: nothing of it is stored. In the other states its message is on the way.
 */
export function answerIn(state: State, answer: LiveAnswer | null): LiveAnswer | null {
  switch (state.kind) {
    case "llm_requesting":
    case "awaiting_continuation":
      return runningIn(state) === answer?.requestId ? answer : null;
    case "awaiting_llm":
    case "tool_executing":
    case "awaiting_mode_approval":
    case "awaiting_sub_agents":
      return answer;
    // Its request is stopped. The server tells nothing of it to those who come now, either.
    case "cancelling":
    case "idle":
    case "error":
    case "context_exhausted":
    case "completed":
    case "failed":
      return null;
  }
}

/** @returns the same value if the piece has nothing new. */
export function addToOutput(
  output: LiveOutput | null,
  piece: Piece & { readonly toolCallId: string; readonly stream: OutputStream },
): LiveOutput {
  const { toolCallId, stream } = piece;
  const old =
    output?.toolCallId === toolCallId
      ? output
      : { toolCallId, parts: [], ends: { stdout: 0, stderr: 0 }, hasGap: false };
  const part = newPart(old.ends[stream], piece);
  if (part === null) return old;
  const last = old.parts.at(-1);
  const parts =
    last?.stream === stream
      ? old.parts.with(-1, { stream, text: last.text + part.text })
      : [...old.parts, { stream, text: part.text }];
  return {
    toolCallId,
    parts: lastOf(parts),
    ends: { ...old.ends, [stream]: part.end },
    hasGap: old.hasGap || part.leavesGap,
  };
}

/** What of a piece is beyond what is there; null: nothing. */
function newPart(end: number, { offset, text }: Piece) {
  const known = Math.max(0, end - offset);
  if (known >= text.length) return null;
  return { text: text.slice(known), end: offset + text.length, leavesGap: offset > end };
}

function lastOf(parts: LiveOutput["parts"]): LiveOutput["parts"] {
  let size = parts.reduce((sum, { text }) => sum + text.length, 0);
  // Cut seldom, by a half: cutting at every piece would copy all of it each time.
  if (size <= 1.5 * KEPT_LIVE_CHARS) return parts;
  const kept = [...parts];
  while (size > KEPT_LIVE_CHARS) {
    const [first] = kept;
    if (first === undefined) break;
    const surplus = size - KEPT_LIVE_CHARS;
    if (first.text.length <= surplus) kept.shift();
    else kept[0] = { ...first, text: first.text.slice(surplus) };
    size -= Math.min(first.text.length, surplus);
  }
  return kept;
}
