/** The short way to stop a tool: within the process, before the server has the cancel. */
import { expect, test } from "vitest";
import { RunningTools } from "../../activities/running-tools.ts";

const never = new AbortController().signal;
const stopped = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve("stopped"), { once: true }));

test("a stop ends the tools of the named conversations, and no other", async () => {
  const running = new RunningTools();
  const cancel = new AbortController();
  let isOtherStopped = false;
  const tool = running.run("a", cancel.signal, stopped);
  void running.run("b", never, (signal) => stopped(signal).then(() => (isOtherStopped = true)));
  running.stop(["a", "c"]);
  cancel.abort();
  expect(await tool).toBe("stopped");
  expect(isOtherStopped).toBe(false);
});

test("a stopped tool is answered when its cancel has come, not before", async () => {
  const running = new RunningTools();
  const cancel = new AbortController();
  const order: string[] = [];
  const tool = running
    .run("a", cancel.signal, (signal) => stopped(signal).then(() => order.push("dead")))
    .then(() => order.push("answered"));
  running.stop(["a"]);
  await expect.poll(() => order).toEqual(["dead"]);
  order.push("cancelled");
  cancel.abort();
  await tool;
  expect(order).toEqual(["dead", "cancelled", "answered"]);
});

test("a cancel by the server alone stops a tool as well, and a stop after its end does nothing", async () => {
  const running = new RunningTools();
  const cancel = new AbortController();
  const tool = running.run("a", cancel.signal, stopped);
  cancel.abort();
  expect(await tool).toBe("stopped");
  expect(await running.run("a", never, () => Promise.resolve("done"))).toBe("done");
  running.stop(["a"]);
});
