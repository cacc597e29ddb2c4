/**
 * Owns: a conversation's request cycles (request-cycle model; docs/cycles.md): which stored message belongs to
 * which cycle, and the shape in which a cycle is shown. A pure, incremental fold over the messages in their order.
 * Not here: a cycle's messages as steps (cycle-steps.ts) and as rounds (cycle-rounds.ts).
 */
import { roundsOf, type Round } from "./cycle-rounds.ts";
import { stepsOf, type Step } from "./cycle-steps.ts";
import type { Message, RunStopReason } from "./message.ts";

/**
 * A root message, the messages that follow from it, and the run_stop that ended its run. Without a run_stop the cycle
 * is open.
 */
export type RequestCycle = {
  /** A direct message, a follow-up or a sub-agent's task. Its id is the cycle's id and the messages' `cycleId`. */
  readonly root: Message;
  /** In order, the root first; the run_stop, if there is one, last. */
  readonly messages: readonly Message[];
};

/** Every message is in exactly one of the cycles, or its id is in `between`. */
export type Cycles = { readonly cycles: readonly RequestCycle[]; readonly between: readonly string[] };

/**
 * The cycles of messages that are added one after the other. A fold may start at any root message and gives the same
 * cycles from there on: it carries nothing from one cycle to the next.
 */
export class CycleFold {
  readonly #ended: RequestCycle[] = [];
  readonly #between: string[] = [];
  #open: { readonly root: Message; readonly messages: Message[] } | null = null;

  /** The next message in sequence. */
  add(message: Message): void {
    if (isRoot(message)) {
      this.#end();
      this.#open = { root: message, messages: [message] };
    } else if (this.#open === null) {
      this.#between.push(message.id);
    } else {
      this.#open.messages.push(message);
      if (message.type === "run_stop") this.#end();
    }
  }

  /** A snapshot that later messages do not change. A cycle that has ended is the same object each time. */
  result(): Cycles {
    const open = this.#open === null ? [] : [{ ...this.#open, messages: [...this.#open.messages] }];
    return { cycles: [...this.#ended, ...open], between: [...this.#between] };
  }

  #end(): void {
    if (this.#open !== null) this.#ended.push(this.#open);
    this.#open = null;
  }
}

/** The cycles of messages in ascending order of their sequence, in linear time. */
export function foldCycles(messages: Iterable<Message>): Cycles {
  const fold = new CycleFold();
  for (const message of messages) fold.add(message);
  return fold.result();
}

function isRoot(message: Message): boolean {
  return message.type === "user" && message.display.kind !== "steer";
}

export type CycleView = "steps" | "rounds";

/** A cycle as on the wire (docs/http.md, Cycle). */
export type Cycle = {
  readonly id: string;
  /** The id of the root message. */
  readonly root: string;
  /** RFC 3339 UTC, like `stoppedAt`, which is null as long as the cycle is open. */
  readonly startedAt: string;
  readonly stoppedAt: string | null;
  readonly reason: RunStopReason | null;
} & ({ readonly steps: readonly Step[] } | { readonly rounds: readonly Round[] });

/** A cycle as steps, as people read it, or as rounds, one for each response of the model. */
export function viewOf({ root, messages }: RequestCycle, view: CycleView): Cycle {
  const stop = messages.findLast((message) => message.type === "run_stop");
  const head = {
    id: root.id,
    root: root.id,
    startedAt: root.createdAt,
    stoppedAt: stop?.createdAt ?? null,
    reason: stop?.content[0].reason ?? null,
  };
  switch (view) {
    case "steps":
      return { ...head, steps: stepsOf(messages) };
    case "rounds":
      return { ...head, rounds: roundsOf(messages) };
  }
}
