/** An update that a worker overlooks is no rejection: the API sends it again and returns its answer. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { connectWorkflows } from "../../api/workflow.ts";
import { sendMessageUpdate } from "../../protocol/workflow.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";

const system = await startSystem({ workers: 0 });
const { temporalAddress: address, temporalNamespace: namespace, taskQueue, payloadKeys } = system.config;
const workflows = connectWorkflows({ address, namespace, taskQueue, payloadKeys });
system.defer(() => workflows.close());

/** Takes the next workflow task of this system as a worker would, and completes it without its messages. */
async function overlookNextTask(): Promise<void> {
  const { workflowService } = system.temporal.connection;
  const task = { namespace, taskQueue: { name: taskQueue }, identity: "a worker that overlooks updates" };
  const { taskToken } = await system.temporal.withDeadline(Date.now() + 10_000, () =>
    workflowService.pollWorkflowTaskQueue(task),
  );
  await workflowService.respondWorkflowTaskCompleted({ namespace, taskToken, commands: [], messages: [] });
}

test("a message is accepted although a worker overlooked its update", async () => {
  const worker = await system.startWorker();
  const conversation = await TestConversation.open(system);
  await conversation.settled();
  await worker.stop();
  const message = { messageId: randomUUID(), text: "hello", images: [], delivery: "direct" } as const;
  const sending = workflows.update(conversation.id, sendMessageUpdate, [message]);
  await overlookNextTask();
  await system.startWorker();
  expect(await sending).toMatchObject({ messageId: message.messageId, sequence: 1 });
});
