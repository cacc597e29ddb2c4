/** A conversation outlives the histories of its runs (rule 8). */
import { randomUUID } from "node:crypto";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { RUNS_AT_ONCE, startTemporal } from "../../local/temporal/server.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import { stateQuery } from "../../protocol/workflow.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem, type System } from "../support/system.ts";

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

test("a worker says once that a server keeps a second between runs, and says nothing otherwise", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  onTestFinished(() => warn.mockRestore());
  const advice = (): number =>
    warn.mock.calls.flat().filter((line) => String(line).includes("ReuseMinimal")).length;
  const slow = await startTemporal({ binary: inject("temporalBinary"), without: [RUNS_AT_ONCE] });
  const other = await startSystem({ env: { TEMPORAL_ADDRESS: slow.address } });
  other.defer(() => slow.stop());
  const continueOften = async (on: System, times: number): Promise<void> => {
    const conversation = await TestConversation.open(on);
    for (let n = 0; n < times; n++) {
      const { runId } = await conversation.handle.describe();
      await conversation.handle.cancel();
      await expect.poll(async () => (await conversation.handle.describe()).runId).not.toBe(runId);
      // The next run has begun when it answers.
      await conversation.handle.query(stateQuery);
    }
  };
  await continueOften(system, 4);
  expect(advice()).toBe(0);
  await continueOften(other, 4);
  await expect.poll(advice).toBe(1);
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
