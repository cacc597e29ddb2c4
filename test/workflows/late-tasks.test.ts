/** Activities that a worker hears of long after they were ordered (architecture, rule 2). */
import { randomUUID } from "node:crypto";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection, Worker } from "@temporalio/worker";
import { expect, inject, onTestFinished, test } from "vitest";
import { withLease } from "../../activities/lease.ts";
import "../support/quiet.ts";
import { startProxy } from "../support/tcp-proxy.ts";
import { deferred, until } from "../support/waiting.ts";

const TIMEOUT = 60_000;

/** A worker whose only activity tells whether it may be performed, and the way by which it hears of its tasks. */
async function startLooking() {
  const [host = "", port] = inject("temporalAddress").split(":");
  const proxy = await startProxy({ host, port: Number(port) });
  const connection = await NativeConnection.connect({ address: `127.0.0.1:${proxy.port}` });
  const direct = await Connection.connect({ address: inject("temporalAddress") });
  const client = new Client({ connection: direct });
  const taskQueue = `late-${randomUUID()}`;
  const seen: ((mayPerform: boolean) => void)[] = [];
  const look = (): Promise<void> =>
    withLease(({ signal }) => {
      seen.shift()?.(!signal.aborted);
      return Promise.resolve();
    });
  const startWorker = async (): Promise<void> => {
    const worker = await Worker.create({ connection, taskQueue, activities: { look } });
    const running = worker.run();
    onTestFinished(async () => {
      await proxy.mend();
      worker.shutdown();
      await running;
      await Promise.all([connection.close(), direct.close()]);
      await proxy.cut();
    }, TIMEOUT);
  };
  /** Orders it; what it sees when it begins, and how it ends. */
  const order = () => {
    const begun = deferred<boolean>();
    seen.push(begun.resolve);
    const ended = client.activity.execute("look", {
      ...{ id: randomUUID(), taskQueue, args: [] },
      startToCloseTimeout: "1 hour",
      heartbeatTimeout: "2 seconds",
      retry: { maximumAttempts: 1 },
    });
    return { mayPerform: begun.promise, ended };
  };
  return { proxy, startWorker, order };
}

test.concurrent("one that waited in its queue is performed", { timeout: TIMEOUT }, async () => {
  const { startWorker, order } = await startLooking();
  const { mayPerform, ended } = order();
  const ordered = Date.now();
  await until(() => Date.now() - ordered > 1_500);
  await startWorker();
  expect(await mayPerform).toBe(true);
  await ended;
});

test.concurrent(
  "one that was given up before its worker could hear of it is not performed",
  { timeout: TIMEOUT },
  async () => {
    const { proxy, startWorker, order } = await startLooking();
    await startWorker();
    const first = order();
    expect(await first.mayPerform).toBe(true);
    await first.ended;
    // Whoever polls gets the next one, and does not know it.
    await proxy.hang();
    const second = order();
    await expect(second.ended).rejects.toThrow();
    await proxy.mend();
    expect(await second.mayPerform).toBe(false);
  },
);
