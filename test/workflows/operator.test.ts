/** An operator can use Temporal's own tools safely: the row wins, nothing accepted is lost. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import {
  cancelSignal,
  decideUpgradeSignal,
  decideUpgradeUpdate,
  sendMessageSignal,
  withdrawMessageUpdate,
} from "../../protocol/workflow.ts";
import { TestConversation } from "../support/conversation.ts";
import { resetWorkflow } from "../support/reset.ts";
import { startSystem } from "../support/system.ts";

const system = await startSystem();

/** Resets to the end of the `n`th workflow task. The second task is the one that knows the row. */
const reset = (conversation: TestConversation, n: number): Promise<void> =>
  resetWorkflow(conversation, (tasks) => tasks[n - 1]);

/** Remembers where the workflow is now. The returned function resets it to there, and it forgets later requests. */
async function bookmark(conversation: TestConversation): Promise<() => Promise<void>> {
  await conversation.settled();
  const { events } = await conversation.handle.fetchHistory();
  const last = (events ?? []).findLast((event) => event.workflowTaskCompletedEventAttributes != null);
  return () =>
    resetWorkflow(
      conversation,
      (tasks) => tasks.find(({ eventId }) => eventId?.eq(last?.eventId ?? 0)),
      "forget",
    );
}

const notes = async (conversation: TestConversation): Promise<string> =>
  JSON.stringify((await conversation.messages()).filter((message) => message.type === "note"));

test("after a reset in the middle of a turn the row wins, with a note, and the conversation goes on", async () => {
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

test.each([
  ["by the row that the caller has read", true],
  ["again when the row turns out to have diverged", false],
])("a withdrawal right after a reset holds: it is judged %s", async (_how, tellsRow) => {
  const conversation = await TestConversation.open(system);
  const [first, second] = [hold(), hold()];
  const tag = system.model.script(randomUUID(), [
    say("Looking. ", first, toolCall("ls", {})),
    say("never stored ", second),
  ]);
  await conversation.send(`first ${tag}`);
  await first.reached;
  await conversation.send("follow-up", { id: "F", delivery: "followUp" });
  const resetToHere = await bookmark(conversation);
  first.release();
  await second.reached;
  // No commit tells the workflow that its history is old.
  const unblock = await conversation.block();
  await resetToHere();
  const { revision, revisionId } = await conversation.stored();
  const row = tellsRow ? { row: { revision, revisionId } } : {};
  const withdrawn = conversation.handle.executeUpdate(withdrawMessageUpdate, {
    args: [{ messageId: "F", ...row }],
  });
  if (!tellsRow) await withdrawn;
  await unblock();
  await withdrawn;
  await conversation.until(
    ({ conversation: { state, queue } }) => state.kind === "idle" && queue.length === 0,
  );
  const texts = JSON.stringify(await conversation.messages());
  expect(texts).not.toContain("follow-up");
  expect(texts).toContain("reset or started anew");
});

test("a Stop right after a reset puts a conversation that only looks busy to idle", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = system.model.script(randomUUID(), [say("First answer."), say("never stored ", held)]);
  await conversation.send(`first ${tag}`);
  await conversation.untilState("idle");
  const resetToHere = await bookmark(conversation);
  await conversation.send("second");
  await held.reached;
  await resetToHere();
  await conversation.cancel();
  await conversation.untilState("idle");
  expect(await notes(conversation)).toMatch(/reset or started anew/);
});

test("an approval right after a reset is taken, though the workflow has forgotten that it asked", async () => {
  const conversation = await TestConversation.open(system, "restricted");
  const tag = system.model.script(randomUUID(), [
    say("First answer."),
    say(toolCall("request_mode_upgrade", { reason: "to write" })),
    say("Thank you."),
  ]);
  await conversation.send(`first ${tag}`);
  await conversation.untilState("idle");
  const resetToHere = await bookmark(conversation);
  await conversation.send("second");
  const { toolCall: call } = await conversation.untilState("awaiting_mode_approval");
  await resetToHere();
  const { revision, revisionId } = await conversation.stored();
  const decision = { decision: "approve", toolCallId: call.id, row: { revision, revisionId } } as const;
  await conversation.handle.executeUpdate(decideUpgradeUpdate, { args: [decision] });
  await conversation.untilState("idle");
  expect((await conversation.stored()).conversation.mode).toBe("unrestricted");
  expect(JSON.stringify(await conversation.messages())).toContain("Thank you.");
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

test("signals do what the updates do, and a rejected signal leaves a note", async () => {
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
