/** Owns: the sentence that answers why a turn took so long: its largest part, and what there is to say of it. */
import type { Part, PartTime, Phase } from "./turn.ts";

export type Findings = {
  readonly phases: readonly Phase[];
  /** The largest first. */
  readonly parts: readonly PartTime[];
  readonly durationMs: number;
  readonly isOpen: boolean;
};

/** As "62 % of 48 s went to the model: 3 requests, first token after 2.1 s at worst." */
export function sentenceOf({ phases, parts, durationMs, isOpen }: Findings): string {
  const [largest] = parts;
  if (largest === undefined || durationMs <= 0) return "This turn took no time that can be measured.";
  const share = Math.round((largest.milliseconds / durationMs) * 100);
  const whole = `${spoken(durationMs)}${isOpen ? " so far" : ""}`;
  return `${share} % of ${whole} went to ${phraseOf(largest.part, phases)}.`;
}

function phraseOf(part: Part, phases: readonly Phase[]): string {
  const of = (...kinds: readonly Phase["kind"][]) => phases.filter(({ kind }) => kinds.includes(kind));
  const pieces = phases.flatMap((phase) => phase.pieces.map((piece) => ({ ...piece, phase })));
  const inPart = pieces.filter((piece) => piece.part === part);
  const worst = (found: readonly { readonly start: number; readonly end: number }[]): string =>
    spoken(Math.max(0, ...found.map(({ start, end }) => end - start)));
  switch (part) {
    case "queue":
      return "the queue: the message waited until earlier work had ended";
    case "worker":
      return `waiting for a worker: ${worst(inPart)} at worst, before ${longest(inPart)?.phase.name ?? "it began"}`;
    case "model": {
      const requests = counted(of("request", "summary").length, "request");
      const first = pieces.filter(({ name }) => name === "first token");
      return first.length === 0
        ? `the model: ${requests}, ${worst(inPart)} at worst`
        : `the model: ${requests}, first token after ${worst(first)} at worst`;
    }
    case "retries": {
      const retries = of("retry");
      const reasons = [...new Set(retries.flatMap(({ detail }) => detail ?? []))].join(", ");
      return `the wait before ${counted(retries.length, "retry", "retries")}${reasons === "" ? "" : `, after ${reasons}`}`;
    }
    case "tools": {
      const name = longest(inPart)?.phase.name ?? "tool";
      return `tools: ${counted(of("tool").length, "call")}, ${name} ${worst(inPart)} at worst`;
    }
    case "sub_agents":
      return `sub-agents: ${counted(
        of("sub_agents").reduce((sum, { tasks }) => sum + tasks, 0),
        "task",
      )}`;
    case "approvals":
      return `waiting for a person's approval: asked ${counted(of("approval").length, "time")}`;
    case "database":
      return `the database: ${counted(inPart.length, "commit or read", "commits and reads")}, ${worst(inPart)} at worst`;
    case "stopping":
      return "the Stop, until everything had ended";
    case "unaccounted":
      return "no part that is recorded: between the parts, Temporal and the worker of conversations hand the work on";
  }
}

function longest<P extends { readonly start: number; readonly end: number }>(
  of: readonly P[],
): P | undefined {
  return [...of].sort((a, b) => b.end - b.start - (a.end - a.start))[0];
}

const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;

/** "340 ms", "2.1 s", "48 s", "3 min 20 s" */
export function spoken(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
