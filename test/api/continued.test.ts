/** A conversation that continues another one: what its model reads, and what becomes of messages that waited. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { answer, fail, say } from "../../local/scripted/script.ts";
import type { Message } from "../../machine/message.ts";
import { createConversation, message, queued, valueWith } from "../db/fixtures.ts";
import { startSystem } from "../support/system.ts";
import { at, inState, Person } from "./person.ts";
import { bodyOf, problemOf, startApiOn } from "./support.ts";

const system = await startSystem();
const api = startApiOn(system);
const person = new Person(api, system.cwd);
const FULL = {
  usage: {
    input_tokens: 950_000,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 1,
  },
};
const WARNED = { usage: { ...FULL.usage, input_tokens: 850_000 } };

const textOf = (found: Message | undefined): string =>
  found?.type === "system"
    ? found.content.map((block) => (block.type === "text" ? block.text : "")).join()
    : "";

/** The text of the messages in the last request of a conversation. */
const lastRequest = (key: string): string =>
  JSON.stringify(system.model.requests.findLast((request) => request.key === key)?.json);

test("messages that wait at the end go along: a steer that no request has delivered, and the follow-ups", async () => {
  const held = hold();
  const [key, next] = [randomUUID(), randomUUID()];
  const tag = system.model.script(key, [answer(["Much.", held], FULL), say("All is done but the tests.")]);
  const nextTag = system.model.script(next, [say("I see."), say("Tests pass.")]);
  const id = await person.create({ message: { text: `go ${tag}` } });
  await held.reached;
  await person.say(id, { id: "steer", text: `Mind the tests ${nextTag}`, delivery: "steer" });
  await person.say(id, { id: "later", text: "And the docs.", delivery: "followUp" });
  await person.say(id, { id: "never", text: "Or not.", delivery: "followUp" });
  held.release();
  await person.untilState(id, "context_exhausted");
  expect(await person.conversation(id)).toMatchObject({
    state: { source: "model", summary: "All is done but the tests." },
    queue: [{ messageId: "steer" }, { messageId: "later" }, { messageId: "never" }],
    queueHeld: "context_exhausted",
  });
  // Still withdrawable, but not to be released here.
  await person.order("DELETE", at(id, "/queue/never"), undefined, 204);
  const refused = await problemOf(await api.send("POST", at(id, "/queue/release")));
  expect(refused).toMatchObject({ status: 409, code: "context_exhausted" });

  const to = await person.create({ continuedFrom: { id, seed: true } });
  expect(await person.conversation(to)).toMatchObject({
    queue: [
      { messageId: "steer", delivery: "followUp" },
      { messageId: "later", delivery: "followUp" },
    ],
    queueHeld: "continued",
    state: { kind: "idle" },
  });
  expect(await person.conversation(id)).toMatchObject({ queue: [], queueHeld: null, continuedTo: [to] });
  await person.order("DELETE", at(to, "/queue/later"), undefined, 204);
  await person.order("POST", at(to, "/queue/release"));
  await expect.poll(async () => (await person.messages(to)).map(({ type }) => type)).toContain("run_stop");
  const [seed, first] = await person.messages(to);
  expect(seed).toMatchObject({ type: "system", display: { seed: "summary" } });
  expect(first).toMatchObject({ id: "steer", display: { kind: "followUp" } });
  const read = lastRequest(next);
  expect(read).toContain("All is done but the tests.");
  expect(read).toContain("Mind the tests");
  expect(read).not.toContain("Or not.");
});

test("a person may leave the messages where they are", async () => {
  const { id } = await createConversation(
    system.db,
    {
      conversation: valueWith({
        state: exhausted("model"),
        queue: [queued("wait", "w1")],
        queueHeld: "context_exhausted",
      }),
    },
    { config: { cwd: system.cwd, host: system.config.toolHost } },
  );
  const to = await person.create({ continuedFrom: { id, seed: false, queue: false } });
  expect(await person.conversation(to)).toMatchObject({ queue: [], queueHeld: null, continuedFrom: id });
  expect(await person.messages(to)).toEqual([]);
  expect(await person.conversation(id)).toMatchObject({ queue: [{ messageId: "w1" }] });
});

