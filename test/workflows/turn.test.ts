/** A turn, through the workflow's own interface: REQ-BED-002 to 005, 007, 010. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { fail, rateLimited, say, toolCall } from "../../local/scripted/script.ts";
import { sendMessageUpdate } from "../../protocol/workflow.ts";
import { textOf, TestConversation } from "../support/conversation.ts";
import { startOperation } from "../support/create-input.ts";
import { startSystem } from "../support/system.ts";
import { until } from "../support/waiting.ts";

const system = await startSystem();

test("a message that needs a tool is answered, and every message of the turn is stored", async () => {
  const conversation = await TestConversation.open(system);
  const tag = system.model.script(randomUUID(), [
    say("Looking. ", toolCall("bash", { command: "pwd" })),
    say("Done."),
  ]);
  const sent = await conversation.send(`hello ${tag}`);
  expect(sent).toMatchObject({ sequence: 1, delivery: "direct" });
  await conversation.untilState("idle");
  expect(await conversation.types()).toEqual(["user", "agent", "tool", "agent", "run_stop"]);
  const [pwd] = await conversation.results();
  expect(pwd).toMatchObject({ name: "bash", status: "completed" });
  expect(textOf(pwd)).toContain(system.cwd);
});

test("two submits of one message that wait for the row together both get the answer of the one that was taken", async () => {
  const conversation = await TestConversation.open(system);
  const tag = system.model.script(randomUUID(), [say("Once.")]);
  await conversation.handle.terminate("to be begun again from its row");
  const message = { messageId: "twice", text: `hello ${tag}`, images: [], delivery: "direct" } as const;
  // Two separate updates, as two requests to the API are: the server sees nothing in common.
  const submit = () =>
    system.temporal.workflow.executeUpdateWithStart(sendMessageUpdate, {
      startWorkflowOperation: startOperation(system, { conversationId: conversation.id }),
      args: [message],
    });
  const accepted = async (): Promise<number> => {
    const { events } = await conversation.handle.fetchHistory();
    return (events ?? []).filter((event) => event.workflowExecutionUpdateAcceptedEventAttributes).length;
  };
  const { both } = await system.db.sql.begin(async (sql) => {
    await sql`lock table conversations in access exclusive mode`;
    const submits = Promise.all([submit(), submit()]);
    await until(async () => (await accepted()) === 2);
    return { both: submits };
  });
  expect((await both).map(({ sequence }) => sequence)).toEqual([1, 1]);
  await until(async () => (await conversation.types()).includes("run_stop"));
  expect(await conversation.types()).toEqual(["user", "agent", "run_stop"]);
});

test("tools run one after the other in the order requested, and a failed one does not end the round", async () => {
  const conversation = await TestConversation.open(system, "unrestricted");
  const name = randomUUID();
  const tag = system.model.script(name, [
    say(
      toolCall("bash", { command: `echo one >> ${name}` }),
      toolCall("bash", { command: "exit 3" }),
      toolCall("bash", { command: `cat ${name}` }),
      toolCall("no_such_tool", {}),
    ),
    say("Done."),
  ]);
  await conversation.send(`go ${tag}`);
  await conversation.untilState("idle");
  const results = await conversation.results();
  expect(results.map((result) => result.status)).toEqual(["completed", "failed", "completed", "failed"]);
  expect(textOf(results[2])).toContain("one");
});

test("a busy conversation refuses a message, and nothing of it enters the workflow's history", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = system.model.script(randomUUID(), [say("first ", held, "answer"), say("second answer")]);
  await conversation.send(`one ${tag}`);
  await held.reached;
  await expect(conversation.send("unheard")).rejects.toMatchObject({ cause: { type: "agent_busy" } });
  // A worker that is slow to answer may leave a workflow task behind, which holds nothing of the message.
  const { events } = await conversation.handle.fetchHistory();
  const updates = (events ?? []).flatMap(
    ({ workflowExecutionUpdateAcceptedEventAttributes: accepted }) => accepted?.acceptedRequest?.input ?? [],
  );
  expect(updates.map((update) => update.name)).toEqual(["open", "sendMessage"]);
  const inputs = updates.flatMap((update) => update.args?.payloads ?? []);
  expect(inputs.map(({ data }) => Buffer.from(data ?? []).toString()).join()).not.toContain("unheard");
  held.release();
  await conversation.untilState("idle");
  expect(await conversation.types()).toEqual(["user", "agent", "run_stop"]);
});

test("a cancelled request is closed upstream, nothing of it is kept, and a resend gets its own reply", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const name = randomUUID();
  const tag = system.model.script(name, [say("old reply ", held), say("new reply")]);
  await conversation.send(`one ${tag}`);
  await held.reached;
  const [request] = system.model.requestsOf(name);
  await conversation.cancel();
  await conversation.untilState("idle");
  await request?.ended;
  expect(request?.end).toBe("client_closed");
  await conversation.send("two");
  await conversation.until(({ conversation: { state, sequence } }) => state.kind === "idle" && sequence >= 5);
  const texts = JSON.stringify(await conversation.messages());
  expect(texts).toContain("new reply");
  expect(texts).not.toContain("old reply");
  expect(system.model.requestsOf(name)).toHaveLength(2);
});

test("a provider that asks for an hour's patience ends the run at once, and the error says when to try again", async () => {
  const conversation = await TestConversation.open(system);
  const name = randomUUID();
  await conversation.send(`go ${system.model.script(name, [rateLimited(3_600), say("Better.")])}`);
  expect(await conversation.untilState("error")).toMatchObject({
    errorKind: "rate_limit",
    message: expect.stringMatching(
      /limit was reached\. Try again after \d{4}-\d\d-\d\d \d\d:\d\d UTC\.$/,
    ) as string,
  });
  expect(system.model.requestsOf(name)).toHaveLength(1);
});

test("a request is tried three times with backoff, then the state is error; the next message recovers", async () => {
  const conversation = await TestConversation.open(system);
  const name = randomUUID();
  const tag = system.model.script(name, [
    fail("overloaded_error"),
    fail("overloaded_error"),
    fail("overloaded_error"),
    say("Better."),
  ]);
  await conversation.send(`one ${tag}`);
  const retrying = await conversation.until(
    ({ conversation: { state } }) => state.kind === "llm_requesting" && state.retry !== null,
  );
  expect(retrying.conversation.state).toMatchObject({ attempt: 2, retry: { errorKind: "overloaded" } });
  const error = await conversation.untilState("error");
  expect(error).toMatchObject({ errorKind: "overloaded" });
  expect(error.message).toMatch(/3 attempts/);
  expect(system.model.requestsOf(name)).toHaveLength(3);
  await conversation.send("again");
  await conversation.untilState("idle");
  expect(await conversation.types()).toEqual(["user", "error", "run_stop", "user", "agent", "run_stop"]);
});
