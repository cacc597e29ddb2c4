/**
 * Criteria of the requirements that only the running system can show and that no other file does: the real workflow,
 * worker, Postgres and HTTP. docs/requirements.md says which test shows which criterion.
 */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sendRestarted } from "../../local/restart.ts";
import { hold } from "../../local/scripted/cues.ts";
import type { BlockParam } from "../../local/scripted/messages.ts";
import type { RecordedRequest } from "../../local/scripted/recorder.ts";
import * as script from "../../local/scripted/script.ts";
import { fail, say, toolCall } from "../../local/scripted/script.ts";
import { EventReader, type Received } from "../api/sse.ts";
import { bodyOf, problemOf, startApiOn } from "../api/support.ts";
import { textOf, TestConversation } from "../support/conversation.ts";
import { isDead, pidIn } from "../support/processes.ts";
import { startSystem } from "../support/system.ts";
import { countedTool } from "./counted-tool.ts";

const system = await startSystem();
const { get, send } = startApiOn(system);

/** Scripts the model for one conversation. */
function scripted(...answers: readonly script.Answer[]): { readonly name: string; readonly tag: string } {
  const name = randomUUID();
  return { name, tag: system.model.script(name, answers) };
}

async function create(body: object = {}): Promise<TestConversation> {
  const response = await send("POST", "/api/conversations", { cwd: system.cwd, ...body });
  const { id } = await bodyOf(response);
  expect(response.status).toBe(201);
  return new TestConversation(system, String(id));
}

async function follow(conversation: TestConversation): Promise<EventReader> {
  return new EventReader(await get(`/api/conversations/${conversation.id}/events`));
}

const stateOf = (event: Received): string | undefined =>
  event.name === "state.changed" ? (event.data["state"] as { kind: string }).kind : undefined;
const isState = (kind: string) => (event: Received) => stateOf(event) === kind;

