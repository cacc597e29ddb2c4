/** Measures Temporal's own floor in the same run: rounds of empty activities on the product's server. */
import { randomUUID } from "node:crypto";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection, Worker } from "@temporalio/worker";

const WARM_UP = 5;

/** Milliseconds of each round of one workflow. */
export async function temporalFloor(address: string, rounds: number): Promise<readonly number[]> {
  const { samples } = await floors(address, 1, WARM_UP + rounds);
  return (samples[0] ?? []).slice(WARM_UP);
}

/** Rounds a second of so many workflows at once. */
export async function floorRate(address: string, workflows: number, rounds: number): Promise<number> {
  const { tookMs } = await floors(address, workflows, rounds);
  return (workflows * rounds * 1_000) / tookMs;
}

async function floors(
  address: string,
  workflows: number,
  rounds: number,
): Promise<{ readonly samples: readonly (readonly number[])[]; readonly tookMs: number }> {
  const taskQueue = `floor-${randomUUID()}`;
  const connection = await NativeConnection.connect({ address, grpcCompression: { codec: "none" } });
  const worker = await Worker.create({
    connection,
    taskQueue,
    workflowsPath: `${import.meta.dirname}/floor/workflow.ts`,
    activities: { nothing: () => Promise.resolve() },
  });
  const client = new Client({ connection: await Connection.connect({ address }) });
  const one = (n: number): Promise<number[]> =>
    client.workflow.execute<(rounds: number) => Promise<number[]>>("floor", {
      workflowId: `${taskQueue}-${n}`,
      taskQueue,
      args: [rounds],
    });
  const found = await worker.runUntil(async () => {
    const began = performance.now();
    const samples = await Promise.all(Array.from({ length: workflows }, (_, n) => one(n)));
    return { samples, tookMs: performance.now() - began };
  });
  await client.connection.close();
  await connection.close();
  return found;
}
