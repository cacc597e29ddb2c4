/**
 * A person's sessions over plain fetch on the whole system: answers, events and later reads agree with each other, and
 * have the shapes of docs/http.md. REQ-BED-001, 002, 004, 005, 006, 010, 011, 012, 016, 017, 021.
 */
import { randomUUID } from "node:crypto";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { conversation as conversationSchema } from "../../api/schemas/conversation.ts";
import { cycle as cycleSchema } from "../../api/schemas/cycle.ts";
import { eventData, type EventName } from "../../api/schemas/event.ts";
import { storedMessage } from "../../api/schemas/message.ts";
import { hold } from "../../local/scripted/cues.ts";
import { answer, fail, say, text, thinking, toolCall } from "../../local/scripted/script.ts";
import type { Conversation, QueuedMessage } from "../../machine/conversation.ts";
import type { Message } from "../../machine/message.ts";
import { createConversation, message, queued, valueWith } from "../db/fixtures.ts";
import { startSystem } from "../support/system.ts";
import { EventReader, type Received } from "./sse.ts";
import { bodyOf, problemOf, serveApi, startApiOn } from "./support.ts";

const system = await startSystem();
const served = startApiOn(system);
const { url, get, send } = await serveApi(served);

type Body = Awaited<ReturnType<typeof bodyOf>>;
type Shown = { readonly [name: string]: unknown };

const at = (id: string, rest = "") => `/api/conversations/${id}${rest}`;
const read = async (path: string): Promise<Body> => {
  const response = await get(path);
  expect(response.status, path).toBe(200);
  return bodyOf(response);
};
const conversationOf = (id: string): Promise<Body> => read(at(id));
const messagesOf = async (id: string) => (await read(at(id, "/messages")))["messages"] as Message[];
const typesOf = async (id: string) => (await messagesOf(id)).map((found) => found.type);

async function create(body: object = {}): Promise<string> {
  const response = await send("POST", "/api/conversations", { cwd: system.cwd, ...body });
  if (response.status !== 201) throw new Error(await response.text());
  const made = await bodyOf(response);
  expect(response.headers.get("location")).toBe(at(String(made["id"])));
  return String(made["id"]);
}

const say202 = async (id: string, body: object): Promise<Body> => {
  const response = await send("POST", at(id, "/messages"), body);
  if (response.status !== 202) throw new Error(await response.text());
  return bodyOf(response);
};

async function follow(id: string, init: RequestInit = {}): Promise<EventReader> {
  return new EventReader(await get(at(id, "/events"), init));
}

const kindIn = ({ data }: Received): unknown => (data["state"] as Shown | undefined)?.["kind"];
const entering = (kind: string) => (event: Received) =>
  event.name === "state.changed" && kindIn(event) === kind;

/** Follows the conversation until it is in a state of this kind, now or later. */
async function untilState(id: string, kind: string): Promise<Shown> {
  const events = await follow(id);
  const { data } = await events.until((event) => {
    if (event.name !== "snapshot") return entering(kind)(event);
    return kindIn({ ...event, data: event.data["conversation"] as Received["data"] }) === kind;
  });
  await events.cancel();
  return (data["state"] ?? (data["conversation"] as Shown)["state"]) as Shown;
}

/**
 * Number of events in the workflow's history, without those of workflow tasks: the server also records a task that only
 * rejected an update if an activity's heartbeat falls into it, or if the worker was too busy to take it in time.
 */
async function eventsInHistory(id: string): Promise<number> {
  const { events } = await system.temporal.workflow.getHandle(id).fetchHistory();
  const others = (events ?? []).filter(
    (event) =>
      (event.workflowTaskScheduledEventAttributes ??
        event.workflowTaskStartedEventAttributes ??
        event.workflowTaskCompletedEventAttributes ??
        event.workflowTaskTimedOutEventAttributes) == null,
  );
  return others.length;
}

const script = (...answers: Parameters<typeof system.model.script>[1] & readonly unknown[]) =>
  system.model.script(randomUUID(), answers);
const UUIDV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

