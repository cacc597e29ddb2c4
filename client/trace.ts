/** Owns: asking where the time of a turn went (docs/observability.md), and the words for its parts. */
import type { Calls } from "./calls.ts";

/** @throws Refused, Unreachable */
export const readTrace = ({ call }: Pick<Calls, "call">, id: string, cycleId: string) =>
  call((routes) => routes.conversations[":id"].cycles[":cycleId"].trace.$get({ param: { id, cycleId } }));

export type Trace = Awaited<ReturnType<typeof readTrace>>;
export type TraceSpan = Trace["spans"][number];
type Part = Trace["parts"][number]["part"];

export const PART_NAMES: { readonly [P in Part]: string } = {
  queue: "in the queue",
  worker: "waiting for a worker",
  model: "model",
  retries: "before retries",
  tools: "tools",
  sub_agents: "sub-agents",
  approvals: "waiting for approval",
  database: "database",
  stopping: "stopping",
  unaccounted: "unaccounted for",
};
