/** Records the histories that test/workflows/replay.test.ts replays, one scenario per file. */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import { test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { answer, fail, say, toolCall } from "../../local/scripted/script.ts";
import { renamedSignal, triggerContinuationUpdate, withdrawMessageUpdate } from "../../protocol/workflow.ts";
import { TestConversation } from "../support/conversation.ts";
import { spawnFamily } from "../support/family.ts";
import { resetWorkflow } from "../support/reset.ts";
import { startSystem } from "../support/system.ts";

const system = await startSystem({ hasSandbox: false });
const script = (...answers: Parameters<typeof system.model.script>[1][]) =>
  system.model.script(randomUUID(), answers.flat() as never);

async function save(name: string, conversation: TestConversation, runId?: string): Promise<void> {
  const handle = system.temporal.workflow.getHandle(conversation.id, runId);
  const json = historyToJSON(await handle.fetchHistory());
  await writeFile(join(import.meta.dirname, `${name}.json`), `${json}\n`);
}

test("tools", async () => {
  const conversation = await TestConversation.open(system);
  const tag = script([
    say("Looking. ", toolCall("ls", {}), toolCall("bash", { command: "exit 1" }), toolCall("unknown", {})),
    say("Done."),
  ]);
  await conversation.send(`go ${tag}`);
  await conversation.untilState("idle");
  await save("tools", conversation);
});

test("renamed", async () => {
  const conversation = await TestConversation.open(system);
  await conversation.send(`go ${script([say("One."), say("Two.")])}`);
  await conversation.untilState("idle");
  for (const [n, title] of ["One", "Two"].entries()) {
    const { lastEvent } = await conversation.stored();
    await conversation.handle.signal(renamedSignal, { title, event: lastEvent + n + 1 });
    await conversation.settled();
  }
  await conversation.send("again");
  await conversation.untilState("idle");
  await save("renamed", conversation);
});

test("retries", async () => {
  const conversation = await TestConversation.open(system);
  const tag = script([fail("overloaded_error"), fail("authentication_error"), say("Better.")]);
  await conversation.send(`go ${tag}`);
  await conversation.untilState("error");
  await conversation.send("again");
  await conversation.untilState("idle");
  await save("retries", conversation);
});

test("cancels", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = script([say("… ", held), say(toolCall("bash", { command: "sleep 60" }), toolCall("ls", {})), say("Done.")]);
  await conversation.send(`go ${tag}`);
  await held.reached;
  await conversation.cancel();
  await conversation.untilState("idle");
  await conversation.send("again");
  await conversation.untilState("tool_executing");
  await conversation.cancel();
  await conversation.untilState("idle");
  await save("cancels", conversation);
});

test("steer and follow-up", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = script([say("… ", held, toolCall("ls", {})), say("Steered."), say("Followed up.")]);
  await conversation.send(`go ${tag}`);
  await held.reached;
  await conversation.send("steer", { delivery: "steer" });
  await conversation.send("later", { delivery: "followUp" });
  await conversation.send("never", { id: "never", delivery: "followUp" });
  await conversation.handle.executeUpdate(withdrawMessageUpdate, { args: [{ messageId: "never" }] });
  held.release();
  await conversation.until(({ conversation: { state, run, sequence } }) => state.kind === "idle" && run === null && sequence > 6);
  await save("steer-and-follow-up", conversation);
});

test("continuation", async () => {
  const conversation = await TestConversation.open(system);
  const tag = script([
    answer([toolCall("ls", {})], { usage: { input_tokens: 950_000 } }),
    say("A summary."),
  ]);
  await conversation.send(`go ${tag}`);
  await conversation.untilState("context_exhausted");
  await save("continuation", conversation);
  const manual = await TestConversation.open(system);
  await manual.send(`go ${script([say("Hello."), say("A summary.")])}`);
  await manual.untilState("idle");
  await manual.handle.executeUpdate(triggerContinuationUpdate, { args: [{ triggerContinuation: true }] });
  await manual.untilState("context_exhausted");
  await save("manual-continuation", manual);
});

test("reset", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = script([say("… ", held), say("Second.")]);
  await conversation.send(`go ${tag}`);
  await held.reached;
  await resetWorkflow(conversation, (tasks) => tasks[1]);
  await conversation.untilState("idle");
  await conversation.send("again");
  await conversation.untilState("idle");
  await save("reset", conversation);
});

test("continue as new", async () => {
  const conversation = await TestConversation.open(system);
  const { runId } = await conversation.handle.describe();
  const tag = system.model.script(randomUUID(), (_request, n) => (n <= 90 ? say(toolCall("ls", {})) : say("Done.")));
  await conversation.send(`go ${tag}`);
  await conversation.untilState("idle");
  await save("continued-to", conversation);
  await save("continued-from", conversation, runId);
});

test("sub-agents", async () => {
  const held = hold();
  const submit = toolCall("submit_result", { result: "done" });
  const stopped = await spawnFamily(system, [
    { script: [say(submit)] },
    { script: [say("Yes."), say("… ", held)], timeoutSeconds: 60 },
  ]);
  await held.reached;
  await stopped.parent.until(({ conversation: { state } }) => "finished" in state && state.finished.length === 1);
  await stopped.parent.cancel();
  await stopped.parent.untilState("idle");
  await save("sub-agents", stopped.parent);
  const [first, second] = await stopped.children();
  if (first === undefined || second === undefined) throw new Error("there are two");
  await save("sub-agent-completed", first);
  await save("sub-agent-cancelled", second);
});
