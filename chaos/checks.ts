/** Owns: what must hold when the storm is over. Each check gives sentences about what does not. */
import { readFileSync, readlinkSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Database } from "../db/connect.ts";
import { children } from "../db/conversations.ts";
import { loadConversation } from "../db/load.ts";
import type { Conversation } from "../machine/conversation.ts";
import { isWorking } from "../machine/conversation.ts";
import type { Message } from "../machine/message.ts";
import { processesWhere } from "../test/support/processes.ts";
import type { Product } from "../test/support/product.ts";
import { stateQuery } from "../workflows/contract.ts";
import type { Accepted, Chapter } from "./person.ts";

/** Milliseconds in which a client must have heard everything, and everything must be dead. */
const PATIENCE_MS = 30_000;

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
  for (const id of ids) {
    const times = told.filter((each) => each === id).length;
    if (times !== 1) complaints.push(`message ${id} is there ${times} times`);
  }
  for (const id of told) if (!ids.includes(id)) complaints.push(`message ${id} was never accepted`);
  // One kind may overtake another; none overtakes its own.
  for (const delivery of ["direct", "steer", "followUp"] as const) {
    const of = (each: Accepted): boolean => each.delivery === delivery;
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

/** Its client heard each event once and in order, and of each message once. */
export async function checkHeard(db: Database, { talk }: Chapter): Promise<string[]> {
  const rows = await db.sql<{ number: number }[]>`
    select number from events where conversation_id = ${talk.id} order by number`;
  const last = rows.at(-1)?.number ?? 0;
  const until = performance.now() + PATIENCE_MS;
  while ((talk.heard.at(-1)?.id ?? 0) < last && performance.now() < until) await pause(50);
  const heard = talk.heard.map(({ id }) => id);
  const stored = rows.map(({ number }) => number).filter((number) => number >= (heard[0] ?? last + 1));
  const complaints = isDeepStrictEqual(heard, stored)
    ? []
    : [`heard ${heard.length} events of ${stored.length}, or not in order`];
  const times = new Map<string, number>();
  for (const { name, data } of talk.heard) {
    if (name !== "message.added") continue;
    const id = String(data["id"]);
    times.set(id, (times.get(id) ?? 0) + 1);
  }
  for (const [id, n] of times) if (n > 1) complaints.push(`message ${id} was told of ${n} times`);
  return complaints.map((each) => `${talk.id}: ${each}`);
}

/** The row is what the workflow's history says when it is replayed, and nothing is unconfirmed. */
export async function checkReplay(product: Product, db: Database, id: string): Promise<string[]> {
  const stored = await loadConversation(db, id);
  if (stored === null) return [`${id}: has no row`];
  const said = await product.temporal.workflow.getHandle(id).query(stateQuery);
  const complaints: string[] = [];
  if (said.unconfirmed > 0) complaints.push(`${said.unconfirmed} steps are not confirmed`);
  if (said.step !== stored.step)
    complaints.push(`step ${said.step} in its workflow, ${stored.step} in its row`);
  if (!isDeepStrictEqual(plain(said.conversation), plain(stored.conversation)))
    complaints.push(
      `its workflow says ${JSON.stringify(said.conversation)}, its row ${JSON.stringify(stored.conversation)}`,
    );
  if (isWorking(stored.conversation.state)) complaints.push(`still ${stored.conversation.state.kind}`);
  return complaints.map((each) => `${id}: ${each}`);
}

const plain = (conversation: Conversation): unknown => JSON.parse(JSON.stringify(conversation));

/**
 * No command ran twice, each that is said to be completed ran, and none that is said to be skipped; none began after it
 * was said what came of it.
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
  const results = await db.sql<{ id: string; status: string; at: number }[]>`
    select content #>> '{0,toolCallId}' as id, content #>> '{0,status}' as status,
      (extract(epoch from created_at) * 1000)::float8 as at
    from messages where message_type = 'tool' and content #>> '{0,name}' = 'bash'`;
  for (const { id, status, at } of results) {
    const times = ran.get(id) ?? [];
    if (status === "completed" && times.length !== 1)
      complaints.push(`${id} is completed and ran ${times.length} times`);
    if (status === "skipped" && times.length !== 0) complaints.push(`${id} is skipped and ran`);
    const late = Math.max(...times) - at;
    if (late > 0) complaints.push(`${id} began ${Math.ceil(late)} ms after it was said to be ${status}`);
  }
  return complaints;
}

/** Every request was one that the provider takes. */
export const checkRequests = ({ model }: Product): string[] =>
  model.requests.flatMap(({ refusal, id }) =>
    refusal === null ? [] : [`request ${id}: ${refusal.message}`],
  );

/** Nothing that a command has started is left. */
export async function checkSurvivors(cwd: string): Promise<string[]> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const alive = processesIn(cwd);
    if (alive.length === 0) return [];
    if (performance.now() > until) return alive.map((each) => `left over: ${each}`);
    await pause(100);
  }
}

function processesIn(cwd: string): string[] {
  return processesWhere((pid) => readlinkSync(`/proc/${pid}/cwd`).startsWith(cwd)).map(
    (pid) => `${pid} ${commandOf(pid)}`,
  );
}

/** Of one that has ended meanwhile, nothing. */
function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
}

/** How many conversations ran tools under the first release, and then under the second. */
export async function countCarriedOver({ temporal }: Product, ids: readonly string[]): Promise<number> {
  const histories = await Promise.all(ids.map((id) => temporal.workflow.getHandle(id).fetchHistory()));
  return histories.filter(({ events }) => {
    const tools = (events ?? []).map(
      (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === "executeTool",
    );
    const marker = (events ?? []).findIndex(
      ({ markerRecordedEventAttributes: each }) => each?.markerName === "core_patch",
    );
    // The second release puts the marker before its first tool.
    return tools.includes(true) && tools.indexOf(true) < marker;
  }).length;
}

/** Of a conversation and of its sub-agents. */
export async function familyOf(db: Database, id: string): Promise<string[]> {
  return [id, ...(await children(db, id)).map((child) => child.id)];
}
