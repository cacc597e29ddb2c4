/** Sub-agents as clients see them (docs/http.md), on the whole system, in the mode that the kernel enforces. */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { TestConversation, textOf } from "../support/conversation.ts";
import { spawnFamily, spawning } from "../support/family.ts";
import { startSystem } from "../support/system.ts";
import { EventReader } from "./sse.ts";
import { bodyOf, problemOf, startApiOn } from "./support.ts";

const { available, reason } = await hostSandbox();
if (!available) console.warn(`SKIPPED, Restricted mode: ${reason ?? ""}`);

const system = await startSystem();
const { get, send } = startApiOn(system);

const submit = (result: string) => toolCall("submit_result", { result });
const at = (id: string, path = ""): string => `/api/conversations/${id}${path}`;
const read = async (path: string) => bodyOf(await get(path));

async function create(): Promise<TestConversation> {
  const body = await bodyOf(await send("POST", "/api/conversations", { cwd: system.cwd }));
  return new TestConversation(system, String(body["id"]));
}

test("REQ-BED-009: a sub-agent is among the children and in no listing, with a view and a stream of its own", async () => {
  const parent = await create();
  const heard = new EventReader(await get(at(parent.id, "/events")));
  const listed = new EventReader(await get("/api/events"));
  const held = hold();
  const family = await spawnFamily(system, [{ script: [say("Let me see. ", held, submit("seen"))] }], {
    parent,
  });
  await held.reached;
  const { id } = await family.child(1);
  const spawned = await heard.until("subagent.spawned");
  expect(spawned.data["id"]).toBe(id);
  expect(spawned.data["task"]).toContain("task 1");

  const view = await read(at(id));
  expect(view).toMatchObject({
    id,
    parentId: parent.id,
    userInitiated: false,
    cwd: system.cwd,
    state: { kind: "llm_requesting" },
  });
  expect(view["title"]).toContain("task 1");
  expect(await read(at(parent.id, "/children"))).toMatchObject({ conversations: [{ id }] });
  const { conversations } = await read("/api/conversations?archived=all&limit=1000");
  expect((conversations as { id: string }[]).map((shown) => shown.id)).toEqual([parent.id]);

  const own = new EventReader(await get(at(id, "/events")));
  expect((await own.until("snapshot")).data).toMatchObject({
    conversation: { id },
    messages: [{ type: "user" }],
  });
  held.release();
  const finished = await heard.until("subagent.finished");
  expect(finished.data).toEqual({ id, outcome: { success: true, result: "seen" } });
  await parent.untilState("idle");
  expect((await read(at(id)))["state"]).toEqual({ kind: "completed", result: "seen", success: true });
  const { cycles } = await read(at(id, "/cycles?view=steps"));
  expect(cycles).toMatchObject([{ root: `task-${id}`, reason: "completed" }]);
  const { messages } = await read(at(id, "/messages"));
  expect(messages).toMatchObject([
    { type: "user", actor: "llm_agent" },
    { type: "agent" },
    { type: "tool" },
    { type: "run_stop", content: [{ reason: "completed" }] },
  ]);

  // Deleting the parent deletes the sub-agent, too, and ends its stream with an event.
  expect((await send("DELETE", at(parent.id))).status).toBe(204);
  await own.until("conversation.deleted");
  expect((await get(at(id))).status).toBe(404);
  await listed.until("conversation.deleted");
  const told = listed.received.map(({ data }) => data["id"]);
  expect(told).not.toContain(id);
  await Promise.all([heard.cancel(), listed.cancel(), own.cancel()]);
});

test("a sub-agent refuses every command of a person except a cancel, at work and after its end", async () => {
  const parent = await create();
  const held = hold();
  const family = await spawnFamily(system, [{ script: [say("… ", held)] }], { parent });
  await held.reached;
  const { id } = await family.child(1);
  const refusals = async () => {
    for (const [path, body] of [
      ["/messages", { text: "And you?" }],
      ["/messages", { text: "And you?", delivery: "steer" }],
      ["/messages", { text: "And you?", delivery: "followUp" }],
      ["/continuation", undefined],
      ["/mode", { mode: "restricted" }],
    ] as const) {
      const { status, code } = await problemOf(await send("POST", at(id, path), body));
      expect([path, status, code]).toEqual([path, 409, "sub_agent_read_only"]);
    }
  };
  await refusals();
  const decision = { decision: "approve", toolCallId: "toolu_1" };
  expect((await problemOf(await send("POST", at(id, "/approval"), decision))).code).toBe(
    "no_pending_approval",
  );
  const cancelled = await send("POST", at(id, "/cancel"), {});
  expect(cancelled.status).toBe(202);
  expect((await family.report()).text).toContain("Cancelled by user");
  await parent.untilState("idle");
  await refusals();
  expect((await send("POST", at(id, "/cancel"), {})).status).toBe(202);
  expect((await read(at(id)))["state"]).toMatchObject({ kind: "failed", error: "Cancelled by user" });
});

