/**
 * "Why is this conversation slow?": a turn is made slow in each way on purpose, and the sentence names that way
 * (docs/observability.md).
 */
import { randomUUID } from "node:crypto";
import { setTimeout as pass } from "node:timers/promises";
import { expect, inject, test } from "vitest";
import { storeSpans } from "../../db/spans.ts";
import { hold, pause } from "../../local/scripted/cues.ts";
import { answer, rateLimited, say, text, toolCall, type Answer } from "../../local/scripted/script.ts";
import { createSpans } from "../../observability/spans.ts";
import type { Part, TurnTrace } from "../../observability/turn.ts";
import { decideUpgradeUpdate } from "../../protocol/workflow.ts";
import { startWorker } from "../../worker.ts";
import { startApiOn, type TestApi } from "../api/support.ts";
import { TestConversation } from "../support/conversation.ts";
import { spawnFamily } from "../support/family.ts";
import { startSystem, type System } from "../support/system.ts";
import { until } from "../support/waiting.ts";

/** Milliseconds by which a turn is made slow: far more than all the rest of it takes, also on a busy machine. */
const SLOW = 2_000;

const system = await startSystem();
const api = startTracedApi(system);

function startTracedApi(of: System): TestApi {
  const spans = createSpans({
    service: "bedrock-api",
    store: (rows) => storeSpans(of.db, rows),
    exporter: null,
  });
  of.defer(() => spans.close());
  return startApiOn(of, { spans });
}

/** Opens a conversation and sends it a message that is answered so. */
async function begin(answers: readonly Answer[], on: System = system, of: TestApi = api) {
  const conversation = await TestConversation.open(on, "unrestricted");
  const cycleId = randomUUID();
  const tag = on.model.script(randomUUID(), answers);
  await sendBy(of, conversation.id, { id: cycleId, text: `go ${tag}` });
  return { conversation, cycleId };
}

async function sendBy({ send }: TestApi, id: string, message: object): Promise<void> {
  const response = await send("POST", `/api/conversations/${id}/messages`, message);
  expect(response.status, await response.clone().text()).toBe(202);
}

async function read({ get }: TestApi, id: string, cycleId: string): Promise<TurnTrace> {
  const response = await get(`/api/conversations/${id}/cycles/${cycleId}/trace`);
  expect(response.status, await response.clone().text()).toBe(200);
  return (await response.json()) as TurnTrace;
}

/** The trace of a turn that has ended, with all its spans: they come a moment after it. */
async function traceOf(id: string, cycleId: string, of: TestApi = api): Promise<TurnTrace> {
  const trace = await until(async () => {
    const found = await read(of, id, cycleId);
    return found.endedAt !== null && found.spans.at(-1)?.name === "end of the turn" && found;
  });
  expectWhole(trace);
  return trace;
}

/** The parts are the turn, and so are the spans without children. */
function expectWhole({ durationMs, parts, spans }: TurnTrace): void {
  const sum = (all: readonly { readonly durationMs: number }[]): number =>
    all.reduce((total, each) => total + each.durationMs, 0);
  const leaves = spans.filter(({ part }) => part !== null);
  expect(Math.abs(sum(parts) - durationMs)).toBeLessThanOrEqual(parts.length);
  expect(Math.abs(sum(leaves) - durationMs)).toBeLessThanOrEqual(leaves.length);
}

function expectSlow({ summary, parts }: TurnTrace, part: Part, sentence: RegExp): void {
  const [largest] = parts;
  expect({ part: largest?.part, summary }).toEqual({
    part,
    summary: expect.stringMatching(sentence) as string,
  });
  expect(largest?.durationMs).toBeGreaterThanOrEqual(SLOW * 0.9);
}

test("a model that begins to answer late", async () => {
  const late = answer([text("Done.")], { beforeHeaders: [pause(SLOW)] });
  const { conversation, cycleId } = await begin([say(toolCall("bash", { command: "true" })), late]);
  const trace = await traceOf(conversation.id, cycleId);
  expectSlow(
    trace,
    "model",
    /^\d+ % of \d.* went to the model: 2 requests, first token after [2-9].* at worst\.$/,
  );
  expect(trace.reason).toBe("completed");
  const first = trace.spans.filter(({ name }) => name === "first token");
  expect(Math.max(...first.map(({ durationMs }) => durationMs))).toBeGreaterThanOrEqual(SLOW * 0.9);
  expect(trace.traceId).toBe(cycleId.replaceAll("-", ""));
});

