/**
 * Owns: one activity under a lease with a worker of its own, without a conversation. The worker's tasks and heartbeats
 * go through a proxy, which a test can break.
 */
import { randomUUID } from "node:crypto";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection, Worker } from "@temporalio/worker";
import { afterAll, inject } from "vitest";
import { withLease, type ActivityLease } from "../../activities/lease.ts";
import "./quiet.ts";
import { startProxy } from "./tcp-proxy.ts";

const SHUTDOWN_MS = 60_000;

/** Run at the end of the file: a hook registered inside a concurrent test may be run after another test. */
const ends: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  await Promise.all(ends.map((end) => end()));
}, SHUTDOWN_MS);

export async function leasedActivity(body: (lease: ActivityLease) => Promise<unknown>) {
  const [host = "", port] = inject("temporalAddress").split(":");
  const proxy = await startProxy({ host, port: Number(port) });
  const connection = await NativeConnection.connect({ address: `127.0.0.1:${proxy.port}` });
  const direct = await Connection.connect({ address: inject("temporalAddress") });
  const client = new Client({ connection: direct });
  const taskQueue = `leased-${randomUUID()}`;
  const startWorker = async (): Promise<void> => {
    const activities = { leased: () => withLease(body) };
    const worker = await Worker.create({ connection, taskQueue, activities });
    const running = worker.run();
    ends.push(async () => {
      await proxy.mend();
      worker.shutdown();
      await running;
      await Promise.all([connection.close(), direct.close()]);
      await proxy.cut();
    });
  };
  /** Orders the activity once, with the timeouts that effects have. */
  const order = () =>
    client.activity.start("leased", {
      ...{ id: randomUUID(), taskQueue, args: [] },
      startToCloseTimeout: "1 hour",
      heartbeatTimeout: "2 seconds",
      retry: { maximumAttempts: 1 },
    });
  return { proxy, connection, startWorker, order };
}
