/**
 * Owns: one run of a conversation as its event stream tells it, for the AI SDK's stream: the messages from the person's
 * on, and the answer that is being written. A pure value.
 */
import { runningIn, type State } from "../../machine/conversation.ts";
import type { Message } from "../../machine/message.ts";

type AnswerBlock = {
  readonly kind: "text" | "thinking";
  /** Its place in the answer. */
  readonly index: number;
  readonly text: string;
  /** A piece did not arrive: the stored message has the whole text. */
  readonly hasGap: boolean;
};

export type Answer = { readonly requestId: string; readonly blocks: readonly AnswerBlock[] };

export type Run = {
  /** Of the message that began it, and of its cycle. */
  readonly id: string;
  /** Ascending. */
  readonly messages: readonly Message[];
  readonly state: State;
  readonly answer: Answer | null;
};

export type RunEvent =
  | { readonly name: "message.added"; readonly data: Message }
  | { readonly name: "state.changed"; readonly data: { readonly state: State } }
  | {
      readonly name: "text.delta" | "thinking.delta";
      readonly data: {
        readonly requestId: string;
        readonly index: number;
        readonly offset: number;
        readonly text: string;
      };
    };

export const newRun = (id: string): Run => ({ id, messages: [], state: { kind: "idle" }, answer: null });

/** @returns the same value if the event is not of this run, or says nothing new. */
export function reduceRun(run: Run, event: RunEvent): Run {
  switch (event.name) {
    case "message.added": {
      const { data: message } = event;
      const isKnown = message.sequence <= (run.messages.at(-1)?.sequence ?? 0);
      if (message.cycleId !== run.id || isKnown) return run;
      const isAnswer = message.type === "agent" && message.display.requestId === run.answer?.requestId;
      return { ...run, messages: [...run.messages, message], answer: isAnswer ? null : run.answer };
    }
    case "state.changed": {
      const { state } = event.data;
      return { ...run, state, answer: isKept(run.answer, state) ? run.answer : null };
    }
    case "text.delta":
    case "thinking.delta": {
      const { requestId, ...piece } = event.data;
      // A summary at the end of a context is no answer: it comes whole.
      if (run.state.kind !== "llm_requesting" || runningIn(run.state) !== requestId) return run;
      const kind = event.name === "text.delta" ? "text" : "thinking";
      const blocks = run.answer?.requestId === requestId ? run.answer.blocks : [];
      return { ...run, answer: { requestId, blocks: withPiece(blocks, kind, piece) } };
    }
  }
}

/** A request that is tried again, was stopped or has failed leaves nothing of its answer. */
function isKept(answer: Answer | null, state: State): boolean {
  switch (state.kind) {
    case "llm_requesting":
    case "awaiting_continuation":
      return runningIn(state) === answer?.requestId;
    // Its message is on the way.
    case "awaiting_llm":
    case "tool_executing":
    case "awaiting_mode_approval":
    case "awaiting_sub_agents":
      return true;
    case "cancelling":
    case "idle":
    case "error":
    case "context_exhausted":
    case "completed":
    case "failed":
      return false;
  }
}

function withPiece(
  blocks: readonly AnswerBlock[],
  kind: AnswerBlock["kind"],
  { index, offset, text }: { readonly index: number; readonly offset: number; readonly text: string },
): readonly AnswerBlock[] {
  const place = blocks.findIndex((block) => block.index === index);
  const old = blocks[place] ?? { kind, index, text: "", hasGap: false };
  const end = old.text.length;
  const block = {
    ...old,
    text: old.hasGap || offset > end ? old.text : old.text + text.slice(end - offset),
    hasGap: old.hasGap || offset > end,
  };
  return place === -1 ? [...blocks, block] : blocks.with(place, block);
}
