/** Activities that are called off and take their time (architecture, rule 2): nobody goes on before they have ended. */
import { once } from "node:events";
import { expect, test, vi } from "vitest";
import type { ActivityLease } from "../../activities/lease.ts";
import { isExpired } from "../../sandbox/lease.ts";
import { leasedActivity } from "../support/leased-activity.ts";
import { deferred, until } from "../support/waiting.ts";

const TIMEOUT = 60_000;
const since = (began: number): number => performance.now() - began;

/** One that has begun, and ends when it is let. */
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
  "one that needs longer than the heartbeat timeout to end after a cancel is waited for",
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
  "one that does not end is given up, and its lease is over before anybody hears of it",
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
  "a heartbeat that is answered after the end does not bring the lease back",
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
    // Beyond the lease that the late answer would have given.
    const ended = performance.now();
    await until(() => since(ended) > 2_000);
    expect(lease.signal.aborted).toBe(false);
    expect(lease.expiresAt).toBe(last);
  },
);