test("a session's events equal what is stored, and everything has the documented shape", async () => {
  await writeFile(join(system.cwd, "hello.txt"), "hello from a file\n");
  const tag = script(
    say(
      thinking(["Let me ", "look."]),
      text("I read ", "the file."),
      toolCall("bash", { command: "cat hello.txt; echo oops >&2" }),
    ),
    say(text("It says ", "hello.")),
  );
  const list = new EventReader(await get("/api/events"));
  await list.until("synced");
  const id = await create();
  expect(id).toMatch(UUIDV7);
  const events = await follow(id);
  expect(await events.namesUntil("synced")).toEqual(["snapshot", "synced"]);

  const sent = await say202(id, { text: `What does it say? ${tag}` });
  expect(sent).toEqual({
    messageId: expect.stringMatching(UUIDV7) as string,
    sequence: 1,
    delivery: "direct",
  });
  await events.until(entering("idle"));
  const seen = events.received.slice(2);

  // Durable events are numbered without gaps; each event matches its schema.
  const durable = seen.filter((event) => event.id !== null);
  expect(durable.map((event) => event.id)).toEqual(
    durable.map((_event, index) => (durable[0]?.id ?? 0) + index),
  );
  for (const { name, data } of seen)
    expect(eventData[name as EventName].parse(data), String(name)).toEqual(data);
  const live = new Set(seen.filter((event) => event.id === null).map((event) => event.name));
  expect([...live].sort()).toEqual(["text.delta", "thinking.delta", "tool.output"]);
  const states = seen.filter((event) => event.name === "state.changed");
  expect(states.map(kindIn)).toEqual(["llm_requesting", "tool_executing", "llm_requesting", "idle"]);
  expect(new Set(states.map((event) => event.data["cycleId"]))).toEqual(new Set([sent["messageId"]]));
  expect(seen.map((event) => event.name)).toContain("usage.changed");

  // The stored messages are those that were streamed.
  const stored = await messagesOf(id);
  expect(stored.map((found) => found.type)).toEqual(["user", "agent", "tool", "agent", "run_stop"]);
  expect(seen.filter((event) => event.name === "message.added").map((event) => event.data)).toEqual(stored);
  expect(stored.map((found) => found.sequence)).toEqual([1, 2, 3, 4, 5]);
  for (const found of stored) {
    expect(storedMessage.parse(found)).toEqual(found);
    expect([found.id, found.cycleId, found.createdAt]).toEqual([
      expect.stringMatching(UUIDV7),
      sent["messageId"],
      expect.stringMatching(TIME),
    ]);
  }
  const [, agent, tool] = stored;
  if (agent?.type !== "agent" || tool?.type !== "tool") throw new Error("as was just looked at");
  expect(tool.content[0]).toMatchObject({ name: "bash", status: "completed" });
  const output = JSON.stringify(tool.content[0].output);
  expect(output).toContain("hello from a file");
  expect(output).toContain("oops");

  // The deltas add up to the text of the answer.
  const said = (name: string, requestId: string) =>
    seen
      .filter((event) => event.name === name && event.data["requestId"] === requestId)
      .map((event) => event.data["text"])
      .join("");
  expect(agent.content).toMatchObject([
    { type: "thinking", thinking: said("thinking.delta", agent.display.requestId) },
    { type: "text", text: said("text.delta", agent.display.requestId) },
    { type: "tool_use" },
  ]);
  const outputs = seen.filter((event) => event.name === "tool.output").map((event) => event.data);
  expect(outputs.every((data) => data["toolCallId"] === tool.content[0].toolCallId)).toBe(true);
  expect(new Set(outputs.map((data) => data["stream"]))).toEqual(new Set(["stdout", "stderr"]));

  // The conversation is complete, and its sums are those of the answers.
  const shown = await conversationOf(id);
  expect(conversationSchema.parse(shown)).toEqual(shown);
  expect(shown).toMatchObject({
    title: `What does it say? ${tag}`,
    cwd: system.cwd,
    host: system.config.toolHost,
    state: { kind: "idle" },
    lastEvent: durable.at(-1)?.id,
    createdAt: expect.stringMatching(TIME) as string,
  });
  const answers = stored.flatMap((found) => (found.type === "agent" ? [found.usage] : []));
  const outputTokens = answers.reduce((sum, usage) => sum + usage.outputTokens, 0);
  expect(shown["usage"]).toMatchObject({ outputTokens });
  const { conversations } = await read("/api/conversations");
  expect(conversations).toContainEqual(shown);

  // Both views of the cycles show the same run: steps for people, rounds as the model was asked.
  const steps = await read(at(id, "/cycles"));
  const rounds = await read(at(id, "/cycles?view=rounds"));
  for (const page of [steps, rounds]) {
    for (const found of page["cycles"] as unknown[]) expect(cycleSchema.parse(found)).toEqual(found);
  }
  const cycle = { id: sent["messageId"], root: sent["messageId"], reason: "completed" };
  const calls = [{ toolCallId: tool.content[0].toolCallId, name: "bash", status: "completed" }];
  expect(steps).toMatchObject({
    cycles: [
      {
        ...cycle,
        steps: [
          { kind: "user", messageId: sent["messageId"], delivery: "direct" },
          { kind: "ai_block", item: { type: "reasoning", text: "Let me look." }, groups: [] },
          {
            kind: "ai_block",
            item: { type: "assistant", text: "I read the file." },
            groups: [{ kind: "bash", calls }],
          },
          { kind: "ai_block", item: { type: "assistant", text: "It says hello." }, groups: [] },
        ],
      },
    ],
    between: [],
  });
  expect(rounds).toMatchObject({
    cycles: [
      {
        ...cycle,
        rounds: [
          {
            requestId: agent.display.requestId,
            input: [sent["messageId"]],
            output: agent.id,
            results: [tool.id],
          },
          { output: stored[3]?.id, results: [] },
        ],
      },
    ],
  });

  // A resumed stream continues after the given event; the list stream had the changes, too.
  const half = durable[Math.floor(durable.length / 2)];
  const resumed = await follow(id, { headers: { "last-event-id": String(half?.id) } });
  await resumed.until("synced");
  expect(resumed.received.slice(0, -1)).toEqual(durable.filter((event) => (event.id ?? 0) > (half?.id ?? 0)));
  const told = (name: string) => (event: Received) => event.name === name && event.data["id"] === id;
  expect((await list.until(told("conversation.changed"))).data).toMatchObject({
    cwd: system.cwd,
    archived: false,
  });
  await list.until((event) => told("state.changed")(event) && kindIn(event) === "llm_requesting");
  await list.until((event) => told("state.changed")(event) && kindIn(event) === "idle");
  await Promise.all([events, resumed, list].map((stream) => stream.cancel()));
});

