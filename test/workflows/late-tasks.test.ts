/** Activities that a worker hears of long after they were ordered (architecture, rule 2). */
import { expect, test, vi } from "vitest";
import { leasedActivity } from "../support/leased-activity.ts";
import { deferred, until } from "../support/waiting.ts";

const TIMEOUT = 60_000;

/** A worker whose only activity tells whether it may be performed, and the way by which it hears of its tasks. */
async function startLooking() {
  const seen: ((mayPerform: boolean) => void)[] = [];
  const { order, ...rest } = await leasedActivity(({ signal }) => {
    seen.shift()?.(!signal.aborted);
    return Promise.resolve();
  });
  /** Orders it; what it sees when it begins, and how it ends. */
  const look = () => {
    const begun = deferred<boolean>();
    seen.push(begun.resolve);
    return { mayPerform: begun.promise, ended: order().then((handle) => handle.result()) };
  };
  return { ...rest, look };
}

test.concurrent("one that waited in its queue is performed", { timeout: TIMEOUT }, async () => {
  const { startWorker, look } = await startLooking();
  const { mayPerform, ended } = look();
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
    const { proxy, startWorker, look } = await startLooking();
    await startWorker();
    const first = look();
    expect(await first.mayPerform).toBe(true);
    await first.ended;
    // Whoever polls gets the next one, and does not know it.
    await proxy.hang();
    const second = look();
    await expect(second.ended).rejects.toThrow();
    await proxy.mend();
    expect(await second.mayPerform).toBe(false);
  },
);

test.concurrent(
  "one is not performed when its first heartbeat fails, although others were sent meanwhile",
  { timeout: TIMEOUT },
  async () => {
    const { connection, startWorker, look } = await startLooking();
    const beats = vi.spyOn(connection.workflowService, "recordActivityTaskHeartbeat");
    // As on a slow network that breaks when the second has been sent.
    const second = deferred<undefined>();
    beats.mockImplementation(async () => {
      if (beats.mock.calls.length > 1) second.resolve(undefined);
      await second.promise;
      throw new Error("broken");
    });
    const { mayPerform, ended } = look();
    const ordered = Date.now();
    await until(() => Date.now() - ordered > 1_000);
    await startWorker();
    expect(await mayPerform).toBe(false);
    expect(beats.mock.calls.length).toBeGreaterThan(1);
    await ended;
  },
);