test("a waiting parent gets a steer with its next request, and a follow-up after its run", async () => {
  const parent = await create();
  const held = hold();
  const family = await spawnFamily(system, [{ script: [say("… ", held, submit("seen"))] }], { parent });
  await held.reached;
  const direct = await problemOf(await send("POST", at(parent.id, "/messages"), { text: "Hello?" }));
  expect([direct.status, direct.code]).toEqual([409, "agent_busy"]);
  for (const delivery of ["steer", "followUp"]) {
    const answer = await send("POST", at(parent.id, "/messages"), { text: `a ${delivery}`, delivery });
    expect([answer.status, await bodyOf(answer)]).toMatchObject([202, { delivery, sequence: null }]);
  }
  held.release();
  await parent.until(({ conversation: { state, queue } }) => state.kind === "idle" && queue.length === 0);
  const said = (await parent.messages()).map(({ type }) => type);
  expect(said).toEqual(["user", "agent", "tool", "user", "agent", "run_stop", "user", "agent", "run_stop"]);
  expect(family.names.children).toHaveLength(1);
});

describe.skipIf(!available)("REQ-BED-018: a sub-agent is Restricted", () => {
  test("and knows it from its first request on; nothing that it reads names a tool that it lacks", async () => {
    const parent = await create();
    const calls = [
      toolCall("bash", { command: "touch file" }),
      toolCall("write", { path: "file", content: "x" }),
      toolCall("edit", { path: "file", oldText: "a", newText: "b" }),
      toolCall("patch", { path: "file", edits: [{ operation: "overwrite", content: "x" }] }),
    ];
    const script = [say(...calls), say("I am done."), say(submit("could not write"))];
    const family = await spawnFamily(system, [{ script }], { parent });
    expect((await family.report()).text).toContain("could not write");
    const requests = system.model.requestsOf(family.names.children[0] ?? "");
    expect(requests).toHaveLength(3);
    expect(JSON.stringify(requests[0]?.body.system)).toContain("You work in Restricted mode");
    for (const { body } of requests)
      expect(JSON.stringify(body)).not.toMatch(/request_mode_upgrade|spawn_agents/);
  });

  test("whatever its parent's mode", async () => {
    const parent = await create();
    const [approval, file, mine] = [`toolu_${randomUUID().replaceAll("-", "")}`, randomUUID(), randomUUID()];
    const child = spawning(system, [
      {
        script: [
          say(
            toolCall("bash", { command: `touch ${file}` }),
            toolCall("write", { path: file, content: "x" }),
            toolCall("request_mode_upgrade", { reason: "to write" }),
            toolCall("bash", { command: "echo can read > /dev/null && ls > /dev/null && echo seen" }),
          ),
          say(submit("could not write")),
        ],
      },
    ]);
    const name = randomUUID();
    const tag = system.model.script(name, [
      say(
        toolCall("request_mode_upgrade", { reason: "to delegate" }, approval),
        toolCall("bash", { command: `touch ${mine}` }),
        child.call,
      ),
      say("Done."),
    ]);
    await parent.send(`go ${tag}`);
    await parent.untilState("awaiting_mode_approval");
    await send("POST", at(parent.id, "/approval"), { decision: "approve", toolCallId: approval });
    await parent.untilState("idle");
    expect((await parent.stored()).conversation.mode).toBe("unrestricted");
    expect(existsSync(join(system.cwd, mine))).toBe(true);

    const { conversations } = await read(at(parent.id, "/children"));
    const [shown] = conversations as { id: string; mode: string }[];
    expect(shown?.mode).toBe("restricted");
    const results = await new TestConversation(system, shown?.id).results();
    expect(results.map(({ name: tool, status }) => [tool, status])).toEqual([
      ["bash", "failed"],
      ["write", "failed"],
      ["request_mode_upgrade", "failed"],
      ["bash", "completed"],
      ["submit_result", "completed"],
    ]);
    expect(textOf(results[1])).toContain("A sub-agent has to do its task without writing.");
    expect(textOf(results[3])).toContain("seen");
    expect(existsSync(join(system.cwd, file))).toBe(false);
  });
});

test("operators see a sub-agent's parent, task, status and result in Temporal", async () => {
  const parent = await create();
  const held = hold();
  const family = await spawnFamily(system, [{ script: [say("… ", held, submit("seen"))] }], { parent });
  await held.reached;
  const child = await family.child(1);
  const description = await child.handle.describe();
  expect(description.parentExecution?.workflowId).toBe(parent.id);
  expect(await description.staticSummary()).toMatch(/^sub-agent: task 1/);
  const attributes = description.typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]);
  expect(attributes).toContainEqual(["parent", parent.id]);
  expect(attributes).toContainEqual(["status", "working"]);
  held.release();
  await parent.untilState("idle");
  await expect.poll(async () => (await child.handle.describe()).status.name).toBe("COMPLETED");
  expect(await child.handle.result()).toEqual({ success: true, result: "seen" });
});