test("REQ-BED-002: a message to a busy conversation leaves nothing in the workflow's history, and its id stays free", async () => {
  const held = hold();
  const tag = script(say("working ", held), say("And now you."));
  const id = await create({ message: { text: `go ${tag}` } });
  await held.reached;
  await untilState(id, "llm_requesting");
  const before = await eventsInHistory(id);
  const lastEvent = (await conversationOf(id))["lastEvent"];
  for (let n = 0; n < 3; n++) {
    const busy = await problemOf(await send("POST", at(id, "/messages"), { id: "eager", text: "Now!" }));
    expect(busy).toMatchObject({ status: 409, code: "agent_busy", cancel: at(id, "/cancel") });
  }
  const early = await problemOf(await send("POST", at(id, "/continuation")));
  expect(early).toMatchObject({ status: 409, code: "agent_busy", state: { kind: "llm_requesting" } });
  expect(await eventsInHistory(id)).toBe(before);
  expect((await conversationOf(id))["lastEvent"]).toBe(lastEvent);
  held.release();
  await untilState(id, "idle");
  expect(await say202(id, { id: "eager", text: "Now!" })).toEqual({
    messageId: "eager",
    sequence: 4,
    delivery: "direct",
  });
  await untilState(id, "idle");
});

test("queued messages are shown, can be sent again before and after delivery, and stay withdrawn", async () => {
  const held = hold();
  const tag = script(
    say("working ", held, toolCall("ls", { path: "." })),
    say("With the steer."),
    say("And that."),
  );
  const id = await create({ message: { text: `go ${tag}` } });
  await held.reached;
  const events = await follow(id);
  await events.until("synced");
  const steer = { id: "steer", text: "Be quick.", delivery: "steer" };
  const followUp = { id: "follow-up", text: "And then that.", delivery: "followUp" };
  for (const waiting of [steer, followUp]) {
    const answer = { messageId: waiting.id, sequence: null, delivery: waiting.delivery };
    expect(await say202(id, waiting)).toEqual(answer);
    expect(await say202(id, waiting)).toEqual(answer);
    const other = await send("POST", at(id, "/messages"), { ...waiting, text: "else" });
    expect(await problemOf(other)).toMatchObject({ status: 409, code: "message_id_conflict" });
  }
  await say202(id, { id: "gone", text: "Never mind.", delivery: "followUp" });
  expect((await send("DELETE", at(id, "/queue/gone"))).status).toBe(204);
  const queue = ((await conversationOf(id))["queue"] as Shown[]).map((waiting) => waiting["messageId"]);
  expect(queue).toEqual(["steer", "follow-up"]);
  // The id of a withdrawn message gets no receipt again: the message will never be delivered.
  const again = await send("POST", at(id, "/messages"), {
    id: "gone",
    text: "Never mind.",
    delivery: "followUp",
  });
  expect(await problemOf(again)).toMatchObject({ status: 409, code: "message_id_conflict" });

  held.release();
  // Between the two runs it is idle, too.
  await events.until((event) => event.name === "message.added" && event.data["id"] === "follow-up");
  await events.until(entering("idle"));
  const changes = events.received.filter((event) => event.name === "queue.changed");
  expect(
    changes.map((event) => (event.data["queue"] as Shown[]).map((waiting) => waiting["messageId"])),
  ).toEqual([
    ["steer"],
    ["steer", "follow-up"],
    ["steer", "follow-up", "gone"],
    ["steer", "follow-up"],
    ["follow-up"],
    [],
  ]);
  await events.cancel();
  const stored = await messagesOf(id);
  expect(stored.map((found) => found.type)).toEqual([
    "user",
    "agent",
    "tool",
    "user",
    "agent",
    "run_stop",
    "user",
    "agent",
    "run_stop",
  ]);
  expect(await say202(id, steer)).toEqual({ messageId: "steer", sequence: 4, delivery: "steer" });
  expect(await say202(id, followUp)).toEqual({ messageId: "follow-up", sequence: 7, delivery: "followUp" });
  expect(await problemOf(await send("DELETE", at(id, "/queue/steer")))).toMatchObject({
    code: "already_delivered",
  });
  const { cycles } = await read(at(id, "/cycles"));
  expect(cycles).toMatchObject([{ root: stored[0]?.id }, { root: "follow-up" }]);
});