test.each(["failed", "cancelled"] as const)(
  "without a summary (%s) the new model reads an excerpt: the last requests and the files that were changed",
  async (source) => {
    const call = (id: string, name: string, path: string) => ({
      type: "tool_use",
      id,
      name,
      input: { path },
    });
    const done = (sequence: number, toolCallId: string, status: "completed" | "failed") =>
      message(sequence, {
        type: "tool",
        actor: "system",
        content: [{ toolCallId, name: "x", status, output: [], durationMs: 1 }],
      });
    const said = (sequence: number, text: string) =>
      message(sequence, {
        type: "user",
        actor: "human",
        content: [{ type: "text", text }],
        display: { kind: "direct" },
      });
    const { id } = await createConversation(system.db, {
      messages: [
        said(1, "Write a.txt"),
        message(2, {
          type: "agent",
          actor: "llm_agent",
          content: [
            call("c1", "write", "a.txt"),
            call("c2", "edit", "b.txt"),
            call("c3", "read", "c.txt"),
            call("c4", "patch", "d.txt"),
          ],
          usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheCreationTokens: 0 },
          display: { requestId: "r", stopReason: "tool_use", durationMs: 1 },
        }),
        done(3, "c1", "completed"),
        done(4, "c2", "failed"),
        done(5, "c3", "completed"),
        done(6, "c4", "completed"),
        said(7, "Now the docs"),
      ],
      conversation: valueWith({ state: exhausted(source), sequence: 7, hasMessages: true }),
    });
    const to = await person.create({ cwd: system.cwd, continuedFrom: { id, seed: true } });
    const [seed] = await person.messages(to);
    expect(seed).toMatchObject({ type: "system", display: { seed: "excerpt" } });
    const text = textOf(seed);
    expect(text).not.toContain("Please start a new conversation");
    expect(text).toContain("No summary of it could be written");
    expect(text.indexOf("1. Write a.txt")).toBeLessThan(text.indexOf("2. Now the docs"));
    expect(text.match(/^- .*$/gmu)).toEqual(["- a.txt", "- d.txt"]);
  },
);

test("what has not ended has no summary to begin with, but may be continued without", async () => {
  const id = await person.create();
  const body = { continuedFrom: { id, seed: true } };
  const refused = await problemOf(await api.send("POST", "/api/conversations", body));
  expect(refused).toMatchObject({ status: 409, code: "no_summary" });
  const to = await person.create({ continuedFrom: { id, seed: false } });
  expect(await person.conversation(to)).toMatchObject({ continuedFrom: id, cwd: system.cwd });
});

test("the warning and the end say how to go on, and each of these requests works as it stands", async () => {
  const tag = system.model.script(randomUUID(), [answer(["Much."], WARNED), say("The summary.")]);
  const id = await person.create();
  const events = await person.follow(id);
  await events.until("synced");
  await person.say(id, { text: `go ${tag}` });
  type Call = { readonly method: string; readonly path: string; readonly body: object };
  const send = async ({ method, path, body }: Call) => api.send(method, path, body);
  const actionsIn = (data: object) => (data as { actions: { readonly [name: string]: Call } }).actions;

  const warned = actionsIn((await events.until("context.warned")).data);
  expect(Object.keys(warned)).toEqual(["windUp", "startAnew"]);
  await events.until(inState("idle"));
  for (const [name, status] of [
    ["startAnew", 201],
    ["windUp", 202],
  ] as const) {
    const call = warned[name];
    expect(call === undefined ? null : (await send(call)).status, name).toBe(status);
  }
  const ended = await events.until("context.exhausted");
  expect(ended.data).toMatchObject({ summary: "The summary.", source: "model" });
  for (const name of ["continueWithSummary", "startAnew"]) {
    const call = actionsIn(ended.data)[name];
    const made = call === undefined ? null : await send(call);
    expect(made?.status, name).toBe(201);
    expect(made === null ? null : await bodyOf(made)).toMatchObject({ continuedFrom: id, cwd: system.cwd });
  }
});

function exhausted(source: "model" | "failed" | "cancelled") {
  const finalUsage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheCreationTokens: 0 };
  return {
    kind: "context_exhausted",
    summary: "Please start a new conversation.",
    source,
    finalUsage,
  } as const;
}

test("the fallback text of a summary that failed is marked as none", async () => {
  const tag = system.model.script(randomUUID(), [answer(["Much."], FULL), fail("invalid_request_error")]);
  const id = await person.create({ message: { text: `go ${tag}` } });
  await person.untilState(id, "context_exhausted");
  expect(await person.conversation(id)).toMatchObject({ state: { source: "failed" } });
  const to = await person.create({ continuedFrom: { id, seed: true } });
  expect((await person.messages(to))[0]).toMatchObject({ display: { seed: "excerpt" } });
});
