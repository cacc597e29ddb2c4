/** The API on the whole system: REQ-BED-002, 005, 007, 010, 014, 023 and docs/http.md. */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import type { Cycle } from "../../machine/cycles.ts";
import { sandboxOfHost } from "../../sandbox/host.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";
import { EventReader } from "./sse.ts";
import { bodyOf, problemOf, startApiOn } from "./support.ts";

const system = await startSystem();
const sandbox = await sandboxOfHost();
const api = startApiOn(system);
const { get, send } = api;

type Body = Awaited<ReturnType<typeof bodyOf>>;

async function create(body: object = {}): Promise<Body & { id: string }> {
  const response = await send("POST", "/api/conversations", { cwd: system.cwd, ...body });
  expect(response.status).toBe(201);
  return (await bodyOf(response)) as Body & { id: string };
}

/** Follows the conversation's stream until it is in a state of this kind. */
async function untilState(id: string, kind: string): Promise<Body> {
  const events = new EventReader(await get(`/api/conversations/${id}/events`));
  const found = await events.until((event) => {
    const { state, conversation } = event.data as { state?: Body; conversation?: { state: Body } };
    return (state ?? conversation?.state)?.["kind"] === kind;
  });
  await events.cancel();
  return found.data;
}

test("a new conversation is Restricted where the kernel enforces it, and can be read at once", async () => {
  const created = await create({ title: "  Look around " });
  expect(created).toMatchObject({
    title: "Look around",
    slug: "look-around",
    cwd: system.cwd,
    host: system.config.toolHost,
    mode: sandbox.kind === "available" ? "restricted" : "unrestricted",
    sandbox,
    state: { kind: "idle" },
    archived: false,
    userInitiated: true,
  });
  expect(await bodyOf(await get(`/api/conversations/${created.id}`))).toEqual(created);
});

test("a first message is sent at once, and the answer comes", async () => {
  const tag = system.model.script(randomUUID(), [say("Hello.")]);
  const created = await create({ message: { text: `hi ${tag}`, id: "first" } });
  expect(created).toMatchObject({ title: `hi ${tag}` });
  await untilState(created.id, "idle");
  const { messages } = (await bodyOf(await get(`/api/conversations/${created.id}/messages`))) as {
    messages: Body[];
  };
  expect(messages.map((message) => message["type"])).toEqual(["user", "agent", "run_stop"]);
  expect(messages[0]).toMatchObject({ id: "first", sequence: 1, display: { kind: "direct" } });
});

test("an invalid working directory is refused, and nothing is stored", async () => {
  const file = join(system.cwd, "a file");
  await writeFile(file, "");
  for (const cwd of ["relative/path", "", file, "/does/not/exist", "/tmp/\0"]) {
    const id = randomUUID();
    const answer = await problemOf(await send("POST", "/api/conversations", { cwd, id }));
    expect(answer).toMatchObject({ status: 422, code: "invalid_cwd" });
    expect((await get(`/api/conversations/${id}`)).status).toBe(404);
  }
  expect(await problemOf(await send("POST", "/api/conversations", {}))).toMatchObject({
    code: "invalid_cwd",
  });
});

test("an id is given to one conversation only, also when several requests ask for it at the same time", async () => {
  const id = `mine_${randomUUID()}`;
  await create({ id });
  const again = await problemOf(await send("POST", "/api/conversations", { cwd: system.cwd, id }));
  expect(again).toMatchObject({ status: 409, code: "already_exists" });

  const contested = randomUUID();
  const answers = await Promise.all(
    ["a", "b", "c"].map((title) =>
      send("POST", "/api/conversations", { cwd: system.cwd, id: contested, title }),
    ),
  );
  expect(answers.map((answer) => answer.status).sort()).toEqual([201, 409, 409]);
});

test("of a conversation that is still being made nobody is told that it exists: it is not known yet", async () => {
  const id = randomUUID();
  const workflows = { ...api.workflows, open: () => Promise.resolve(false) };
  const { send } = startApiOn(system, { workflows });
  const asked = { cwd: system.cwd, id };
  const unknown = await problemOf(await send("POST", "/api/conversations", asked));
  expect(unknown).toMatchObject({ status: 503, code: "unavailable" });
  await create({ id });
  const known = await problemOf(await send("POST", "/api/conversations", asked));
  expect(known).toMatchObject({ status: 409, code: "already_exists" });
});

