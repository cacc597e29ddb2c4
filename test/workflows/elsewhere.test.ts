/** Conversations may be driven by a worker on another host than their directory's; tools never run there. */
import { expect, test } from "vitest";
import { say } from "../../local/scripted/script.ts";
import { toolsQueue } from "../../workflows/contract.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";
import { startWorkerProcess } from "../support/worker-process.ts";
import { countedTool } from "./counted-tool.ts";

test("a worker of another host sends tools to the host of the directory, and from then on does so at once", async () => {
  const system = await startSystem({ workers: 0 });
  await startWorkerProcess(system, { TOOL_HOST: "another-host" });
  const conversation = await TestConversation.open(system);
  const tool = countedTool(system);
  const tag = system.model.script(tool.name, [say(tool.call), say(tool.call), say("Done.")]);
  await conversation.send(`go ${tag}`);
  await system.model.nextRequest(tool.name, 1);
  // What was answered is shown though nobody is there to act on it.
  await conversation.untilState("tool_executing");
  await system.startWorker();
  await conversation.untilState("idle");
  expect((await conversation.results()).map((result) => result.status)).toEqual(["completed", "completed"]);
  expect(tool.runs()).toBe(2);
  const { events } = await conversation.handle.fetchHistory();
  const queues = (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: task }) =>
    task?.activityType?.name === "executeTool" ? [task.taskQueue?.name] : [],
  );
  const host = toolsQueue(system.config.toolHost);
  expect(queues).toEqual([system.config.taskQueue, host, host]);
});
