/** A commit that Postgres refuses each time is not retried for ever: the row wins, with a note, and work goes on. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { say } from "../../local/scripted/script.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";
import { until } from "../support/waiting.ts";

const system = await startSystem();
await system.db
  .sql`alter table messages add constraint unstorable check (content::text not like '%poisonous%')`;

const textOf = async (conversation: TestConversation): Promise<string> =>
  JSON.stringify(await conversation.messages());

test("a message that cannot be stored is retried once, then reported, and the next one is answered", async () => {
  const conversation = await TestConversation.open(system);
  const tag = system.model.script(randomUUID(), [say("As you like.")]);
  await conversation.send("a poisonous message");
  await expect
    .poll(() => textOf(conversation))
    .toContain("could not be delivered: its text could not be stored");
  const told = await textOf(conversation);
  expect(told).toMatch(/could not be stored \(23514, unstorable\)/);
  expect(told).not.toContain("poisonous");
  await conversation.send(`next ${tag}`);
  await conversation.untilState("idle");
  expect(await textOf(conversation)).toContain("As you like.");
});

test("an answer of the model that cannot be stored ends the run, and the next message is answered", async () => {
  const conversation = await TestConversation.open(system);
  const name = randomUUID();
  const tag = system.model.script(name, [say("a poisonous answer"), say("A better one.")]);
  await conversation.send(`first ${tag}`);
  await expect.poll(() => textOf(conversation)).toMatch(/could not be stored \(23514, unstorable\)/);
  await conversation.untilState("idle");
  await conversation.send("next");
  await conversation.untilState("idle");
  expect(await textOf(conversation)).toContain("A better one.");
  expect(system.model.requestsOf(name)).toHaveLength(2);
});

/** A conversation whose row is about to be loaded again: after the second refusal the next session is a second away. */
async function refusedTwice(): Promise<TestConversation> {
  const conversation = await TestConversation.open(system);
  await conversation.send("a poisonous message");
  const isWaiting = async (): Promise<boolean> => {
    const { events } = await conversation.handle.fetchHistory();
    return (events ?? []).some(
      ({ timerStartedEventAttributes: timer }) => Number(timer?.startToFireTimeout?.seconds) === 1,
    );
  };
  await until(isWaiting);
  return conversation;
}

test("a message and a decision signalled while the row is loaded again are applied afterwards", async () => {
  const conversation = await refusedTwice();
  const tag = system.model.script(randomUUID(), [say("As you like.")]);
  await conversation.handle.signal("decideUpgrade", { decision: "approve" });
  await conversation.handle.signal("sendMessage", { text: `next ${tag}` });
  await expect.poll(() => textOf(conversation)).toContain("As you like.");
  // No call asked for more rights. The workflow asks Postgres about that before it leaves the note.
  await expect
    .poll(() => textOf(conversation))
    .toContain("The signal decideUpgrade was not taken (no_pending_approval)");
});

test("an archiving signalled while the row is loaded again is applied afterwards; an invalid signal leaves a note", async () => {
  const conversation = await refusedTwice();
  await conversation.handle.signal("withdrawMessage", { messageId: "not / an id" });
  await conversation.handle.signal("archive", { archived: true });
  await until(async () => (await conversation.stored()).archived);
  expect(await textOf(conversation)).toContain("The signal withdrawMessage was not taken (invalid_request)");
});