/** The blocks of a request's last turn. */
const lastTurn = (request: RecordedRequest | undefined): readonly BlockParam[] => {
  const content = request?.body.messages.at(-1)?.content ?? [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
};

/** A command that writes its process id to a file and waits until the file `name.go` is there. */
const waiting = (name: string): string =>
  `echo $$ > ${name}.pid; until [ -e ${name}.go ]; do sleep 0.02; done`;

/** A turn of another conversation. What could have begun before it has begun when it is over. */
async function turnElsewhere(): Promise<void> {
  const other = await TestConversation.open(system);
  const { tag } = scripted(say(toolCall("bash", { command: "true" })), say("Done."));
  await other.send(`go ${tag}`);
  await other.untilState("idle");
}

test("REQ-BED-007: a message is stored before the model is asked, and an answer before its tool runs", async () => {
  const conversation = await TestConversation.open(system, "unrestricted");
  await conversation.until(() => true);
  const tool = countedTool(system);
  const held = hold();
  const tag = system.model.script(tool.name, [say("Now. ", held, tool.call), say("Done.")]);

  let unblock = await conversation.block();
  const sent = conversation.send(`go ${tag}`);
  await conversation.untilBlocked(1);
  await turnElsewhere();
  expect(system.model.requestsOf(tool.name)).toEqual([]);
  await unblock();
  await sent;
  await held.reached;
  expect((await conversation.stored()).conversation.state.kind).toBe("llm_requesting");
  expect(await conversation.types()).toEqual(["user"]);

  unblock = await conversation.block();
  held.release();
  await conversation.untilBlocked(1);
  await turnElsewhere();
  expect(tool.runs()).toBe(0);
  await unblock();
  await conversation.untilState("idle");
  expect(tool.runs()).toBe(1);
  expect(system.model.requestsOf(tool.name)).toHaveLength(2);
});

test("REQ-BED-007: after a restart of the system a conversation is idle, its history is whole, and it goes on", async () => {
  const own = await startSystem({ workers: 0 });
  const worker = await own.startWorker();
  const conversation = await TestConversation.open(own);
  const held = hold();
  const name = randomUUID();
  const tag = own.model.script(name, [
    say(script.thinking("Hm."), "Looking. ", toolCall("bash", { command: "echo found" })),
    say("Found."),
    say("never stored ", held),
    say("And on."),
  ]);
  await conversation.send(`first ${tag}`);
  await conversation.untilState("idle");
  await conversation.send("second");
  await held.reached;
  const before = await conversation.messages();
  expect(before.map((message) => message.type)).toEqual([
    ...["user", "agent", "tool", "agent", "run_stop"],
    "user",
  ]);
  await worker.stop();

  const { databaseUrl, taskQueue } = own.config;
  const restart = { client: own.temporal, databaseUrl, taskQueue, policy: "idle" } as const;
  const { atRest } = await sendRestarted(restart);
  await own.startWorker();
  await atRest();
  expect((await conversation.stored()).conversation.state).toEqual({ kind: "idle" });
  const after = await conversation.messages();
  expect(after.slice(0, before.length)).toEqual(before);
  expect(after.slice(before.length).map((message) => message.type)).toEqual(["note", "run_stop"]);

  await conversation.send("third");
  await conversation.untilState("idle");
  expect(JSON.stringify(own.model.requestsOf(name).at(-1)?.body.messages)).toContain("found");
  expect(JSON.stringify((await conversation.messages()).at(-2))).toContain("And on.");
});

test.concurrent(
  "REQ-BED-002, 003: an idle conversation asks the model with the message, and is idle again with the answer stored",
  async () => {
    const conversation = await TestConversation.open(system);
    const held = hold();
    const { name, tag } = scripted(say("The ", held, "answer."));
    await conversation.send(`What is it? ${tag}`);
    await held.reached;
    expect((await conversation.stored()).conversation.state).toMatchObject({
      kind: "llm_requesting",
      attempt: 1,
      retry: null,
    });
    const [request] = system.model.requestsOf(name);
    expect(lastTurn(request)).toMatchObject([{ type: "text", text: `What is it? ${tag}` }]);
    held.release();
    expect(await conversation.untilState("idle")).toEqual({ kind: "idle" });
    const [, answer, stop] = await conversation.messages();
    expect(answer).toMatchObject({ type: "agent", content: [{ text: "The " }, { text: "answer." }] });
    expect(stop).toMatchObject({ type: "run_stop", content: [{ reason: "completed" }] });
    expect(system.model.requestsOf(name)).toHaveLength(1);
  },
);

test.concurrent(
  "REQ-BED-002: a message while a tool runs is refused, and the refusal says that one can cancel",
  async () => {
    const name = randomUUID();
    const { tag } = scripted(say(toolCall("bash", { command: waiting(name) })), say("Done."));
    const conversation = await create({ message: { text: `go ${tag}` } });
    await conversation.untilState("tool_executing");
    const path = `/api/conversations/${conversation.id}/messages`;
    const refused = await problemOf(await send("POST", path, { text: "now!" }));
    expect(refused).toMatchObject({ status: 409, code: "agent_busy", state: { kind: "tool_executing" } });
    expect(refused.detail).toMatch(/agent is busy.*Cancel/);
    await writeFile(join(system.cwd, `${name}.go`), "");
    await conversation.untilState("idle");
    expect(await conversation.types()).toEqual(["user", "agent", "tool", "agent", "run_stop"]);
  },
);

test.concurrent(
  "REQ-BED-003: after an answer that does not end the turn the model is asked again, without a stop between",
  async () => {
    const search = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} };
    const { name, tag } = scripted(
      script.answer(["Half an "], { stopReason: "max_tokens" }),
      script.answer(["answer. ", script.rawBlock(search)], { stopReason: "pause_turn" }),
      say("The rest."),
    );
    const conversation = await create();
    const events = await follow(conversation);
    await conversation.send(`go ${tag}`);
    await events.until(isState("idle"));
    await events.cancel();
    const states = events.received.flatMap((event) => stateOf(event) ?? []);
    expect(states).toEqual(["llm_requesting", "llm_requesting", "llm_requesting", "idle"]);
    expect(await conversation.types()).toEqual(["user", "agent", "system", "agent", "agent", "run_stop"]);
    expect(system.model.requestsOf(name)).toHaveLength(3);
  },
);

