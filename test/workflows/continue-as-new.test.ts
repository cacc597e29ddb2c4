/** A conversation outlives the histories of its runs (rule 8). */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";

const system = await startSystem();
/** Enough rounds to make one history long. */
const ROUNDS = 100;

test("a run that continues another starts at once, however short the other was", async () => {
  const conversation = await TestConversation.open(system);
  const { runId: first } = await conversation.handle.describe();
  // The server asks a run only once to cancel, so the workflow continues as a new run.
  await conversation.handle.cancel();
  await expect.poll(async () => (await conversation.handle.describe()).runId).not.toBe(first);
  const { events } = await conversation.handle.fetchHistory();
  const started = events?.[0]?.workflowExecutionStartedEventAttributes;
  expect(started?.continuedExecutionRunId).toBe(first);
  expect(started?.firstWorkflowTaskBackoff ?? null).toBeNull();
});

test("a long turn continues as new between two rounds, and nothing is lost or repeated", async () => {
  const conversation = await TestConversation.open(system);
  const name = randomUUID();
  const held = hold();
  const tag = system.model.script(name, (_request, n) =>
    n <= ROUNDS ? say(toolCall("ls", {})) : n === ROUNDS + 1 ? say("Nearly. ", held, "Done.") : say("Again."),
  );
  const { runId: firstRun } = await conversation.handle.describe();
  await conversation.send(`go ${tag}`, { id: "first" });
  await held.reached;
  // A repeated submit answers as the first did, although another run took it.
  expect(await conversation.send(`go ${tag}`, { id: "first" })).toMatchObject({
    messageId: "first",
    sequence: 1,
  });
  held.release();
  await conversation.untilState("idle");
  const { runId: lastRun, historyLength } = await conversation.handle.describe();
  expect(lastRun).not.toBe(firstRun);
  expect(historyLength).toBeLessThan(400);
  const results = await conversation.results();
  expect(results.map((result) => result.status)).toEqual(new Array<string>(ROUNDS).fill("completed"));
  expect(new Set(results.map((result) => result.toolCallId)).size).toBe(ROUNDS);
  expect(system.model.requestsOf(name)).toHaveLength(ROUNDS + 1);
});
