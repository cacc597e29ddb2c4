/** What an operator does with Temporal's own tools is safe: the row wins, nothing accepted is lost. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import { cancelSignal, decideUpgradeSignal, sendMessageSignal } from "../../workflows/contract.ts";
import { TestConversation } from "../support/conversation.ts";
import { resetWorkflow } from "../support/reset.ts";
import { startSystem } from "../support/system.ts";

const system = await startSystem();

/** Back to the end of the `n`th workflow task; the second is the one that knows the row. */
const reset = (conversation: TestConversation, n: number): Promise<void> =>
  resetWorkflow(conversation, (tasks) => tasks[n - 1]);

const notes = async (conversation: TestConversation): Promise<string> =>
  JSON.stringify((await conversation.messages()).filter((message) => message.type === "note"));

test("a reset in the middle of a turn: the row wins, with a note, and the conversation goes on", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = system.model.script(randomUUID(), [
    say("Looking. ", toolCall("ls", {})),
    say("never stored ", held),
    say("Second answer."),
  ]);
  await conversation.send(`first ${tag}`, { id: "first" });
  await held.reached;
  await reset(conversation, 2);
  await conversation.untilState("idle");
  await conversation.send("second", { id: "second" });
  await conversation.untilState("idle");
  const messages = await conversation.messages();
  const ids = messages.filter((message) => message.type === "user").map((message) => message.id);
  expect(ids).toEqual(["first", "second"]);
  expect(await notes(conversation)).toMatch(/reset or started anew/);
  expect(JSON.stringify(messages)).toContain("Second answer.");
  expect(JSON.stringify(messages)).not.toContain("never stored");
});

test("a reset to before the row was loaded loads it as it is now", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = system.model.script(randomUUID(), [say("never stored ", held), say("Second answer.")]);
  await conversation.send(`first ${tag}`);
  await held.reached;
  await reset(conversation, 1);
  await conversation.untilState("idle");
  await conversation.send("second");
  await conversation.untilState("idle");
  expect(await conversation.types()).toEqual(["user", "note", "run_stop", "user", "agent", "run_stop"]);
});

test("a reset that rewinds to before a finished turn repeats nothing of it", async () => {
  const conversation = await TestConversation.open(system);
  const name = randomUUID();
  const tag = system.model.script(name, [say("First answer."), say("Second answer.")]);
  await conversation.send(`first ${tag}`);
  await conversation.untilState("idle");
  await reset(conversation, 2);
  await conversation.until(({ conversation: { sequence } }) => sequence >= 4);
  expect(await notes(conversation)).toMatch(/reset or started anew/);
  await conversation.send("second");
  await conversation.untilState("idle");
  expect(system.model.requestsOf(name)).toHaveLength(2);
  const texts = JSON.stringify(await conversation.messages());
  expect(texts).toContain("First answer.");
  expect(texts).toContain("Second answer.");
});

test("a workflow that was terminated in the middle of a turn goes on with the next message", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = system.model.script(randomUUID(), [say("never stored ", held), say("Second answer.")]);
  await conversation.send(`first ${tag}`);
  await held.reached;
  await conversation.handle.terminate("test");
  await conversation.send("second");
  await conversation.untilState("idle");
  expect(await conversation.types()).toEqual(["user", "note", "run_stop", "user", "agent", "run_stop"]);
});

test("`temporal workflow cancel` is the person's cancel and does not end the conversation", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const again = hold();
  const tag = system.model.script(randomUUID(), [
    say("never stored ", held),
    say("nor this ", again),
    say("Third answer."),
  ]);
  await conversation.send(`first ${tag}`);
  for (const [n, request] of [held, again].entries()) {
    await request.reached;
    await conversation.handle.cancel();
    await conversation.untilState("idle");
    await conversation.send(`message ${n + 2}`);
  }
  await conversation.untilState("idle");
  const turns = [...["user", "run_stop"], ...["user", "run_stop"], ...["user", "agent", "run_stop"]];
  expect(await conversation.types()).toEqual(turns);
});

test("signals do what the updates do, and what they ask in vain leaves a note", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = system.model.script(randomUUID(), [say("old ", held), say("new")]);
  await conversation.handle.signal(sendMessageSignal, { text: `first ${tag}` });
  await held.reached;
  await conversation.handle.signal(sendMessageSignal, { text: "too early" });
  await conversation.handle.signal(decideUpgradeSignal, { decision: "approve" });
  await conversation.until(({ conversation: { sequence } }) => sequence >= 3);
  expect(await notes(conversation)).toMatch(
    /sendMessage was not taken \(agent_busy\).*decideUpgrade was not taken/,
  );
  await conversation.handle.signal(cancelSignal, {});
  await conversation.untilState("idle");
});

test("an update that is typed by hand has the defaults of a signal", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = system.model.script(randomUUID(), [say(held, toolCall("ls", {})), say("As you like.")]);
  await conversation.send(`first ${tag}`);
  await held.reached;
  const typed = { messageId: "typed", text: "in another way", delivery: "steer", kind: "user_cancel" };
  await conversation.handle.executeUpdate("sendMessage", { args: [typed] });
  held.release();
  await conversation.untilState("idle");
  expect(await conversation.types()).toEqual(["user", "agent", "tool", "user", "agent", "run_stop"]);
});

test("a message that an operator's signal repeats is not taken twice", async () => {
  const conversation = await TestConversation.open(system);
  const name = randomUUID();
  const tag = system.model.script(name, [say("one"), say("two")]);
  await conversation.send(`first ${tag}`, { id: "same" });
  await conversation.untilState("idle");
  await conversation.handle.signal(sendMessageSignal, { text: "first", messageId: "same" });
  await conversation.send("second");
  await conversation.untilState("idle");
  expect(system.model.requestsOf(name)).toHaveLength(2);
});

test("operators find conversations by their state, and read what they do", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = system.model.script(randomUUID(), [say("… ", held, "done")]);
  await conversation.send(`first ${tag}`);
  await held.reached;
  const status = async (): Promise<unknown> =>
    (await conversation.handle.describe()).typedSearchAttributes
      .getAll()
      .map(({ key, value }) => [key.name, value]);
  expect(await status()).toContainEqual(["status", "working"]);
  held.release();
  await conversation.untilState("idle");
  await conversation.until(() => true);
  await expect.poll(status).toContainEqual(["status", "idle"]);
});