test("a message cannot have the id of an answer or a result", async () => {
  const tag = script(say(toolCall("ls", { path: "." })), say("Done."), say("Still here."));
  const id = await create({ message: { text: `go ${tag}` } });
  await untilState(id, "idle");
  for (const found of (await messagesOf(id)).filter(({ type }) => type !== "user")) {
    const refused = await send("POST", at(id, "/messages"), { id: found.id, text: "mine" });
    expect(await problemOf(refused), found.type).toMatchObject({ status: 409, code: "message_id_conflict" });
  }
  expect(await say202(id, { text: "Are you there?" })).toMatchObject({ sequence: 6 });
  await untilState(id, "idle");
});

test("a cancel drops the request's answer, and `clearQueue` drops the queued messages", async () => {
  const [held, again] = [hold(), hold()];
  const tag = script(say("half an ", held, "answer"), say("followed ", again), say("Whole."));
  const id = await create({ message: { text: `go ${tag}` } });
  await held.reached;
  await say202(id, { id: "next", text: "And that.", delivery: "followUp" });
  const cancelled = await send("POST", at(id, "/cancel"));
  expect(cancelled.status).toBe(202);
  expect(["cancelling", "idle"]).toContain(((await bodyOf(cancelled))["state"] as Shown)["kind"]);
  // Without `clearQueue` the follow-up starts at once.
  await again.reached;
  await say202(id, { id: "last", text: "And that, too.", delivery: "followUp" });
  expect((await send("POST", at(id, "/cancel"), { clearQueue: true })).status).toBe(202);
  await untilState(id, "idle");
  expect((await conversationOf(id))["queue"]).toEqual([]);
  expect(await typesOf(id)).toEqual(["user", "run_stop", "user", "run_stop"]);
  expect(JSON.stringify(await messagesOf(id))).not.toMatch(/half an|followed/);
  await say202(id, { text: "Go on." });
  await untilState(id, "idle");
  expect(JSON.stringify(await messagesOf(id))).toContain("Whole.");
});

test("a cancelled tool keeps its output, the remaining calls are skipped, and idle is announced once", async () => {
  const tag = script(
    say(
      toolCall("bash", { command: "echo begun; sleep 60" }),
      toolCall("write", { path: "never.txt", content: "x" }),
    ),
  );
  const id = await create({ message: { text: `go ${tag}` } });
  const events = await follow(id);
  await events.until("tool.output");
  expect((await send("POST", at(id, "/cancel"))).status).toBe(202);
  await events.until((event) => event.name === "message.added" && event.data["type"] === "run_stop");
  expect(await messagesOf(id)).toMatchObject([
    { type: "user" },
    { type: "agent" },
    {
      type: "tool",
      content: [{ status: "cancelled", output: [{ text: "begun\n" }, { text: "Cancelled by user" }] }],
    },
    { type: "tool", content: [{ status: "skipped" }] },
    { type: "run_stop", content: [{ reason: "interrupted" }] },
  ]);
  await events.until(entering("idle"));
  expect(events.received.filter(entering("idle"))).toHaveLength(1);
  await events.cancel();
  await expect(readFile(join(system.cwd, "never.txt"))).rejects.toThrow("ENOENT");
});

