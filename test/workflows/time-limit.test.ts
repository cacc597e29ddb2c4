/**
 * The time limit of workflow code. The SDK has it for each call into that code, and its correction (`patches/`) for all
 * calls of an activation together.
 */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection, Worker, type WorkerOptions } from "@temporalio/worker";
import { afterAll, expect, inject, test } from "vitest";
import "../support/quiet.ts";

const address = inject("temporalAddress");
const taskQueue = `time-limit-${randomUUID()}`;
const connection = await NativeConnection.connect({ address });
/** The SDK's own is 5 s. */
const limit = { isolateExecutionTimeout: "200ms" };
const options: WorkerOptions = {
  ...limit,
  ...{ connection, taskQueue, workflowsPath: join(import.meta.dirname, "endless", "workflows.ts") },
  // Both run in the same thread.
  workflowThreadPoolSize: 1,
};
const worker = await Worker.create(options);
const running = worker.run();
const client = new Client({ connection: await Connection.connect({ address }) });
const start = (type: string) =>
  client.workflow.start(type, { taskQueue, workflowId: `${taskQueue}-${type}`, workflowTaskTimeout: "20s" });

afterAll(async () => {
  worker.shutdown();
  await running;
  await client.connection.close();
  await connection.close();
});

test.each(["loops", "loopsLater"])(
  "%s: its task fails when its time is over, and other workflows of the thread go on",
  async (type) => {
    const endless = await start(type);
    const failure = async (): Promise<string> => {
      const { events } = await endless.fetchHistory();
      const failed = events?.find((event) => event.workflowTaskFailedEventAttributes != null);
      return failed?.workflowTaskFailedEventAttributes?.failure?.message ?? "";
    };
    await expect.poll(failure).toContain("timed out");
    const { workflowId } = await client.workflow.start("ends", { taskQueue, workflowId: randomUUID() });
    await expect(client.workflow.getHandle(workflowId).result()).resolves.toBe("ended");
    await endless.terminate();
  },
);
