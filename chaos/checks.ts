/** Owns: the checks of what must hold after all faults. Each check returns sentences about violations. */
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { withActions } from "../api/actions.ts";
import type { Database } from "../db/connect.ts";
import { readEvents } from "../db/events.ts";
import { loadConversation } from "../db/load.ts";
import { isWorking } from "../machine/conversation.ts";
import type { Message } from "../machine/message.ts";
import type { Served } from "../test/support/product.ts";
import { ServiceError, WorkflowNotFoundError } from "@temporalio/client";
import { stateQuery } from "../protocol/workflow.ts";
import { SCRIPT } from "./model.ts";
import type { Scene } from "./scene.ts";
import type { Accepted, Chapter } from "./virtual-user.ts";

/** Status codes of gRPC. */
const NOT_FOUND = 5;
const FAILED_PRECONDITION = 9;
/** Milliseconds within which a client must have received everything. */
const TIMEOUT_MS = 30_000;

/** Every accepted message is in the history once, in order, or waits visibly. */
export async function checkAccepted({ talk, accepted }: Chapter): Promise<string[]> {
  const messages = (await talk.messages()) as unknown as readonly Message[];
  const waiting = ((await talk.read())["queue"] as readonly { readonly messageId: string }[]).map(
    ({ messageId }) => messageId,
  );
  const told = [...messages.filter(({ type }) => type === "user").map(({ id }) => id), ...waiting];
  const complaints: string[] = [];
  const sequences = messages.map(({ sequence }) => sequence);
  if (
    !isDeepStrictEqual(
      sequences,
      sequences.map((_, n) => n + 1),
    )
  )
    complaints.push("a gap in the sequences");
  const ids = accepted.map(({ id }) => id);
  for (const { id, dropped } of accepted) {
    const times = told.filter((each) => each === id).length;
    if (times > 1 || (times === 0 && dropped !== true))
      complaints.push(`message ${id} is there ${times} times`);
  }
  for (const id of told) if (!ids.includes(id)) complaints.push(`message ${id} was never accepted`);
  // Messages of one delivery must keep their order; those of different deliveries may overtake each other.
  for (const delivery of ["direct", "steer", "followUp"] as const) {
    const of = (each: Accepted): boolean => each.delivery === delivery && each.dropped !== true;
    const order = accepted.filter(of).map(({ id }) => told.indexOf(id));
    if (
      !isDeepStrictEqual(
        order,
        [...order].sort((a, b) => a - b),
      )
    )
      complaints.push(`${delivery} out of order`);
  }
  return complaints.map((each) => `${talk.id}: ${each}`);
}

/** The client received each event since it connected, once and in order, as it is stored. */
export async function checkHeard(db: Database, { talk }: Chapter): Promise<string[]> {
  const stored = await readEvents(db, talk.id, talk.from, Number.MAX_SAFE_INTEGER);
  const last = stored.at(-1)?.number ?? 0;
  const until = performance.now() + TIMEOUT_MS;
  while ((talk.heard.at(-1)?.id ?? 0) < last && performance.now() < until) await pause(50);
  const heard = talk.heard.map(({ id, name, data }) => ({ number: id, name, data }));
  const wanted = stored.map((event) => ({
    number: event.number,
    name: event.name,
    data: plain(withActions(talk.id, event)),
  }));
  const wrong = wanted.findIndex((event, n) => !isDeepStrictEqual(event, heard[n]));
  if (wrong === -1 && heard.length === wanted.length) return [];
  const [is, shouldBe] = [heard[wrong], wanted[wrong]].map((event) => JSON.stringify(event));
  return [
    `${talk.id}: heard ${heard.length} events of ${wanted.length}; the first that differs is ${is}, not ${shouldBe}`,
  ];
}

/** Events are numbered without gaps and announce each message once. */
export async function checkEvents(db: Database): Promise<string[]> {
  const gaps = await db.sql<{ id: string }[]>`
    select c.id from conversations c left join events e on e.conversation_id = c.id
    group by c.id, c.last_event
    having count(e.number) <> c.last_event or coalesce(max(e.number), 0) <> c.last_event`;
  const told = await db.sql<{ id: string; message: string; times: number }[]>`
    select m.conversation_id as id, m.id as message, count(e.number) as times
    from messages m
    left join events e on e.conversation_id = m.conversation_id and e.message_id = m.id
    group by m.conversation_id, m.id having count(e.number) <> 1`;
  return [
    ...gaps.map(({ id }) => `${id}: a gap in its events`),
    ...told.map(({ id, message, times }) => `${id}: message ${message} was told of ${times} times`),
  ];
}