test("a model that writes slowly", async () => {
  const { conversation, cycleId } = await begin([say("Well …", pause(SLOW), " done.")]);
  const trace = await traceOf(conversation.id, cycleId);
  expectSlow(trace, "model", / went to the model: 1 request, first token after /);
  const rest = trace.spans.find(({ name }) => name === "rest of the answer");
  expect(rest?.durationMs).toBeGreaterThanOrEqual(SLOW * 0.9);
});

test("a provider that refuses, and says when to come back", async () => {
  const { conversation, cycleId } = await begin([rateLimited(SLOW / 1_000), say("Done.")]);
  expectSlow(
    await traceOf(conversation.id, cycleId),
    "retries",
    / went to the wait before 1 retry, after rate_limit\.$/,
  );
});

test("a slow tool", async () => {
  const slow = toolCall("bash", { command: `sleep ${SLOW / 1_000}` });
  const { conversation, cycleId } = await begin([say(toolCall("ls", {}), slow), say("Done.")]);
  const trace = await traceOf(conversation.id, cycleId);
  expectSlow(trace, "tools", / went to tools: 2 calls, bash \d\.\d s at worst\.$/);
  expect(trace.spans.map(({ name }) => name)).toContain("ls");
});

test("sub-agents", async () => {
  const task = { script: [say(pause(SLOW), toolCall("submit_result", { success: true, result: "x" }))] };
  const { parent, report } = await spawnFamily(system, [task, task]);
  await report();
  await parent.untilState("idle");
  const [root] = await parent.messages();
  expectSlow(await traceOf(parent.id, root?.id ?? ""), "sub_agents", / went to sub-agents: 2 tasks\.$/);
});