test("an error is shown with its kind; the next message recovers, and a continuation can start from it", async () => {
  const tag = script(
    fail("authentication_error"),
    say("Better."),
    fail("invalid_request_error"),
    say("In short."),
  );
  const id = await create({ message: { text: `go ${tag}` } });
  expect(await untilState(id, "error")).toMatchObject({ errorKind: "auth" });
  expect(await typesOf(id)).toEqual(["user", "error", "run_stop"]);
  await say202(id, { text: "Try again." });
  await untilState(id, "idle");
  await say202(id, { text: "Once more." });
  await untilState(id, "error");
  const wound = await send("POST", at(id, "/continuation"));
  expect(wound.status).toBe(202);
  expect(await bodyOf(wound)).toMatchObject({ state: { kind: "awaiting_continuation" } });
  expect(await untilState(id, "context_exhausted")).toMatchObject({ summary: "In short." });

  const events = await follow(id, { headers: { "last-event-id": "0" } });
  expect((await events.until("context.exhausted")).data).toMatchObject({ summary: "In short." });
  await events.cancel();

  // An exhausted conversation stays readable and accepts nothing more.
  const refused = await problemOf(await send("POST", at(id, "/continuation")));
  expect(refused).toMatchObject({ status: 409, code: "context_exhausted", summary: "In short." });
  const mode = await problemOf(
    await send("POST", at(id, "/approval"), { decision: "deny", toolCallId: "t" }),
  );
  expect(mode).toMatchObject({ status: 409, code: "context_exhausted" });
  expect((await messagesOf(id)).at(-1)).toMatchObject({
    type: "continuation",
    content: [{ summary: "In short." }],
  });

  // A new conversation goes on in another directory, without the summary.
  const elsewhere = join(system.cwd, "elsewhere");
  await mkdir(elsewhere);
  const next = await create({ cwd: elsewhere, continuedFrom: { id, seed: false } });
  expect(await conversationOf(next)).toMatchObject({ continuedFrom: id, cwd: elsewhere });
  expect(await messagesOf(next)).toEqual([]);
  const unknown = { continuedFrom: { id: randomUUID(), seed: false } };
  expect(await problemOf(await send("POST", "/api/conversations", unknown))).toMatchObject({
    code: "not_found",
  });
});

test("archiving stops the work first, a message takes the conversation out again, and it can be removed", async () => {
  const tag = script(say(toolCall("bash", { command: "sleep 60" })), say("Back."));
  const id = await create({ message: { text: `go ${tag}` } });
  await untilState(id, "tool_executing");
  const archived = await send("PATCH", at(id), { archived: true });
  expect(await bodyOf(archived)).toMatchObject({ archived: true, state: { kind: "idle" } });
  expect((await typesOf(id)).at(-1)).toBe("run_stop");
  const ids = async (query: string) =>
    ((await read(`/api/conversations?${query}`))["conversations"] as Shown[]).map((found) => found["id"]);
  expect([(await ids("")).includes(id), (await ids("archived=true")).includes(id)]).toEqual([false, true]);
  // A cancel with nothing to stop, or archiving again, leaves it archived.
  expect(await bodyOf(await send("POST", at(id, "/cancel")))).toMatchObject({ state: { kind: "idle" } });
  expect(await bodyOf(await send("PATCH", at(id), { archived: true }))).toMatchObject({ archived: true });

  const events = await follow(id);
  await events.until("synced");
  await say202(id, { text: "Come back." });
  expect((await events.until("conversation.changed")).data).toMatchObject({ archived: false });
  await events.until(entering("idle"));
  const back = await send("PATCH", at(id), { archived: false });
  expect(await bodyOf(back)).toMatchObject({ archived: false });

  expect((await send("PATCH", at(id), { archived: true })).status).toBe(200);
  const removals = await Promise.all([send("DELETE", at(id)), send("DELETE", at(id))]);
  expect([204, 404]).toContain(removals[1].status);
  expect(removals[0].status).toBe(204);
  await events.until("conversation.deleted");
  expect(await events.next()).toBeNull();
  for (const rest of ["", "/messages", "/cycles", "/children", "/events"]) {
    expect(await problemOf(await get(at(id, rest))), rest).toMatchObject({ status: 404, code: "not_found" });
  }
  // The id is free again, and nothing of the old conversation comes back.
  await create({ id });
  expect(await conversationOf(id)).toMatchObject({ archived: false, lastEvent: 0 });
  expect(await messagesOf(id)).toEqual([]);
});

/** Stores a conversation in the given state; its workflow starts at the first request. */
async function stored(
  conversation: Partial<Conversation>,
  changes: object = {},
  messages: readonly Message[] = [],
): Promise<string> {
  const { config, cwd } = system;
  const fixed = { cwd, host: config.toolHost, model: config.model, ...changes };
  const fields = { conversation: valueWith({ sequence: messages.length, ...conversation }), messages };
  return (await createConversation(served.db, fields, { config: fixed })).id;
}

const SANDBOX = { kind: "available", abi: 7 } as const;

