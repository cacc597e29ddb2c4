/**
 * Owns: one run of a conversation as its event stream tells it, for the AI SDK's stream: the messages from the person's
 * on, and the answer that is being written. A pure value.
 */
import type { LiveEvent } from "../../db/live.ts";
import { runningIn, type State } from "../../machine/conversation.ts";
import type { Message } from "../../machine/message.ts";
import { addToAnswer, answerIn, type LiveAnswer } from "../../protocol/live-text.ts";

export type Run = {
  /** Of the message that began it, and of its cycle. */
  readonly id: string;
  /** Ascending. */
  readonly messages: readonly Message[];
  readonly state: State;
  /** Without gaps. */
  readonly answer: LiveAnswer | null;
  /** The request of whose answer a piece did not arrive: its message will have the whole text. */
  readonly cut: string | null;
};

export type RunEvent =
  | { readonly name: "message.added"; readonly data: Message }
  | { readonly name: "state.changed"; readonly data: { readonly state: State } }
  | Exclude<LiveEvent, { readonly name: "tool.output" }>;

export const newRun = (id: string): Run => ({
  id,
  messages: [],
  state: { kind: "idle" },
  answer: null,
  cut: null,
});

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
      return { ...run, state, answer: answerIn(state, run.answer) };
    }
    case "text.delta":
    case "thinking.delta": {
      const { requestId } = event.data;
      // A summary at the end of a context is no answer: it comes whole.
      if (run.state.kind !== "llm_requesting" || runningIn(run.state) !== requestId) return run;
      if (run.cut === requestId) return run;
      const kind = event.name === "text.delta" ? "text" : "thinking";
      const answer = addToAnswer(run.answer, kind, event.data);
      return answer.blocks.some(({ hasGap }) => hasGap) ? { ...run, cut: requestId } : { ...run, answer };
    }
  }
}
