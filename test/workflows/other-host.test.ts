/** A worker on another host than the directory's may drive a conversation, but tools never run there. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { sendRestarted } from "../../local/restart.ts";
import { say } from "../../local/scripted/script.ts";
import { toolsQueue } from "../../protocol/workflow.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";
import { startWorkerProcess } from "../support/worker-process.ts";
import { until } from "../support/waiting.ts";
import { countedTool } from "./counted-tool.ts";

test("a worker of another host sends tools to the host of the directory, and from then on does so at once", async () => {
  const system = await startSystem({ workers: 0 });
  await startWorkerProcess(system, { TOOL_HOST: "another-host" });
  const conversation = await TestConversation.open(system, "unrestricted");
  const tool = countedTool(system);
  const tag = system.model.script(tool.name, [say(tool.call), say(tool.call), say("Done.")]);
  await conversation.send(`go ${tag}`);
  await system.model.nextRequest(tool.name, 1);
  // The answer is shown although no worker is there to run its tools.
  await conversation.untilState("tool_executing");
  await system.startWorker();
  await conversation.untilState("idle");
  expect((await conversation.results()).map((result) => result.status)).toEqual(["completed", "completed"]);
  expect(tool.runs()).toBe(2);
  const host = toolsQueue(system.config.toolHost);
  expect(await queuesOf(conversation)).toEqual([system.config.taskQueue, host, host]);
});

test("a tool that still waited for its host when the system went down does not start after the restart", async () => {
  const system = await startSystem({ workers: 0 });
  const driver = await startWorkerProcess(system, { TOOL_HOST: "another-host" });
  const conversation = await TestConversation.open(system, "unrestricted");
  const tool = countedTool(system);
  await conversation.send(`go ${system.model.script(tool.name, [say(tool.call), say("Done.")])}`);
  const host = toolsQueue(system.config.toolHost);
  await until(async () => (await queuesOf(conversation)).includes(host));
  driver.signal("SIGKILL");
  await driver.exited;
  const { databaseUrl, taskQueue } = system.config;
  await sendRestarted({ client: system.temporal, databaseUrl, taskQueue, policy: "idle" });
  // It takes tools but no workflows, so the tool is due before the workflow has processed the restart.
  await startWorkerProcess(system, { TASK_QUEUE: randomUUID() });
  await until(async () => {
    const { raw } = await conversation.handle.describe();
    return (raw.pendingActivities ?? []).every(({ activityType }) => activityType?.name !== "executeTool");
  });
  await startWorkerProcess(system, { TOOL_HOST: "another-host" });
  await conversation.untilState("idle");
  expect((await conversation.results()).map(({ status }) => status)).toEqual(["interrupted"]);
  expect(tool.runs()).toBe(0);
  await conversation.send("And now?");
  await conversation.untilState("idle");
  expect(await conversation.types()).toContain("agent");
});

/** The task queues on which tools were ordered, in order. */
async function queuesOf({ handle }: TestConversation) {
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: task }) =>
    task?.activityType?.name === "executeTool" ? [task.taskQueue?.name] : [],
  );
}
