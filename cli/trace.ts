/** Owns: where the time of a turn went, as lines with bars. */
import { PART_NAMES, readTrace, type Trace, type TraceSpan } from "../client/index.ts";
import type { Context } from "./conversations.ts";
import { UsageError } from "./exit-codes.ts";
import { conversationOf } from "./server.ts";

/** Characters of a bar, and of the name before it. */
const BAR = 30;
const NAME = 24;

/** @param cycleId null: the last turn */
export async function trace(
  { terminal, calls, isJson }: Context,
  given: string,
  cycleId: string | null,
): Promise<void> {
  const { id } = await conversationOf(calls, given);
  const found = await readTrace(calls, id, cycleId ?? (await lastCycle(calls, id)));
  if (isJson) {
    terminal.data(JSON.stringify(found));
    return;
  }
  terminal.words(`${found.summary}\n\n`);
  for (const { part, durationMs, share } of found.parts)
    terminal.words(`${percent(share)}  ${seconds(durationMs)}  ${PART_NAMES[part]}\n`);
  terminal.words("\n");
  for (const span of found.spans) terminal.words(`${lineOf(span, found)}\n`);
  if (found.omitted > 0) terminal.words(`${found.omitted} short ones are not shown.\n`);
}

async function lastCycle({ call }: Context["calls"], id: string): Promise<string> {
  const query = { limit: "1" } as const;
  const { cycles } = await call((routes) =>
    routes.conversations[":id"].cycles.$get({ param: { id }, query }),
  );
  const last = cycles.at(-1);
  if (last === undefined) throw new UsageError("This conversation has no turn yet.");
  return last.id;
}

function lineOf(
  { name, parentId, startMs, durationMs, detail }: TraceSpan,
  { durationMs: whole }: Trace,
): string {
  const indented = `${parentId === null ? "" : "  "}${name}`;
  const cut = indented.length > NAME ? `${indented.slice(0, NAME - 1)}…` : indented.padEnd(NAME);
  const at = (milliseconds: number): number => (whole === 0 ? 0 : Math.round((milliseconds / whole) * BAR));
  const from = Math.min(at(startMs), BAR - 1);
  const bar = "█".repeat(Math.max(1, at(startMs + durationMs) - from));
  const drawn = `${" ".repeat(from)}${bar}`.slice(0, BAR).padEnd(BAR);
  return `${cut} ${seconds(durationMs)} |${drawn}|${detail === null ? "" : ` ${detail}`}`;
}

const percent = (share: number): string => `${Math.round(share * 100)} %`.padStart(5);
const seconds = (milliseconds: number): string => `${(milliseconds / 1_000).toFixed(2)} s`.padStart(9);
