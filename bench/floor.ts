/** Measures Temporal's own floor in the same run: rounds of empty activities on the product's server. */
import { randomUUID } from "node:crypto";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection, Worker } from "@temporalio/worker";

/** Milliseconds of each round. */
export async function temporalFloor(address: string, rounds: number): Promise<number[]> {
  const taskQueue = `floor-${randomUUID()}`;
  const connection = await NativeConnection.connect({ address, grpcCompression: { codec: "none" } });
  const worker = await Worker.create({
    connection,
    taskQueue,
    workflowsPath: `${import.meta.dirname}/floor/workflow.ts`,
    activities: { nothing: () => Promise.resolve() },
  });
  const client = new Client({ connection: await Connection.connect({ address }) });
  const samples = await worker.runUntil(
    client.workflow.execute<(rounds: number) => Promise<number[]>>("floor", {
      workflowId: taskQueue,
      taskQueue,
      args: [rounds + 5],
    }),
  );
  await client.connection.close();
  await connection.close();
  return samples.slice(5);
}