/** A Restricted conversation whose agent asks for an upgrade. */
async function asking(queue: readonly QueuedMessage[] = []): Promise<{ id: string; toolCallId: string }> {
  const tag = script(say("Thank you."));
  const root = randomUUID();
  const toolCallId = `toolu_${randomUUID().replaceAll("-", "")}`;
  const input = { reason: "to write" };
  const call = { id: toolCallId, name: "request_mode_upgrade", input };
  const tokens = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheCreationTokens: 0 };
  const messages = [
    message(
      1,
      {
        type: "user",
        actor: "human",
        content: [{ type: "text", text: `go ${tag}` }],
        display: { kind: "direct" },
      },
      root,
    ),
    message(2, {
      type: "agent",
      actor: "llm_agent",
      content: [{ type: "tool_use", ...call }],
      usage: tokens,
      display: { requestId: randomUUID(), stopReason: "tool_use", durationMs: 1 },
    }),
  ].map((found) => ({ ...found, cycleId: root }));
  const id = await stored(
    {
      mode: "restricted",
      queue,
      hasMessages: true,
      run: { cycleId: root, requests: 1, truncations: 0, reminders: 0, upgradeDenied: false },
      state: {
        kind: "awaiting_mode_approval",
        reason: "to write",
        toolCall: call,
        remaining: [],
        completed: [],
      },
    },
    { sandbox: SANDBOX },
    messages,
  );
  return { id, toolCallId };
}

test.each([
  ["approve", "unrestricted"],
  ["deny", "restricted"],
])("the decision to %s an upgrade counts once, and only for the call that asks", async (decision, mode) => {
  const { id, toolCallId } = await asking();
  const events = await follow(id);
  await events.until("synced");
  const other = await problemOf(
    await send("POST", at(id, "/approval"), { decision, toolCallId: "toolu_other" }),
  );
  expect(other).toMatchObject({ status: 409, code: "approval_mismatch", pendingToolCallId: toolCallId });
  expect(other.detail).toContain(toolCallId);
  const busy = await problemOf(await send("POST", at(id, "/messages"), { text: "Well?" }));
  expect(busy).toMatchObject({ code: "agent_busy", state: { kind: "awaiting_mode_approval" } });

  const decided = await send("POST", at(id, "/approval"), { decision, toolCallId });
  expect(decided.status).toBe(202);
  expect(await bodyOf(decided)).toMatchObject({ mode, state: { kind: "llm_requesting" } });
  await events.until(entering("idle"));
  const modes = events.received.filter((event) => event.name === "mode.changed").map((event) => event.data);
  expect(modes).toEqual(decision === "approve" ? [{ mode, by: "approval" }] : []);
  const repeated = await send("POST", at(id, "/approval"), { decision, toolCallId });
  expect([repeated.status, (await bodyOf(repeated))["mode"]]).toEqual([202, mode]);
  const contrary = decision === "approve" ? "deny" : "approve";
  const late = await problemOf(await send("POST", at(id, "/approval"), { decision: contrary, toolCallId }));
  expect(late).toMatchObject({ status: 409, code: "no_pending_approval" });

  const down = await send("POST", at(id, "/mode"), { mode: "restricted" });
  expect([down.status, await bodyOf(down)]).toEqual([202, { mode: "restricted" }]);
  expect(await conversationOf(id)).toMatchObject({ mode: "restricted" });
  const up = await problemOf(await send("POST", at(id, "/mode"), { mode: "unrestricted" }));
  expect(up).toMatchObject({ status: 409, code: "approval_required" });
  if (decision === "approve") {
    expect((await events.until("mode.changed")).data).toEqual({ mode: "restricted", by: "user" });
  }
  await events.cancel();
});

test("a sub-agent accepts no message, continuation or mode from a person, and is removed with its parent", async () => {
  const parentId = await create();
  const id = await stored(
    { state: { kind: "completed", result: "done", success: true } },
    { parentId, userInitiated: false },
  );
  for (const [path, body] of [
    ["/messages", { text: "And you?" }],
    ["/messages", { text: "And you?", delivery: "followUp" }],
    ["/continuation", undefined],
    ["/mode", { mode: "restricted" }],
  ] as const) {
    const refused = await problemOf(await send("POST", at(id, path), body));
    expect(refused, path).toMatchObject({ status: 409, code: "sub_agent_read_only" });
  }
  expect(await messagesOf(id)).toEqual([]);
  expect((await read(at(parentId, "/children")))["conversations"]).toEqual([await conversationOf(id)]);
  expect((await send("DELETE", at(parentId))).status).toBe(204);
  expect((await get(at(id))).status).toBe(404);
});

test("a full queue accepts no message until one is withdrawn", async () => {
  const queue = Array.from({ length: 32 }, (_, index) => queued(`number ${index}`, `q${index}`));
  const { id } = await asking(queue);
  const more = { id: "more", text: "One more.", delivery: "followUp" };
  const full = await problemOf(await send("POST", at(id, "/messages"), more));
  expect(full).toMatchObject({ status: 429, code: "queue_full" });
  expect((await send("DELETE", at(id, "/queue/q7"))).status).toBe(204);
  expect(await say202(id, more)).toEqual({ messageId: "more", sequence: null, delivery: "followUp" });
  expect((await send("POST", at(id, "/cancel"), { clearQueue: true })).status).toBe(202);
  expect(await conversationOf(id)).toMatchObject({ queue: [], state: { kind: "idle" } });
});

