/** Workers killed with sub-agents at different stages: no such death ends a sub-agent or loses its result. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { rateLimited, say, toolCall } from "../../local/scripted/script.ts";
import { sendRestarted } from "../../local/restart.ts";
import { CONVERSATION_WORKFLOW } from "../../protocol/workflow.ts";
import { TestConversation, textOf } from "../support/conversation.ts";
import { outcomesIn, spawnFamily, type Family } from "../support/family.ts";
import { createInputFor } from "../support/create-input.ts";
import { lastingCommand, type LastingCommand } from "../support/lasting.ts";
import { startSystem, type System } from "../support/system.ts";
import { until } from "../support/waiting.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

const SLOW = 120_000;
const submit = (result: string) => toolCall("submit_result", { result });

/** Sub-agents in a request, in a tool, before another attempt, reminded, finished, and two that wait for a place. */
async function atEveryStage(
  system: System,
): Promise<{ readonly family: Family; readonly lasting: LastingCommand }> {
  const lasting = lastingCommand();
  const [asking, reminded, first, second, third] = [hold(), hold(), hold(), hold(), hold()];
  const family = await spawnFamily(
    system,
    [
      { script: (_request, n) => (n === 1 ? say("half ", asking) : say(submit("asked again"))) },
      { script: [say("Now. ", lasting.call), say(submit("went on"))] },
      { script: [rateLimited(3), say(submit("later"))] },
      {
        script: (_request, n) =>
          n === 1 ? say("Done.") : n === 2 ? say("… ", reminded) : say(submit("sorry")),
      },
      { script: [say(submit("at once"))] },
      ...[first, second, third].map((held) => ({
        script: (_request: unknown, n: number) => (n === 1 ? say("half ", held) : say(submit("asked again"))),
      })),
      { script: [say("Looking. ", toolCall("ls", {})), say(submit("in the end"))] },
      { script: [say(submit("last"))] },
    ],
    { calls: [toolCall("bash", { command: "echo after" })] },
  );
  await lasting.running();
  await Promise.all([asking, reminded, first, second, third].map((held) => held.reached));
  await (
    await family.child(3)
  ).until(({ conversation: { state } }) => state.kind === "llm_requesting" && state.retry !== null);
  await family.parent.until(
    ({ conversation: { state } }) => "finished" in state && state.finished.length > 0,
  );
  return { family, lasting };
}

test(
  "when a worker is killed with sub-agents at every stage, another goes on with each",
  { timeout: SLOW },
  async () => {
    const system = await startSystem({ workers: 0 });
    const killed = await startWorkerProcess(system);
    const { family, lasting } = await atEveryStage(system);
    await system.startWorker();
    killed.signal("SIGKILL");
    const { status, text } = await family.report();
    expect(status).toBe("completed");
    expect(outcomesIn(text)).toEqual(Array.from({ length: 10 }, () => "Succeeded"));
    // The tool was not run a second time. The model reads that the outcome is unknown.
    await until(() => lasting.processes().length === 0);
    const tool = await family.children();
    const interrupted = (await Promise.all(tool.map((child) => child.results())))
      .flat()
      .filter((result) => result.status === "interrupted");
    expect(interrupted.map(({ name }) => name)).toEqual(["bash"]);
    expect(textOf(interrupted[0])).toMatch(/outcome is unknown/i);
    await family.parent.untilState("idle");
    expect((await family.parent.results()).map(({ name, status: how }) => [name, how])).toEqual([
      ["spawn_agents", "completed"],
      ["bash", "completed"],
    ]);
  },
);

test.for(["idle", "resume"] as const)(
  "after a restart of the system with policy %s the parent gets an outcome of every sub-agent",
  { timeout: SLOW },
  async (policy) => {
    const system = await startSystem({ workers: 0 });
    const killed = await startWorkerProcess(system);
    const { family } = await atEveryStage(system);
    killed.signal("SIGKILL");
    await killed.exited;
    const { databaseUrl, taskQueue } = system.config;
    const { atRest } = await sendRestarted({ client: system.temporal, databaseUrl, taskQueue, policy });
    await system.startWorker();
    await atRest();
    const { status, text } = await family.report();
    await family.parent.untilState("idle");
    if (policy === "resume") {
      expect(status).toBe("completed");
      expect(outcomesIn(text)).toEqual(Array.from({ length: 10 }, () => "Succeeded"));
      return;
    }
    expect(status).toBe("interrupted");
    expect(outcomesIn(text)).toEqual(
      Array.from({ length: 10 }, (_, n) => (n === 4 ? "Succeeded" : "Failed (interrupted)")),
    );
    for (const child of await family.children()) {
      const { state } = (
        await child.until(({ conversation }) => ["completed", "failed"].includes(conversation.state.kind))
      ).conversation;
      expect(["completed", "failed"]).toContain(state.kind);
    }
    await family.parent.send("And now?");
    await family.parent.untilState("idle");
  },
);

test("sub-agents that no worker had begun when the system went down begin after the restart", async () => {
  const system = await startSystem({ workers: 0 });
  const first = await system.startWorker();
  const parent = await TestConversation.open(system);
  await first.stop();
  // Temporal knows of them, Postgres does not.
  const started = await Promise.all(Array.from({ length: 5 }, () => startChildOf(parent, system)));
  const { databaseUrl, taskQueue } = system.config;
  // Temporal's list may be seconds old.
  const announce = () => sendRestarted({ client: system.temporal, databaseUrl, taskQueue, policy: "resume" });
  await until(async () => (await announce()).told > started.length);
  await system.startWorker();
  const outcomes = await Promise.all(started.map((child) => child.result()));
  expect(outcomes).toEqual(started.map(() => ({ success: true, result: "as if nothing had happened" })));
});

/** Starts a sub-agent as the parent's workflow does. */
function startChildOf({ id: parentId }: TestConversation, system: System) {
  const id = randomUUID();
  const tag = system.model.script(id, [say(submit("as if nothing had happened"))]);
  const base = createInputFor(system, id);
  const config = { ...base.config, parentId, userInitiated: false };
  const createInput = { ...base, config, task: { messageId: `task-${id}`, text: `begin ${tag}` } };
  return system.temporal.workflow.start(CONVERSATION_WORKFLOW, {
    workflowId: id,
    taskQueue: system.config.taskQueue,
    args: [{ conversationId: id, createInput }],
  });
}

test("a database that is away while sub-agents work loses none of them", { timeout: SLOW }, async () => {
  const system = await startSystem();
  const held = [hold(), hold()];
  const family = await spawnFamily(
    system,
    held.map((one) => ({ script: [say("… ", one, submit("kept"))] })),
  );
  await Promise.all(held.map((one) => one.reached));
  const release = await family.parent.block();
  for (const one of held) one.release();
  await family.parent.untilBlocked(1);
  await release();
  expect(outcomesIn((await family.report()).text)).toEqual(["Succeeded", "Succeeded"]);
});