test.concurrent(
  "REQ-BED-003, 004: calls run one by one in the order requested; every result, a failure too, goes to the model",
  async () => {
    const conversation = await TestConversation.open(system, "unrestricted");
    const name = randomUUID();
    const calls = [
      toolCall("bash", { command: `${waiting(name)}; echo one >> ${name}` }, `first_${name}`),
      toolCall("bash", { command: `echo two >> ${name}; echo broken; exit 3` }, `second_${name}`),
      toolCall("bash", { command: `cat ${name}` }, `third_${name}`),
    ];
    const ids = calls.map((call) => (call.kind === "tool_use" ? call.id : null));
    const tag = system.model.script(name, [say("All three. ", ...calls), say("The second one failed.")]);
    await conversation.send(`go ${tag}`);
    await pidIn(join(system.cwd, `${name}.pid`));
    const { state } = (await conversation.stored()).conversation;
    expect(state).toMatchObject({
      kind: "tool_executing",
      current: { id: ids[0] },
      remaining: [{ id: ids[1] }, { id: ids[2] }],
    });
    expect(await conversation.types()).toEqual(["user", "agent"]);
    expect(existsSync(join(system.cwd, name))).toBe(false);
    await writeFile(join(system.cwd, `${name}.go`), "");
    await conversation.untilState("idle");
    const results = await conversation.results();
    expect(results.map(({ toolCallId, status }) => [toolCallId, status])).toEqual([
      [ids[0], "completed"],
      [ids[1], "failed"],
      [ids[2], "completed"],
    ]);
    const sent = lastTurn(system.model.requestsOf(name)[1]);
    expect(sent.map((block) => (block.type === "tool_result" ? block.tool_use_id : block.type))).toEqual(ids);
    expect(JSON.stringify(sent[1])).toMatch(/broken.*exit code 3.*"is_error":true/);
    expect(JSON.stringify(sent[2])).toContain("one\\ntwo");
    expect(JSON.stringify((await conversation.messages()).at(-2))).toContain("The second one failed.");
  },
);

test.concurrent(
  "REQ-BED-005: a Stop ends a request at any point of its answer, before the provider says more, and nothing of it is kept",
  async () => {
    const holds = [hold(), hold(), hold()] as const;
    const { name, tag } = scripted(
      script.answer(["never"], { beforeHeaders: [holds[0]] }),
      say(script.thinking(["Hm ", holds[1]])),
      say("Some text. ", script.rawToolCall("bash", ['{"command": "touch', holds[2]])),
      say("Fresh."),
    );
    const conversation = await create();
    for (const [index, held] of holds.entries()) {
      await conversation.send(`go ${tag}`);
      await held.reached;
      await conversation.cancel();
      await conversation.untilState("idle");
      const request = system.model.requestsOf(name)[index];
      await request?.ended;
      expect(request?.closedByClient).toBe(true);
    }
    expect(await conversation.types()).toEqual(holds.flatMap(() => ["user", "run_stop"]));
    expect((await conversation.stored()).conversation.usage).toMatchObject({
      inputTokens: 0,
      outputTokens: 0,
    });
    await conversation.send("again");
    await conversation.untilState("idle");
    const request = system.model.requestsOf(name).at(-1);
    expect(request?.body.messages.every((message) => message.role === "user")).toBe(true);
  },
);

test.concurrent(
  "REQ-BED-005: a Stop while a retry is pending leads to idle at once, and no further request is made",
  async () => {
    const { name, tag } = scripted(fail("overloaded_error"), say("Fresh."));
    const conversation = await TestConversation.open(system);
    await conversation.send(`go ${tag}`);
    await conversation.until(({ conversation: { state } }) => "retry" in state && state.retry !== null);
    await conversation.cancel();
    expect((await conversation.stored()).conversation.state).toEqual({ kind: "idle" });
    await conversation.send("again");
    await conversation.untilState("idle");
    expect(system.model.requestsOf(name)).toHaveLength(2);
    expect(await conversation.types()).toEqual(["user", "run_stop", "user", "agent", "run_stop"]);
  },
);

test.concurrent(
  "REQ-BED-005: a Stop among tools keeps finished results, kills the running tool and its children, skips the rest, and the model accepts the history",
  async () => {
    const conversation = await TestConversation.open(system, "unrestricted");
    const name = randomUUID();
    const tree = `sleep 300 & echo $! > ${name}.child; echo begun; ${waiting(name)}`;
    const tag = system.model.script(name, [
      say(
        toolCall("bash", { command: "echo done" }),
        toolCall("bash", { command: tree }),
        toolCall("bash", { command: `touch ${name}.never` }),
      ),
      say("Understood."),
    ]);
    await conversation.send(`go ${tag}`);
    const pids = [
      await pidIn(join(system.cwd, `${name}.pid`)),
      await pidIn(join(system.cwd, `${name}.child`)),
    ];
    await conversation.cancel();
    await conversation.untilState("idle");
    expect(pids.filter((pid) => !isDead(pid))).toEqual([]);
    const results = await conversation.results();
    expect(results.map((result) => result.status)).toEqual(["completed", "cancelled", "skipped"]);
    expect(results.map(textOf)).toEqual([
      "done\n",
      "begun\n\nCancelled by user",
      "Skipped due to cancellation",
    ]);
    expect(existsSync(join(system.cwd, `${name}.never`))).toBe(false);
    await conversation.send("again");
    await conversation.untilState("idle");
    expect(lastTurn(system.model.requestsOf(name)[1]).map((block) => block.type)).toEqual([
      ...["tool_result", "tool_result", "tool_result"],
      "text",
    ]);
  },
);