test("a message sent again gets the same receipt; another text under its id is a conflict", async () => {
  const tag = system.model.script(randomUUID(), [say("One.")]);
  const { id } = await create();
  const path = `/api/conversations/${id}/messages`;
  const message = { id: "m1", text: `again ${tag}` };
  const [first, second] = await Promise.all([send("POST", path, message), send("POST", path, message)]);
  expect([first.status, second.status]).toEqual([202, 202]);
  const answer = { messageId: "m1", sequence: 1, delivery: "direct" };
  expect([await bodyOf(first), await bodyOf(second)]).toEqual([answer, answer]);
  await untilState(id, "idle");
  expect(await bodyOf(await send("POST", path, message))).toEqual(answer);
  const other = await problemOf(await send("POST", path, { id: "m1", text: "something else" }));
  expect(other).toMatchObject({ status: 409, code: "message_id_conflict" });
});

test("when two texts arrive under one id at the same time, one of them is a conflict", async () => {
  const { id } = await create();
  const path = `/api/conversations/${id}/messages`;
  const answers = await Promise.all([
    send("POST", path, { id: "m", text: "left" }),
    send("POST", path, { id: "m", text: "right" }),
  ]);
  expect(answers.map((answer) => answer.status).sort()).toEqual([202, 409]);
});

test("a busy agent refuses a direct message, says so with its state, and takes a steer and a follow-up", async () => {
  const held = hold();
  const tag = system.model.script(randomUUID(), [say("working ", held), say("steered"), say("followed")]);
  const { id } = await create({ message: { text: `go ${tag}` } });
  await held.reached;
  const path = `/api/conversations/${id}/messages`;
  const busy = await problemOf(await send("POST", path, { text: "now!" }));
  expect(busy).toMatchObject({ status: 409, code: "agent_busy", state: { kind: "llm_requesting" } });
  expect(busy.detail).toContain("Cancel");

  const followUp = await bodyOf(
    await send("POST", path, { text: "later", delivery: "followUp", id: "later" }),
  );
  expect(followUp).toEqual({ messageId: "later", sequence: null, delivery: "followUp" });
  const unwanted = await bodyOf(await send("POST", path, { text: "oops", delivery: "followUp", id: "oops" }));
  expect(unwanted).toMatchObject({ sequence: null });
  const shown = await bodyOf(await get(`/api/conversations/${id}`));
  expect(shown["queue"]).toMatchObject([{ messageId: "later", text: "later" }, { messageId: "oops" }]);
  expect((await send("DELETE", `/api/conversations/${id}/queue/oops`)).status).toBe(204);
  expect((await send("DELETE", `/api/conversations/${id}/queue/oops`)).status).toBe(404);
  held.release();
  const events = new EventReader(await get(`/api/conversations/${id}/events?after=0`));
  await events.until((event) => event.name === "message.added" && event.data["id"] === "later");
  await events.cancel();
  const delivered = await problemOf(await send("DELETE", `/api/conversations/${id}/queue/later`));
  expect(delivered).toMatchObject({ status: 409, code: "already_delivered" });
});

test("the demo model can be steered while it works, and the cycle shows the steer as a step", async () => {
  const { id } = await create();
  const path = `/api/conversations/${id}`;
  const go = join(system.cwd, `${id}.go`);
  await send("POST", `${path}/messages`, {
    text: `run: until [ -e ${go} ]; do sleep 0.02; done; echo first`,
  });
  await untilState(id, "tool_executing");
  await send("POST", `${path}/messages`, { text: "run: echo second", delivery: "steer" });
  await writeFile(go, "");
  await untilState(id, "idle");
  const { cycles } = (await bodyOf(await get(`${path}/cycles`))) as unknown as { cycles: Cycle[] };
  const steps = cycles.flatMap((cycle) => ("steps" in cycle ? cycle.steps : []));
  // Some models think aloud before each answer.
  const shown = steps.filter((step) => step.kind === "user" || step.item?.type !== "reasoning");
  expect([cycles.length, shown]).toMatchObject([
    1,
    [
      { kind: "user", delivery: "direct" },
      { kind: "ai_block", groups: [{ kind: "bash", calls: [{ status: "completed" }] }] },
      { kind: "user", delivery: "steer" },
      // It reports the output of the first command and runs the second.
      { kind: "ai_block", item: { text: expect.stringContaining("first") as string }, groups: [] },
      { kind: "ai_block", groups: [{ kind: "bash", calls: [{ input: { command: "echo second" } }] }] },
      { kind: "ai_block", item: { text: expect.stringContaining("second") as string } },
    ],
  ]);
});

