/** The short way to stop a tool: within the process, before the server has the cancel. */
import { expect, test } from "vitest";
import { RunningTools } from "../../activities/running-tools.ts";

const never = new AbortController().signal;
const tool = (conversationId: string, operationId = "o1") => ({ conversationId, operationId });
const any = (conversationId: string) => ({ conversationId, operationId: null });
const stopped = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve("stopped"), { once: true }));

test("a stop ends the tools of the named conversations, and no other", async () => {
  const running = new RunningTools();
  const cancel = new AbortController();
  let isOtherStopped = false;
  const ended = running.run(tool("a"), cancel.signal, stopped);
  void running.run(tool("b"), never, (signal) => stopped(signal).then(() => (isOtherStopped = true)));
  running.stop([any("a"), any("c")]);
  cancel.abort();
  expect(await ended).toBe("stopped");
  expect(isOtherStopped).toBe(false);
});

test("a stopped tool is answered when its cancel has come, not before", async () => {
  const running = new RunningTools();
  const cancel = new AbortController();
  const order: string[] = [];
  const ended = running
    .run(tool("a"), cancel.signal, (signal) => stopped(signal).then(() => order.push("dead")))
    .then(() => order.push("answered"));
  running.stop([any("a")]);
  await expect.poll(() => order).toEqual(["dead"]);
  order.push("cancelled");
  cancel.abort();
  await ended;
  expect(order).toEqual(["dead", "cancelled", "answered"]);
});

test("a cancel by the server alone stops a tool as well, and a stop after its end does nothing", async () => {
  const running = new RunningTools();
  const cancel = new AbortController();
  const ended = running.run(tool("a"), cancel.signal, stopped);
  cancel.abort();
  expect(await ended).toBe("stopped");
  expect(await running.run(tool("a"), never, () => Promise.resolve("done"))).toBe("done");
  running.stop([any("a")]);
});

test("a stop that comes late does not end a later tool of the conversation", async () => {
  const running = new RunningTools();
  const cancel = new AbortController();
  const ended = running.run(tool("a", "o2"), cancel.signal, stopped);
  let isStopped = false;
  void ended.then(() => (isStopped = true));
  running.stop([tool("a", "o1")]);
  await Promise.resolve();
  expect(isStopped).toBe(false);
  running.stop([tool("a", "o2")]);
  cancel.abort();
  expect(await ended).toBe("stopped");
});