test.concurrent(
  "REQ-BED-006: network, rate limit and server errors are retried with growing pauses, clients get an event for each, and the final error says so",
  async () => {
    const { name, tag } = scripted(
      script.dropConnection(),
      fail("rate_limit_error"),
      fail("api_error", { status: 500 }),
    );
    const conversation = await create();
    const events = await follow(conversation);
    await conversation.send(`go ${tag}`);
    await events.until(isState("error"));
    await events.cancel();
    const told = events.received.filter((event) => event.name === "llm.retry_scheduled");
    expect(told.map(({ data }) => [data["attempt"], data["errorKind"]])).toEqual([
      [2, "network"],
      [3, "rate_limit"],
    ]);
    expect(told.every(({ data }) => typeof data["message"] === "string" && data["message"] !== "")).toBe(
      true,
    );
    const states = events.received.flatMap((event) => stateOf(event) ?? []);
    expect(new Set(states.slice(0, -1))).toEqual(new Set(["llm_requesting"]));
    const times = system.model.requestsOf(name).map((request) => request.arrivedAt);
    const [first = 0, second = 0] = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(times).toHaveLength(3);
    expect(first).toBeGreaterThanOrEqual(1_000);
    expect(second).toBeGreaterThanOrEqual(2_000);
    const shown = await bodyOf(await get(`/api/conversations/${conversation.id}`));
    expect(shown["state"]).toMatchObject({
      kind: "error",
      errorKind: "unknown",
      message: expect.stringMatching(/^Failed after 3 attempts: .*Try again/) as string,
    });
  },
);

test.concurrent(
  "REQ-BED-006: an error that a retry cannot fix is shown at once in its own words, and the next message goes on",
  async () => {
    const { name, tag } = scripted(
      fail("authentication_error"),
      fail("invalid_request_error", { message: "tools.0: bad name" }),
      say("Better."),
    );
    const conversation = await create();
    const path = `/api/conversations/${conversation.id}`;
    for (const [n, errorKind, words] of [
      [1, "auth", /ANTHROPIC_API_KEY/],
      [2, "invalid_request", /tools\.0: bad name/],
    ] as const) {
      await conversation.send(`go ${tag}`);
      await conversation.untilState("error");
      const shown = await bodyOf(await get(path));
      expect(shown["state"]).toMatchObject({ kind: "error", errorKind });
      expect(shown["state"]).toMatchObject({ message: expect.stringMatching(words) as string });
      expect(system.model.requestsOf(name)).toHaveLength(n);
    }
    await conversation.send("again");
    await conversation.untilState("idle");
    const runs = ["user", "error", "run_stop", "user", "error", "run_stop"];
    expect(await conversation.types()).toEqual([...runs, "user", "agent", "run_stop"]);
    expect(lastTurn(system.model.requestsOf(name)[2]).map((block) => block.type)).toEqual(
      new Array<string>(3).fill("text"),
    );
  },
);

test.concurrent(
  "REQ-BED-010: every tool call starts in the conversation's own directory, which does not change",
  async () => {
    const cwds = ["here", "there"].map((name) => join(system.cwd, name));
    await Promise.all(cwds.map((cwd) => mkdir(cwd)));
    for (const cwd of cwds) {
      await writeFile(join(cwd, "note.txt"), cwd);
      const { tag } = scripted(
        say(
          toolCall("bash", { command: "cd / && pwd" }),
          toolCall("bash", { command: "pwd" }),
          toolCall("read", { path: "note.txt" }),
          toolCall("ls", {}),
        ),
        say("Done."),
      );
      const conversation = await create({ cwd });
      const path = `/api/conversations/${conversation.id}`;
      expect((await send("PATCH", path, { cwd: "/", title: "Moved?" })).status).toBe(422);
      expect(await bodyOf(await get(path))).toMatchObject({ cwd });
      await conversation.send(`go ${tag}`);
      await conversation.untilState("idle");
      const texts = (await conversation.results()).map(textOf);
      expect(texts.slice(0, 2)).toEqual(["/\n", `${cwd}\n`]);
      expect(texts[2]).toContain(cwd);
      expect(texts[3]).toContain("note.txt");
    }
  },
);