test("a cancel is answered with cancelling or idle, and is no error when nothing runs", async () => {
  const tag = system.model.script(randomUUID(), [say(toolCall("bash", { command: "sleep 60" }))]);
  const { id } = await create({ message: { text: `sleep ${tag}` } });
  await untilState(id, "tool_executing");
  const cancelled = await send("POST", `/api/conversations/${id}/cancel`, { clearQueue: true });
  expect(cancelled.status).toBe(202);
  expect(["cancelling", "idle"]).toContain(((await bodyOf(cancelled))["state"] as Body)["kind"]);
  await untilState(id, "idle");
  // Clients without a body may still send its content type.
  for (const headers of [{}, { "content-type": "application/json" }]) {
    const again = await get(`/api/conversations/${id}/cancel`, { method: "POST", headers });
    expect(again.status).toBe(202);
    expect(await bodyOf(again)).toEqual({ state: { kind: "idle" }, next: null, queueHeld: null });
  }
});

test("an upgrade by hand, a downgrade without a sandbox and a decision without a question are refused", async () => {
  const bare = await startSystem({ hasSandbox: false });
  const { send } = startApiOn(bare);
  const { id } = await TestConversation.open(bare);
  const up = await problemOf(await send("POST", `/api/conversations/${id}/mode`, { mode: "unrestricted" }));
  expect(up).toMatchObject({ status: 409, code: "approval_required" });
  const down = await problemOf(await send("POST", `/api/conversations/${id}/mode`, { mode: "restricted" }));
  expect(down).toMatchObject({ status: 409, code: "sandbox_unavailable" });
  expect(down["requirements"]).toContain("5.13");
  const approval = { decision: "approve", toolCallId: "toolu_1" };
  const decided = await problemOf(await send("POST", `/api/conversations/${id}/approval`, approval));
  expect(decided).toMatchObject({ status: 409, code: "no_pending_approval" });
});

test("a continuation ends a conversation, and a new one goes on from its summary", async () => {
  const { id } = await create();
  const early = await problemOf(await send("POST", `/api/conversations/${id}/continuation`));
  expect(early).toMatchObject({ status: 409, code: "nothing_to_summarise" });
  const seed = { cwd: system.cwd, continuedFrom: { id, seed: true } };
  expect(await problemOf(await send("POST", "/api/conversations", seed))).toMatchObject({
    code: "no_summary",
  });

  const tag = system.model.script(randomUUID(), [say("Done."), say("We built a shed.")]);
  await send("POST", `/api/conversations/${id}/messages`, { text: `build ${tag}` });
  await untilState(id, "idle");
  const wound = await send("POST", `/api/conversations/${id}/continuation`);
  expect(wound.status).toBe(202);
  await untilState(id, "context_exhausted");
  const refused = await problemOf(await send("POST", `/api/conversations/${id}/messages`, { text: "more" }));
  expect(refused).toMatchObject({
    status: 409,
    code: "context_exhausted",
    summary: "We built a shed.",
    startAnew: { body: { continuedFrom: { id } } },
  });

  const next = await bodyOf(await send("POST", "/api/conversations", { continuedFrom: { id, seed: true } }));
  expect(next).toMatchObject({ continuedFrom: id, cwd: system.cwd });
  const { messages } = (await bodyOf(
    await get(`/api/conversations/${String(next["id"])}/messages`),
  )) as unknown as { messages: { type: string; content: [{ text: string }] }[] };
  expect(messages[0]?.type).toBe("system");
  expect(messages[0]?.content[0].text).toContain("We built a shed.");
  expect((await bodyOf(await get(`/api/conversations/${id}`)))["continuedTo"]).toEqual([next["id"]]);
});

