/** Owns: the form of one scripted block in the finished message, and the events that stream it. */
import { newId } from "./ids.ts";
import type { ContentBlock, Delta, JsonObject } from "./messages.ts";
import type { Step } from "./perform.ts";
import type { Pace, Piece, ScriptedBlock } from "./script.ts";
import { redact, signThinking } from "./signature.ts";

/** A block as the client finally has it, and the pieces that stream it. */
export type Finished = {
  readonly block: ContentBlock;
  readonly start: ContentBlock;
  readonly pieces: readonly Piece[];
  readonly toDelta: (piece: string) => Delta;
  readonly signature: string | null;
};

export function finish(scripted: ScriptedBlock): Finished {
  const whole = (block: ContentBlock): Finished => ({
    block,
    start: block,
    pieces: [],
    toDelta: (text) => ({ type: "text_delta", text }),
    signature: null,
  });
  switch (scripted.kind) {
    case "raw":
      return whole(scripted.block);
    case "redacted_thinking":
      return whole({ type: "redacted_thinking", data: redact(scripted.thinking) });
    case "text": {
      const start = { type: "text", text: "", citations: null };
      return {
        ...whole({ ...start, text: joined(scripted.pieces) }),
        start,
        pieces: scripted.pieces,
      };
    }
    case "thinking": {
      const thinking = joined(scripted.pieces);
      const signature = scripted.signature ?? signThinking(thinking);
      return {
        block: { type: "thinking", thinking, signature },
        start: { type: "thinking", thinking: "", signature: "" },
        pieces: scripted.pieces,
        toDelta: (piece) => ({ type: "thinking_delta", thinking: piece }),
        signature,
      };
    }
    case "tool_use": {
      const start = {
        type: "tool_use",
        id: scripted.id ?? newId("toolu"),
        name: scripted.name,
        input: {},
        caller: { type: "direct" },
      };
      return {
        block: { ...start, input: parsedInput(joined(scripted.pieces)) },
        start,
        // The first delta of a call is empty.
        pieces: ["", ...scripted.pieces],
        toDelta: (partial_json) => ({ type: "input_json_delta", partial_json }),
        signature: null,
      };
    }
  }
}

export function blockSteps(
  { start, pieces, toDelta, signature }: Finished,
  index: number,
  pace: Pace,
): Step[] {
  const delta = (delta: Delta): Step => ({
    kind: "event",
    event: { type: "content_block_delta", index, delta },
  });
  const steps: Step[] = [
    { kind: "event", event: { type: "content_block_start", index, content_block: start } },
  ];
  for (const piece of pieces) {
    if (typeof piece !== "string") {
      steps.push(piece);
      continue;
    }
    for (const part of split(piece, pace.characters)) {
      if (pace.delayMs > 0) steps.push({ kind: "pause", ms: pace.delayMs });
      steps.push(delta(toDelta(part)));
    }
  }
  if (signature !== null) steps.push(delta({ type: "signature_delta", signature }));
  steps.push({ kind: "event", event: { type: "content_block_stop", index } });
  return steps;
}

/** Parts of at most `size` characters, never through the middle of one; at least one part. */
function split(text: string, size: number): string[] {
  if (text.length <= size) return [text];
  const characters = Array.from(text);
  const parts: string[] = [];
  for (let i = 0; i < characters.length; i += size) parts.push(characters.slice(i, i + size).join(""));
  return parts;
}

const joined = (pieces: readonly Piece[]): string =>
  pieces.filter((piece) => typeof piece === "string").join("");

/**
 * The input of a call, as in a response that is not streamed: empty for malformed JSON, or for a value that cannot be
 * written again.
 */
function parsedInput(json: string): JsonObject {
  try {
    // A copy fails where the value is too deep for what comes after; JSON.stringify alone does not in all releases of Node.
    return structuredClone(JSON.parse(json) as JsonObject);
  } catch {
    return {};
  }
}