test("a person who is asked", async () => {
  const asks = say(toolCall("request_mode_upgrade", { reason: "To write." }));
  const conversation = await TestConversation.open(system, "restricted");
  const cycleId = randomUUID();
  await sendBy(api, conversation.id, {
    id: cycleId,
    text: `go ${system.model.script(randomUUID(), [asks, say("Done.")])}`,
  });
  const { toolCall: call } = await conversation.untilState("awaiting_mode_approval");
  await pass(SLOW);
  const open = await read(api, conversation.id, cycleId);
  expect(open.endedAt).toBe(null);
  expect(open.summary).toMatch(/ so far went to waiting for a person's approval: asked 1 time\.$/);
  await conversation.handle.executeUpdate(decideUpgradeUpdate, {
    args: [{ decision: "deny", toolCallId: call.id }],
  });
  expectSlow(
    await traceOf(conversation.id, cycleId),
    "approvals",
    / went to waiting for a person's approval: asked 1 time\.$/,
  );
});

test("earlier work in the queue", async () => {
  const held = hold();
  const { conversation } = await begin([say("first ", held, "done"), say("Second.")]);
  await held.reached;
  const cycleId = randomUUID();
  await sendBy(api, conversation.id, { id: cycleId, text: "And then?", delivery: "followUp" });
  const waiting = await api.get(`/api/conversations/${conversation.id}/cycles/${cycleId}/trace`);
  expect(waiting.status).toBe(404);
  await pass(SLOW);
  held.release();
  await conversation.untilState("idle");
  expectSlow(
    await traceOf(conversation.id, cycleId),
    "queue",
    / went to the queue: the message waited until /,
  );
});

test("a database that does not get on", async () => {
  const held = hold();
  const { conversation, cycleId } = await begin([
    say(held, toolCall("bash", { command: "true" })),
    say("Done."),
  ]);
  await held.reached;
  await system.db.sql.begin(async (sql) => {
    await sql`select from conversations where id = ${conversation.id} for update`;
    held.release();
    await pass(SLOW);
  });
  expectSlow(
    await traceOf(conversation.id, cycleId),
    "database",
    / went to the database: \d+ commits and reads, [\d.]+ s at worst\.$/,
  );
});

test("no worker for tools: said while it lasts, and afterwards", async () => {
  const alone = await startSystem({ env: { WORKER_ROLES: "conversations,requests" } });
  const itsApi = startTracedApi(alone);
  const answers = [say(toolCall("bash", { command: "true" })), say("Done.")];
  const { conversation, cycleId } = await begin(answers, alone, itsApi);
  await conversation.untilState("tool_executing");
  await pass(SLOW);
  const open = await read(itsApi, conversation.id, cycleId);
  expect(open.summary).toMatch(/ so far went to waiting for a worker: .* at worst, before bash\.$/);
  const config = { ...alone.config, workerRoles: new Set(["tools"] as const) };
  const tools = await startWorker(config, () => Promise.resolve(inject("bundlePath")), {
    sandbox: () => Promise.resolve(alone.sandbox),
  });
  alone.defer(() => tools.stop());
  await conversation.untilState("idle");
  expectSlow(
    await traceOf(conversation.id, cycleId, itsApi),
    "worker",
    / went to waiting for a worker: .* at worst, before bash\.$/,
  );
});

test("no worker for conversations, when the message comes and when the answer is there", async () => {
  const alone = await startSystem({ workers: 0, env: { WORKER_ROLES: "conversations" } });
  const itsApi = startTracedApi(alone);
  const others = await startWorker(
    { ...alone.config, workerRoles: new Set(["requests", "tools"] as const) },
    () => Promise.reject(new Error("It runs no workflows.")),
  );
  alone.defer(() => others.stop());
  const first = await alone.startWorker();
  const conversation = await TestConversation.open(alone, "unrestricted");
  await first.stop();
  const cycleId = randomUUID();
  const held = hold();
  const tag = alone.model.script(randomUUID(), [say(held, "Done.")]);
  const sent = sendBy(itsApi, conversation.id, { id: cycleId, text: `go ${tag}` });
  await pass(SLOW);
  const second = await alone.startWorker();
  await sent;
  await held.reached;
  await until(async () => {
    const { summary } = await read(itsApi, conversation.id, cycleId);
    return / so far went to waiting for a worker: .* at worst, before message\.$/.test(summary);
  });
  await second.stop();
  held.release();
  await pass(2 * SLOW);
  await alone.startWorker();
  await conversation.untilState("idle");
  const trace = await traceOf(conversation.id, cycleId, itsApi);
  expectSlow(trace, "unaccounted", / went to no part that is recorded: between the parts, /);
});

test("a Stop is a part of the turn that it ends", async () => {
  const { conversation, cycleId } = await begin([say(toolCall("bash", { command: "sleep 300" }))]);
  await conversation.untilState("tool_executing");
  await conversation.cancel();
  await conversation.untilState("idle");
  const trace = await traceOf(conversation.id, cycleId);
  expect(trace.reason).toBe("interrupted");
  expect(trace.parts.map(({ part }) => part)).toContain("stopping");
});

test("where spans were lost, the states still say where the time went", async () => {
  const slow = toolCall("bash", { command: `sleep ${SLOW / 1_000}` });
  const { conversation, cycleId } = await begin([say(slow), say("Done.")]);
  await traceOf(conversation.id, cycleId);
  await system.db.sql`delete from spans where conversation_id = ${conversation.id}`;
  const trace = await read(api, conversation.id, cycleId);
  expectWhole(trace);
  expectSlow(trace, "tools", / went to tools: 1 call, bash \d\.\d s at worst\.$/);
});

test("a turn that does not exist is not found, nor is a message that begins none", async () => {
  const { conversation, cycleId } = await begin([say("Done.")]);
  await traceOf(conversation.id, cycleId);
  const messages = await conversation.messages();
  const agent = messages.find(({ type }) => type === "agent")?.id ?? "";
  for (const id of ["unknown", agent, "not%20an%20id"])
    expect((await api.get(`/api/conversations/${conversation.id}/cycles/${id}/trace`)).status).toBe(404);
  expect((await api.get(`/api/conversations/unknown/cycles/${cycleId}/trace`)).status).toBe(404);
});