test("REQ-BED-021: the model of a continuing conversation reads the summary; the person chooses seed, model and directory", async () => {
  const key = randomUUID();
  const tag = system.model.script(key, [say("Done."), say("We built a shed."), say("Go on.")]);
  const { id } = await create({ model: "claude-haiku-4-5" });
  await send("POST", `/api/conversations/${id}/messages`, { text: `build ${tag}` });
  await untilState(id, "idle");
  await send("POST", `/api/conversations/${id}/continuation`);
  await untilState(id, "context_exhausted");

  const continued = async (body: object) =>
    bodyOf(await send("POST", "/api/conversations", { continuedFrom: { id, seed: true }, ...body }));
  const next = await continued({ message: { text: `what did we do? ${tag}` } });
  const nextId = String(next["id"]);
  await untilState(nextId, "idle");
  expect(next).toMatchObject({ model: "claude-haiku-4-5", cwd: system.cwd, continuedFrom: id });
  const asked = system.model.requestsOf(key).at(-1);
  expect([asked?.body.model, JSON.stringify(asked?.body.messages)]).toEqual([
    "claude-haiku-4-5",
    expect.stringContaining("We built a shed."),
  ]);

  expect(await continued({ model: "claude-opus-5-5", cwd: "/" })).toMatchObject({
    ...{ model: "claude-opus-5-5", cwd: "/", continuedFrom: id },
  });
  const bare = await continued({ continuedFrom: { id, seed: false } });
  expect(bare).toMatchObject({ continuedFrom: id, cwd: system.cwd });
  const { messages } = await bodyOf(await get(`/api/conversations/${String(bare["id"])}/messages`));
  expect(messages).toEqual([]);
  // A conversation's model cannot change after its creation.
  for (const [method, path, body] of [
    ["PATCH", `/api/conversations/${nextId}`, { model: "claude-opus-5-5" }],
    ["POST", `/api/conversations/${nextId}/messages`, { text: "x", model: "claude-opus-5-5" }],
  ] as const) {
    expect(await problemOf(await send(method, path, body))).toMatchObject({ code: "invalid_request" });
  }
});

test("title and archived flag can be changed, and a message takes a conversation out of the archive", async () => {
  const tag = system.model.script(randomUUID(), [say("Here.")]);
  const { id } = await create();
  const changed = await send("PATCH", `/api/conversations/${id}`, { title: "Shelf", archived: true });
  expect(changed.status).toBe(200);
  expect(await bodyOf(changed)).toMatchObject({ title: "Shelf", archived: true });
  const sent = await send("POST", `/api/conversations/${id}/messages`, { text: `hello ${tag}` });
  expect(sent.status).toBe(202);
  expect(await bodyOf(await get(`/api/conversations/${id}`))).toMatchObject({ archived: false });
});

test("a removal stops the work, sends conversation.deleted to the streams and leaves nothing", async () => {
  const tag = system.model.script(randomUUID(), [say(toolCall("bash", { command: "sleep 60" }))]);
  const { id } = await create({ message: { text: `sleep ${tag}` } });
  await untilState(id, "tool_executing");
  const events = new EventReader(await get(`/api/conversations/${id}/events`));
  await events.until("synced");
  expect((await send("DELETE", `/api/conversations/${id}`)).status).toBe(204);
  await events.until("conversation.deleted");
  expect(await events.next()).toBeNull();
  expect((await get(`/api/conversations/${id}`)).status).toBe(404);
  expect((await get(`/api/conversations/${id}/messages`)).status).toBe(404);
  expect((await send("DELETE", `/api/conversations/${id}`)).status).toBe(404);
});

test("the removal of a conversation whose workflow was lost leaves nothing either", async () => {
  const { id } = await create({});
  await system.temporal.workflow.getHandle(id).terminate();
  expect((await send("DELETE", `/api/conversations/${id}`)).status).toBe(204);
  expect((await get(`/api/conversations/${id}`)).status).toBe(404);
});

test("directories are completed on the tool host", async () => {
  const { directories } = await bodyOf(await get(`/api/directories?path=${encodeURIComponent(system.cwd)}`));
  expect(directories).toContain(system.cwd);
});

test("/readyz answers 200 when workers poll", async () => {
  expect((await get("/readyz")).status).toBe(200);
});
