/** Workers with one role each do together what one worker with all roles does (docs/operations.md). */
import { expect, test } from "vitest";
import { say, toolCall } from "../../local/scripted/script.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem, type System } from "../support/system.ts";
import { startWorkerProcess } from "../support/worker-process.ts";
import { countedTool } from "./counted-tool.ts";

/** Of a worker that asks no model. */
const NO_PROVIDER = { ANTHROPIC_API_KEY: "", ANTHROPIC_BASE_URL: "", SCRIPTED_MODEL: "0" };

async function startOneOfEach(system: System) {
  const start = (role: string, env: NodeJS.ProcessEnv) =>
    startWorkerProcess(system, { ...env, WORKER_ROLES: role });
  const [conversations, requests, tools] = await Promise.all([
    start("conversations", NO_PROVIDER),
    start("requests", {}),
    start("tools", NO_PROVIDER),
  ]);
  return { conversations, requests, tools };
}

test("each part of a turn is done by a worker of its role, and only the one that asks has the provider's key", async () => {
  const system = await startSystem({ workers: 0 });
  const { conversations, requests, tools } = await startOneOfEach(system);
  const conversation = await TestConversation.open(system, "unrestricted");
  const tool = countedTool(system);
  await conversation.send(
    `go ${system.model.script(tool.name, [say(tool.call), say(tool.call), say("Done.")])}`,
  );
  await conversation.untilState("idle");
  expect((await conversation.results()).map(({ status }) => status)).toEqual(["completed", "completed"]);
  expect(tool.runs()).toBe(2);

  const done = await doneBy(conversation);
  expect(done.filter(({ what }) => what === "workflow").map(({ pid }) => pid)).toEqual(
    expect.arrayContaining([conversations.pid]),
  );
  for (const { what, pid, queue } of done) {
    if (what === "workflow") expect(pid).toBe(conversations.pid);
    else if (queue === system.config.taskQueue) expect([what, pid]).toEqual([what, requests.pid]);
    else expect([what, pid]).toEqual(["executeTool", tools.pid]);
  }
  expect(done.filter(({ pid }) => pid === tools.pid)).toHaveLength(2);
});

test("a Stop ends what a worker of tools runs", async () => {
  const system = await startSystem({ workers: 0 });
  await startOneOfEach(system);
  const conversation = await TestConversation.open(system, "unrestricted");
  const call = toolCall("bash", { command: "sleep 300" });
  await conversation.send(`go ${system.model.script(conversation.id, [say(call)])}`);
  await conversation.untilState("tool_executing");
  await conversation.cancel();
  await conversation.untilState("idle");
  expect((await conversation.results()).map(({ status }) => status)).toEqual(["cancelled"]);
});

/** What was begun, in order, by which process, and which activities on which queue. */
async function doneBy({ handle }: TestConversation) {
  const { events } = await handle.fetchHistory();
  const ordered = new Map(
    (events ?? []).map(({ eventId, activityTaskScheduledEventAttributes: task }) => [String(eventId), task]),
  );
  return (events ?? []).flatMap((event) => {
    const { workflowTaskStartedEventAttributes: turn, activityTaskStartedEventAttributes: begun } = event;
    const task = ordered.get(String(begun?.scheduledEventId));
    const identity = turn?.identity ?? begun?.identity;
    if (identity === undefined || identity === null) return [];
    const what = begun === undefined || begun === null ? "workflow" : (task?.activityType?.name ?? "");
    return [{ what, pid: Number.parseInt(identity, 10), queue: task?.taskQueue?.name }];
  });
}
