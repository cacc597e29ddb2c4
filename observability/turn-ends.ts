/**
 * Owns: what is learned of a turn when it has ended: its metrics, and the spans of its phases for a collector. No process
 * has seen a whole turn, so it is read back from what is stored, in the background, a moment after the end.
 */
import type { Message } from "../machine/message.ts";
import type { TurnTimes, WorkerMetrics } from "./metrics.ts";
import type { EndedTurn, Spans } from "./spans.ts";
import type { TurnId } from "./trace-id.ts";
import { partsOf, phasesOf, type Phase, type TurnRecord } from "./turn.ts";

export type TurnEndsOptions = {
  readonly read: (conversationId: string, cycleId: string) => Promise<TurnRecord | null>;
  readonly metrics: Pick<WorkerMetrics, "countTurn">;
  readonly spans: Pick<Spans, "addTurn">;
};

/** Milliseconds after which the spans of a turn's last moments are stored, also those of other workers. */
const SETTLED_MS = 1_500;
/** Turns that wait to be read. If more end at once, some are not counted. */
const WAITING = 1_000;
/** Ends that are remembered: a commit may be repeated. */
const REMEMBERED = 2_000;

export class TurnEnds {
  readonly #options: TurnEndsOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #seen = new Set<string>();

  constructor(options: TurnEndsOptions) {
    this.#options = options;
  }

  /** A commit with these messages was stored. Returns at once. */
  note(conversationId: string, messages: readonly Message[]): void {
    for (const { type, cycleId } of messages)
      if (type === "run_stop" && cycleId !== null) this.#ended({ conversationId, cycleId });
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  #ended({ conversationId, cycleId }: TurnId): void {
    const key = `${conversationId}/${cycleId}`;
    if (this.#seen.has(key) || this.#timers.size >= WAITING) return;
    this.#seen.add(key);
    const [oldest] = this.#seen;
    if (this.#seen.size > REMEMBERED && oldest !== undefined) this.#seen.delete(oldest);
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      // A database that is away costs the figures of a turn, and nothing else.
      void this.#learn(conversationId, cycleId).catch(() => undefined);
    }, SETTLED_MS);
    this.#timers.add(timer.unref());
  }

  async #learn(conversationId: string, cycleId: string): Promise<void> {
    const { read, metrics, spans } = this.#options;
    const turn = await read(conversationId, cycleId);
    if (turn?.reason == null || turn.stoppedAt === null) return;
    const phases = phasesOf(turn, turn.stoppedAt);
    metrics.countTurn(timesOf(phases, turn.reason));
    spans.addTurn(endedTurn(turn, phases));
  }
}

function timesOf(phases: readonly Phase[], reason: TurnTimes["reason"]): TurnTimes {
  const seconds = ({ start, end }: { readonly start: number; readonly end: number }) => (end - start) / 1_000;
  const whole = { start: phases[0]?.start ?? 0, end: phases.at(-1)?.end ?? 0 };
  // A request that is made again belongs to the same round.
  const requests = phases
    .filter(({ kind }, index) => kind === "request" && phases[index - 1]?.kind !== "retry")
    .map(({ start }) => start);
  const queued = phases.find(({ kind }) => kind === "queue");
  return {
    reason,
    seconds: seconds(whole),
    parts: partsOf(phases).map(({ part, milliseconds }) => ({ part, seconds: milliseconds / 1_000 })),
    rounds: requests.slice(1).map((start, index) => (start - (requests[index] ?? start)) / 1_000),
    queuedSeconds: queued === undefined ? null : seconds(queued),
    stops: phases
      .filter(({ kind }) => kind === "stopping")
      .map((phase) => ({ stopping: phase.detail ?? "request", seconds: seconds(phase) })),
    retries: phases.filter(({ kind }) => kind === "retry").map(({ detail }) => detail ?? "unknown"),
  };
}

/** Phases with an activity have a span by it already. */
const OF_ACTIVITIES: ReadonlySet<Phase["kind"]> = new Set(["message", "request", "summary", "tool"]);

function endedTurn({ conversationId, cycleId, reason }: TurnRecord, phases: readonly Phase[]): EndedTurn {
  return {
    conversationId,
    cycleId,
    startedAt: phases[0]?.start ?? 0,
    endedAt: phases.at(-1)?.end ?? 0,
    attributes: { "bedrock.outcome": String(reason) },
    phases: phases
      .filter(({ kind }) => !OF_ACTIVITIES.has(kind))
      .map(({ name, detail, start, end }) => ({
        ...{ name, startedAt: start, endedAt: end },
        attributes: detail === null ? {} : { "bedrock.detail": detail },
      })),
  };
}
