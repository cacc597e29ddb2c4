/** Activities whose tasks reach a worker long after they were ordered (architecture, rule 2). */
import { expect, test, vi } from "vitest";
import { leasedActivity } from "../support/leased-activity.ts";
import { deferred, until } from "../support/waiting.ts";

const TIMEOUT = 60_000;

/** A worker whose only activity reports whether it may be performed, and the connection that brings its tasks. */
async function startLooking() {
  const seen: ((mayPerform: boolean) => void)[] = [];
  const { order, ...rest } = await leasedActivity(({ signal }) => {
    seen.shift()?.(!signal.aborted);
    return Promise.resolve();
  });
  /** Orders the activity. Returns whether it may be performed when it begins, and its end. */
  const look = () => {
    const begun = deferred<boolean>();
    seen.push(begun.resolve);
    return { mayPerform: begun.promise, ended: order().then((handle) => handle.result()) };
  };
  return { ...rest, look };
}

test.concurrent("an activity that waited in its queue is performed", { timeout: TIMEOUT }, async () => {
  const { startWorker, look } = await startLooking();
  const { mayPerform, ended } = look();
  const ordered = Date.now();
  await until(() => Date.now() - ordered > 1_500);
  await startWorker();
  expect(await mayPerform).toBe(true);
  await ended;
});

test.concurrent(
  "an activity that timed out before its worker got the task is not performed",
  { timeout: TIMEOUT },
  async () => {
    const { proxy, startWorker, look } = await startLooking();
    await startWorker();
    const first = look();
    expect(await first.mayPerform).toBe(true);
    await first.ended;
    // The server hands the next task to a poll that hangs, so the worker does not get it.
    await proxy.hang();
    const second = look();
    await expect(second.ended).rejects.toThrow();
    await proxy.mend();
    expect(await second.mayPerform).toBe(false);
  },
);

test.concurrent(
  "an activity whose first heartbeat fails is not performed, although others were sent meanwhile",
  { timeout: TIMEOUT },
  async () => {
    const { connection, startWorker, look } = await startLooking();
    const beats = vi.spyOn(connection.workflowService, "recordActivityTaskHeartbeat");
    // As on a slow network that breaks after the second heartbeat.
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