test.concurrent(
  "REQ-BED-011: every client gets each message and state as it comes; a later client gets a snapshot, then the same events",
  async () => {
    const name = randomUUID();
    const held = hold();
    const { tag } = scripted(
      say("One. ", toolCall("bash", { command: waiting(name) })),
      say("Two. ", held, "Three."),
    );
    const conversation = await create();
    const clients = [await follow(conversation), await follow(conversation)];
    for (const client of clients) await client.until("synced");
    await conversation.send(`go ${tag}`);
    for (const client of clients) await client.until(isState("tool_executing"));

    const late = await follow(conversation);
    const { data } = await late.until("snapshot");
    expect(data).toMatchObject({
      conversation: { state: { kind: "tool_executing" } },
      messages: [{ type: "user" }, { type: "agent" }],
    });
    clients.push(late);
    await late.until("synced");
    await writeFile(join(system.cwd, `${name}.go`), "");
    await held.reached;
    // While the answer still streams, every client has the tool's result.
    for (const client of clients) await client.until(isState("llm_requesting"));
    held.release();
    for (const client of clients) await client.until(isState("idle"));

    const durable = clients.map((client) => client.received.filter((event) => event.id !== null));
    const [all = [], , tail = []] = durable;
    expect(durable[1]).toEqual(all);
    expect(tail).toEqual(all.slice(-tail.length));
    expect(all.flatMap((event) => (event.name === "message.added" ? [event.data["type"]] : []))).toEqual(
      await conversation.types(),
    );
    expect(all.flatMap((event) => stateOf(event) ?? [])).toEqual([
      ...["llm_requesting", "tool_executing", "llm_requesting"],
      "idle",
    ]);
    await Promise.all(clients.map((client) => client.cancel()));
  },
);

test.concurrent(
  "REQ-BED-012, 022: the usage of each response is counted against the model's own window, and the warning is sent once",
  async () => {
    const usage = {
      cache_read_input_tokens: 100_000,
      cache_creation_input_tokens: 20_000,
      output_tokens: 2_000,
    };
    const answers = () =>
      [
        script.answer(["Some."], { usage: { ...usage, input_tokens: 1_000 } }),
        script.answer(["More."], { usage: { ...usage, input_tokens: 38_000 } }),
        script.answer(["Most."], { usage: { ...usage, input_tokens: 39_000 } }),
      ] as const;
    for (const { model, contextWindow, ratios } of [
      { model: "claude-haiku-4-5", contextWindow: 200_000, ratios: [0.8] },
      { model: "claude-opus-5-5", contextWindow: 1_000_000, ratios: [] },
    ]) {
      const conversation = await create({ model });
      const events = await follow(conversation);
      const { tag } = scripted(...answers());
      for (let turn = 1; turn <= 3; turn++) {
        await conversation.send(`go ${tag}`);
        await events.until(isState("idle"));
      }
      await events.cancel();
      const warned = events.received.filter((event) => event.name === "context.warned");
      expect(warned.map(({ data }) => data["contextRatio"])).toEqual(ratios);
      const told = events.received.filter((event) => event.name === "usage.changed");
      expect(told.map(({ data }) => (data["usage"] as { contextUsed: number }).contextUsed)).toEqual([
        ...[123_000, 160_000, 161_000],
      ]);
      const shown = await bodyOf(await get(`/api/conversations/${conversation.id}`));
      expect(shown["usage"]).toEqual({
        inputTokens: 78_000,
        outputTokens: 6_000,
        cacheReadTokens: 300_000,
        cacheCreationTokens: 60_000,
        contextUsed: 161_000,
        contextWindow,
        contextRatio: 161_000 / contextWindow,
        warning: ratios.length > 0,
      });
      expect(told.at(-1)?.data["usage"]).toEqual(shown["usage"]);
    }
    const unknown = await create({ model: "something-new" });
    const shown = await bodyOf(await get(`/api/conversations/${unknown.id}`));
    expect(shown).toMatchObject({ model: "something-new", usage: { contextWindow: 200_000 } });
  },
);
