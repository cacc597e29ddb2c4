/** Cancelled activities that take long to end (architecture, rule 2): no successor starts before they have ended. */
import { once } from "node:events";
import { expect, test, vi } from "vitest";
import type { ActivityLease } from "../../activities/lease.ts";
import { isExpired } from "../../sandbox/lease.ts";
import { leasedActivity } from "../support/leased-activity.ts";
import { deferred, until } from "../support/waiting.ts";

const TIMEOUT = 60_000;
const since = (began: number): number => performance.now() - began;

/** Starts an activity that ends when the test calls `end`. */
async function begin() {
  const begun = deferred<ActivityLease>();
  const end = deferred<undefined>();
  const { startWorker, order, ...way } = await leasedActivity((lease) => {
    begun.resolve(lease);
    return end.promise;
  });
  await startWorker();
  const activity = await order();
  return { ...way, activity, lease: await begun.promise, end: () => end.resolve(undefined) };
}

test.concurrent(
  "Temporal waits for a cancelled activity that needs longer than the heartbeat timeout to end",
  { timeout: TIMEOUT },
  async () => {
    const begun = deferred<undefined>();
    const { startWorker, order } = await leasedActivity(async ({ signal }) => {
      begun.resolve(undefined);
      await once(signal, "abort");
      const calledOff = performance.now();
      await until(() => since(calledOff) > 4_000);
      return "ended";
    });
    await startWorker();
    const activity = await order();
    await begun.promise;
    await activity.cancel("a Stop");
    expect(await activity.result()).toBe("ended");
  },
);

test.concurrent(
  "a cancelled activity that does not end times out, and its lease expires before the caller learns of it",
  { timeout: TIMEOUT },
  async () => {
    const { activity, lease, end } = await begin();
    await activity.cancel("a Stop");
    await expect(activity.result()).rejects.toThrow();
    expect(isExpired(lease)).toBe(true);
    end();
  },
);

test.concurrent(
  "a heartbeat that is answered after the end does not renew the lease",
  { timeout: TIMEOUT },
  async () => {
    const { activity, lease, end, proxy, connection } = await begin();
    await proxy.hang();
    const beats = vi.spyOn(connection.workflowService, "recordActivityTaskHeartbeat");
    await until(() => beats.mock.calls.length > 0);
    const { expiresAt: last } = lease;
    end();
    await proxy.mend();
    await activity.result();
    // Longer than the lease that the late answer would have given.
    const ended = performance.now();
    await until(() => since(ended) > 2_000);
    expect(lease.signal.aborted).toBe(false);
    expect(lease.expiresAt).toBe(last);
  },
);