test("text up to the limit comes back as sent, except for characters that Postgres cannot store", async () => {
  const tag = script(say("Read."), say("Read."), say("Read."));
  const id = await create();
  for (const [sent, stored] of [
    [`👩‍👩‍👧 "'\\ </script> \u2028 tab\t ${tag}`, `👩‍👩‍👧 "'\\ </script> \u2028 tab\t ${tag}`],
    ["ü".repeat(128 * 1024), "ü".repeat(128 * 1024)],
    ["nul \u0000, half a pair \ud800", "nul \ufffd, half a pair \ufffd"],
  ]) {
    const body = { id: randomUUID(), text: sent };
    const answer = await say202(id, body);
    await untilState(id, "idle");
    const found = (await messagesOf(id)).find((one) => one.id === body.id);
    expect(found?.content).toEqual([{ type: "text", text: stored }]);
    expect(await say202(id, body)).toEqual(answer);
  }
});

test("the context warning is sent once, with its numbers", async () => {
  const tokens = { input_tokens: 850_000, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
  const full = { usage: { ...tokens, output_tokens: 1 } };
  const tag = script(answer(["Much."], full), answer(["More."], full));
  const id = await create();
  const events = await follow(id);
  await say202(id, { text: `go ${tag}` });
  await events.until(entering("idle"));
  await say202(id, { text: "On." });
  await events.until(entering("idle"));
  await events.cancel();
  const { usage, spent } = await conversationOf(id);
  const { contextUsed, contextWindow, contextRatio, warning } = usage as { [name: string]: unknown };
  expect([contextUsed, contextRatio, warning]).toEqual([850_001, 850_001 / Number(contextWindow), true]);
  const warned = events.received.filter((event) => event.name === "context.warned");
  expect(warned.map((event) => event.data)).toMatchObject([{ contextRatio }]);
  const last = (name: string) => events.received.findLast((event) => event.name === name)?.data;
  expect(last("usage.changed")).toEqual({ usage });
  expect(last("spending.changed")).toEqual(spent);
});

test("an unknown model is accepted, with the smallest known window", async () => {
  const { models } = (await read("/api/models")) as {
    models: { id: string; contextWindow: number; default: boolean }[];
  };
  const smallest = Math.min(...models.map((model) => model.contextWindow));
  const id = await create({ model: "made-up-model-9" });
  expect(await conversationOf(id)).toMatchObject({
    model: "made-up-model-9",
    usage: { contextWindow: smallest },
  });
  const usual = await conversationOf(await create());
  expect(usual["model"]).toBe(models.find((model) => model.default)?.id);
});

test("directories are completed from the beginning of a name", async () => {
  await mkdir(join(system.cwd, "alpha"));
  await mkdir(join(system.cwd, "alphabet"));
  await writeFile(join(system.cwd, "alpha.txt"), "");
  await symlink(join(system.cwd, "alpha"), join(system.cwd, "alphalink"));
  await symlink(join(system.cwd, "alpha.txt"), join(system.cwd, "alphafile"));
  await symlink(join(system.cwd, "nowhere"), join(system.cwd, "alphanone"));
  const complete = async (path: string) =>
    (await read(`/api/directories?path=${encodeURIComponent(path)}`))["directories"];
  expect(await complete(join(system.cwd, "alph"))).toEqual([
    join(system.cwd, "alpha"),
    join(system.cwd, "alphabet"),
    join(system.cwd, "alphalink"),
  ]);
  expect(await complete("relative")).toEqual([]);
  expect(await complete("/does/not/exist/")).toEqual([]);
  const long = await get(`/api/directories?path=/${"x".repeat(10_000)}`);
  expect(await bodyOf(long)).toEqual({ directories: [] });
});

test("bad input is refused with its code, and leaves no trace in the rows or the history", async () => {
  const id = await create({ title: "Untouched" });
  const trace = async () => ({
    conversation: await conversationOf(id),
    messages: await messagesOf(id),
    listed: ((await read("/api/conversations?archived=all"))["conversations"] as unknown[]).length,
    history: await eventsInHistory(id),
  });
  const before = await trace();
  const deep = "[".repeat(100_000);
  const { cwd } = system;
  const longName = `/${"x".repeat(5_000)}`;
  for (const [method, path, body, status, code] of [
    ["POST", at(id, "/messages"), "{", 400, "malformed_json"],
    ["POST", at(id, "/messages"), deep, 400, "malformed_json"],
    ["POST", at(id, "/messages"), deep + "]".repeat(100_000), 422, "invalid_request"],
    ["POST", at(id, "/messages"), { text: " \n " }, 422, "invalid_request"],
    ["POST", at(id, "/messages"), { text: ["x"] }, 422, "invalid_request"],
    ["POST", at(id, "/messages"), { text: "x", delivery: null }, 422, "invalid_request"],
    // If it were ignored, a misspelt field would make another message of it.
    ["POST", at(id, "/messages"), { text: "x", delivry: "steer" }, 422, "invalid_request"],
    ["POST", "/api/conversations", { cwd: system.cwd, mode: "unrestricted" }, 422, "invalid_request"],
    ["POST", at(id, "/messages"), { text: "x".repeat(256 * 1024 + 1) }, 413, "payload_too_large"],
    [
      "POST",
      at(id, "/messages"),
      { text: "x", images: [{ mediaType: "image/png", data: "" }] },
      422,
      "invalid_image",
    ],
    ["POST", at(id, "/cancel"), "nonsense", 400, "malformed_json"],
    ["POST", at(id, "/cancel"), { clearQueue: 1 }, 422, "invalid_request"],
    ["POST", at(id, "/approval"), "", 400, "malformed_json"],
    ["POST", at(id, "/approval"), { decision: "approve", toolCallId: "t" }, 409, "no_pending_approval"],
    ["POST", at(id, "/mode"), { mode: 7 }, 422, "invalid_request"],
    ["POST", at(id, "/mode"), { mode: "unrestricted" }, 409, "approval_required"],
    ["POST", at(id, "/continuation"), undefined, 409, "nothing_to_summarise"],
    ["PATCH", at(id), "}", 400, "malformed_json"],
    ["PATCH", at(id), { archived: "yes" }, 422, "invalid_request"],
    ["PATCH", at(id), { title: null }, 422, "invalid_request"],
    ["DELETE", at(id, "/queue/unknown"), undefined, 404, "not_found"],
    ["POST", "/api/conversations", { cwd, id }, 409, "already_exists"],
    ["POST", "/api/conversations", { cwd, message: { text: "\t" } }, 422, "invalid_request"],
    ["POST", "/api/conversations", { cwd, message: { text: "x", id: "not an id" } }, 422, "invalid_request"],
    ["POST", "/api/conversations", { cwd, continuedFrom: { id: 7, seed: true } }, 422, "invalid_request"],
    ["POST", "/api/conversations", { cwd, continuedFrom: { id, seed: true } }, 409, "no_summary"],
    ["POST", "/api/conversations", { cwd, title: "x".repeat(501) }, 422, "invalid_request"],
    ["POST", "/api/conversations", { cwd: longName }, 422, "invalid_cwd"],
    ["POST", "/api/conversations", { cwd: "" }, 422, "invalid_cwd"],
    ["GET", at(id, "/messages?limit=0"), undefined, 422, "invalid_request"],
    ["GET", at(id, "/cycles?before=unknown"), undefined, 422, "invalid_request"],
    ["GET", at(id, "/cycles?view=other"), undefined, 422, "invalid_request"],
  ] as const) {
    const refused = await problemOf(await send(method, path, body));
    const call = `${method} ${path} ${JSON.stringify([body]).slice(0, 80)}`;
    expect([refused.status, refused.code], call).toEqual([status, code]);
    expect(refused.detail.length, call).toBeGreaterThan(10);
    if (code === "invalid_request") expect(refused["errors"], call).not.toEqual([]);
  }
  expect(await trace()).toEqual(before);
  expect(served.reports).toEqual([]);
});

test("a client that disconnects leaves no stream behind", async () => {
  const open = async () =>
    Number(/^bedrock_event_streams (\d+)$/m.exec(await (await get("/metrics")).text())?.[1]);
  const id = await create();
  const before = await open();
  const leaving = new AbortController();
  const streams = await Promise.all(
    [at(id, "/events"), "/api/events"].map(
      async (path) => new EventReader(await get(path, { signal: leaving.signal })),
    ),
  );
  await Promise.all(streams.map((stream) => stream.until("synced")));
  expect(await open()).toBe(before + 2);
  leaving.abort();
  await expect.poll(open).toBe(before);
});

test("probes, documents and unknown paths answer over the wire as documented", async () => {
  // It answers even before the sandbox is known, and knows it soon after.
  await expect
    .poll(() => read("/healthz"))
    .toMatchObject({
      status: "ok",
      sandbox: { kind: expect.stringMatching(/available/) as string },
    });
  expect(await read("/readyz")).toEqual({ ready: true });
  expect(await read("/openapi.json")).toMatchObject({ openapi: "3.1.0" });
  const head = await get("/healthz", { method: "HEAD" });
  expect([head.status, await head.text()]).toEqual([200, ""]);
  expect(await problemOf(await get("/api/unknown"))).toMatchObject({ status: 404, code: "not_found" });
  const foreign = await get("/api/conversations", { headers: { origin: "https://evil.example" } });
  expect(await problemOf(foreign)).toMatchObject({ status: 403, code: "forbidden_origin" });
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(served.reports).toEqual([]);
});