/** The row equals what a replay of the workflow's history yields, and nothing is unconfirmed. */
export async function checkReplay({ product, restarts }: Scene, db: Database, id: string): Promise<string[]> {
  const stored = await loadConversation(db, id);
  if (stored === null) return [`${id}: has no row`];
  const complaints: string[] = [];
  const handle = product.temporal.workflow.getHandle(id);
  const said = await handle.query(stateQuery).catch((error: unknown) => {
    // Temporal's database was lost or put back: a conversation at rest gets a workflow with its next message.
    if (restarts.hasForgotten && error instanceof WorkflowNotFoundError) return null;
    if (codeOf(error) === FAILED_PRECONDITION) return "stuck" as const;
    throw error;
  });
  if (said === "stuck") {
    const { pendingWorkflowTask: task } = (await handle.describe()).raw;
    return [`${id}: no worker can replay its history: ${JSON.stringify(task)}`];
  }
  if (said === null)
    return isWorking(stored.conversation.state)
      ? [`${id}: ${stored.conversation.state.kind}, and no workflow`]
      : [];
  if (said.unconfirmed > 0) complaints.push(`${said.unconfirmed} revisions are not confirmed`);
  if (said.revision !== stored.revision || said.revisionId !== stored.revisionId)
    complaints.push(
      `revision ${said.revision} in its workflow (${said.revisionId}), ${stored.revision} in its row (${stored.revisionId})`,
    );
  if (!isDeepStrictEqual(plain(said.conversation), plain(stored.conversation)))
    complaints.push(
      `its workflow says ${JSON.stringify(said.conversation)}, its row ${JSON.stringify(stored.conversation)}`,
    );
  if (isWorking(stored.conversation.state)) complaints.push(`still ${stored.conversation.state.kind}`);
  return complaints.map((each) => `${id}: ${each}`);
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/**
 * No command ran twice. Every command reported as completed ran, and no skipped one did. None began after its result
 * was stored. No command of an Unrestricted conversation failed.
 */
export async function checkLedger(db: Database, ledger: string): Promise<string[]> {
  const ran = new Map<string, number[]>();
  for (const line of readFileSync(ledger, "utf8").split("\n").filter(Boolean)) {
    const [seconds, call = ""] = line.split(" ");
    ran.set(call, [...(ran.get(call) ?? []), 1_000 * Number(seconds)]);
  }
  const complaints = [...ran]
    .filter(([, times]) => times.length > 1)
    .map(([call, times]) => `${call} ran ${times.length} times`);
  const results = await db.sql<{ id: string; status: string; at: number; mode: string; said: string }[]>`
    select m.content #>> '{0,toolCallId}' as id, m.content #>> '{0,status}' as status, c.mode,
      (extract(epoch from m.created_at) * 1000)::float8 as at, m.content::text as said
    from messages m join conversations c on c.id = m.conversation_id
    where message_type = 'tool' and content #>> '{0,name}' = 'bash'`;
  const answered = new Set(results.map(({ id }) => id));
  for (const call of ran.keys()) if (!answered.has(call)) complaints.push(`${call} ran and has no result`);
  for (const { id, status, at, mode, said } of results) {
    if (status === "failed" && mode === "unrestricted") complaints.push(`${id} failed: ${said}`);
    const times = ran.get(id) ?? [];
    if (status === "completed" && mode === "unrestricted" && times.length !== 1)
      complaints.push(`${id} is completed and ran ${times.length} times`);
    if (status === "skipped" && times.length !== 0) complaints.push(`${id} is skipped and ran`);
    const late = Math.max(...times) - at;
    if (late > 0) complaints.push(`${id} began ${Math.ceil(late)} ms after it was said to be ${status}`);
  }
  return complaints;
}

/** The provider accepted every request, and every request still had the text of its virtual user. */
export const checkRequests = ({ model }: Served): string[] =>
  model.requests.flatMap(({ refusal, id, key }) => [
    ...(refusal === null ? [] : [`request ${id}: ${refusal.message}`]),
    ...(key === SCRIPT ? [] : [`request ${id} has lost who is to answer it`]),
  ]);

/** The number of conversations that ran tools under the first release, and then under the second. */
export async function countCarriedOver({ temporal }: Served, ids: readonly string[]): Promise<number> {
  const histories = await Promise.all(
    ids.map((id) => historyOf(temporal, id).catch((error: unknown) => noneIfGone(error))),
  );
  return histories.filter((events) => {
    const tools = events.map(
      (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === "executeTool",
    );
    const marker = events.findIndex(
      ({ markerRecordedEventAttributes: each }) => each?.markerName === "core_patch",
    );
    // The second release puts the marker before its first tool.
    return tools.includes(true) && tools.indexOf(true) < marker;
  }).length;
}

/** A workflow that Temporal has forgotten has no history. */
function noneIfGone(error: unknown): [] {
  if (codeOf(error) === NOT_FOUND) return [];
  throw error;
}

/** The code of gRPC of an error, or of its cause. */
function codeOf(error: unknown): unknown {
  const cause = error instanceof ServiceError ? error.cause : error;
  return cause instanceof Error && "code" in cause ? cause.code : null;
}

/** The history of all runs of a workflow, one after the other. */
async function historyOf(temporal: Served["temporal"], workflowId: string, runId?: string) {
  const events = (await temporal.workflow.getHandle(workflowId, runId).fetchHistory()).events ?? [];
  const before = events[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? "";
  if (before !== "") events.unshift(...(await historyOf(temporal, workflowId, before)));
  return events;
}

/**
 * Finds all conversations, sub-agents included. Complains about rows that no virtual user made, and about missing ones.
 */
export async function checkEverybody(
  db: Database,
  roots: readonly string[],
): Promise<{ readonly ids: readonly string[]; readonly complaints: string[] }> {
  const rows = await db.sql<{ id: string; root: string }[]>`
    select id, coalesce(parent_conversation_id, id) as root from conversations`;
  const ids = rows.map(({ id }) => id);
  const strange = rows.filter(({ root }) => !roots.includes(root)).map(({ id }) => id);
  const missing = roots.filter((root) => !ids.includes(root));
  return {
    ids,
    complaints: [
      ...strange.map((id) => `${id}: nobody has made it`),
      ...missing.map((id) => `${id}: has no row`),
    ],
  };
}
